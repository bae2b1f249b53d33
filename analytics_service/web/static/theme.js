// The colours of a page: those that `theme` in its URL names, else those that the viewer chose, else those that the
// viewer's system prefers.
import { h } from "./dom.js";

const THEME = "theme";
export const systemIsDark = matchMedia("(prefers-color-scheme: dark)");

/** A button that chooses the other theme for this and later visits, and then calls `chosen`, if given; and `update`, which
 * gives page and button their theme. */
export function themeButton(chosen) {
  const button = h("button", { type: "button", onclick: choose });
  function choose() {
    localStorage.setItem(THEME, isDark() ? "light" : "dark");
    const url = new URL(location);
    url.searchParams.delete(THEME);
    history.replaceState(history.state, "", url);
    update();
    chosen?.();
  }
  function update() {
    document.documentElement.dataset.theme = named() ?? "";
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `${button.textContent} colours`);
  }
  return { button, update };
}

function isDark() {
  return named() ? named() === "dark" : systemIsDark.matches;
}

function named() {
  const themes = [new URLSearchParams(location.search).get("theme"), localStorage.getItem(THEME)];
  return themes.find((theme) => ["dark", "light"].includes(theme)) ?? null;
}
