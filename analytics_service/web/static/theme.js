// The colours of a page: those that `theme` in its URL names, else those that the viewer's system prefers.
import { h } from "./dom.js";

export const systemIsDark = matchMedia("(prefers-color-scheme: dark)");

/** A button that calls `choose` with the other theme, and `update`, which gives page and button the theme of the URL. */
export function themeButton(choose) {
  const button = h("button", { type: "button", onclick: () => choose(isDark() ? "light" : "dark") });
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
  const theme = new URLSearchParams(location.search).get("theme");
  return ["dark", "light"].includes(theme) ? theme : null;
}
