// The theme of the page: from `theme` in its URL, else the viewer's choice, else the preference of the viewer's system.
import { h } from "./dom.js";

const THEME = "theme";
export const systemIsDark = matchMedia("(prefers-color-scheme: dark)");

/** A button that switches the theme for this and later visits, and then calls `chosen`, if given; and `update`, which
 * applies the theme to page and button. */
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
