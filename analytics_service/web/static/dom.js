// Elements without a framework.
import { short } from "./format.js";

/** An element with properties and children. Handlers are `onclick` and the like; null children are left out. */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.startsWith("aria-")) element.setAttribute(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

/** A message in place of missing content; `bad` if something failed. */
export function notice(text, bad = false) {
  return h("p", { class: bad ? "notice bad" : "notice", role: bad ? "alert" : "status" }, text);
}

/** Why something cannot be shown, and a button to try it again. */
export function failed(message, again) {
  return [notice(message, true), h("p", {}, h("button", { type: "button", onclick: again }, "Try again"))];
}

/** A value of the API as a reader needs it; copied, it is as the API has it. A missing one is a dash. */
export function exact(value, format) {
  return (value ?? null) === null ? "–" : h("data", { value }, format(value));
}

// What is selected is copied with exact values.
document.addEventListener("copy", (event) => {
  const selected = getSelection();
  if (!selected.rangeCount) return;
  const range = selected.getRangeAt(0);
  // A double click selects a number without its sign or unit.
  const around = range.commonAncestorContainer.parentElement?.closest("data");
  const place = h("div", { class: "hidden" }, around?.cloneNode(true) ?? range.cloneContents());
  const values = place.querySelectorAll("data");
  if (!values.length) return;
  for (const data of values) data.textContent = data.value;
  document.body.append(place);
  event.clipboardData.setData("text/plain", place.innerText);
  event.clipboardData.setData("text/html", place.innerHTML);
  place.remove();
  event.preventDefault();
});

/** A table from columns `{title, cell, number}` and rows. `cell` makes the contents of a row's cell. */
export function table(caption, columns, rows) {
  const heads = columns.map((column) => h("th", { scope: "col", class: column.number ? "number" : null }, column.title));
  const cell = (column, row) => h("td", { class: column.number ? "number" : null }, column.cell(row) ?? "–");
  const body = rows.map((row) => h("tr", {}, columns.map((column) => cell(column, row))));
  return scrolling(caption, heads, h("tbody", {}, body));
}

/** A table of heads and a body, which scrolls by itself where it is wider than the page. */
export function scrolling(caption, heads, body) {
  const all = [h("caption", { class: "hidden" }, caption), h("thead", {}, h("tr", {}, heads)), body];
  // What scrolls must be reachable by keyboard.
  return h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": caption }, h("table", {}, all));
}

/** Copies text, and says so on the button. */
export function copyButton(label, text) {
  const say = (said = label) => (button.textContent = said);
  const button = h("button", { type: "button", onclick: () => copy(text, say) }, label);
  return button;
}

/** Copies text, and says for a moment whether it did; then `say` is called without anything to say. */
async function copy(text, say) {
  try {
    await navigator.clipboard.writeText(text);
    say("Copied");
  } catch {
    say("Copying is not allowed here");
  }
  setTimeout(say, 1500);
}

/** A hash or an address, shortened or as the link `shown`, with a small button that copies it whole. `name` is what it
 * is called. */
export function copyable(text, name, shown = h("code", { title: text }, short(text))) {
  const say = (said = `Copy ${name}`) => {
    button.setAttribute("aria-label", said);
    button.title = said;
    button.classList.toggle("done", said === "Copied");
  };
  const button = h("button", { type: "button", class: "copy", onclick: () => copy(text, say) });
  say();
  return h("data", { class: "copyable", value: text }, shown, button);
}

/** An id made from a title. */
export function idOf(title) {
  return title.toLowerCase().replaceAll(/\W+/g, "-");
}

/** A panel that can be folded. Its id, which links may name, is made from its title. */
export function section(title, ...children) {
  let isOpen = true;
  // Charts follow the size of the window only, which may have changed while they were folded away.
  const toggled = ({ target }) => {
    if (target.open && !isOpen) dispatchEvent(new Event("resize"));
    isOpen = target.open;
  };
  return h("details", { class: "panel", id: idOf(title), open: true, ontoggle: toggled },
    h("summary", {}, h("h2", {}, title)), children);
}

/** Saves a blob as a file. */
export function saveAs(name, blob) {
  const made = URL.createObjectURL(blob);
  h("a", { href: made, download: name }).click();
  URL.revokeObjectURL(made);
}
