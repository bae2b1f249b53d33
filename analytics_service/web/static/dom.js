// Elements without a framework.
import { short } from "./format.js";

/** An element with properties and children. Handlers are `onclick` and the like; null children are omitted. */
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

/** What stands in the place of what is being loaded. */
export function loading() {
  return h("p", { class: "soft" }, "Loading…");
}

/** A message in place of missing content; `bad` if something failed. */
export function notice(text, bad = false) {
  return h("p", { class: bad ? "notice bad" : "notice", role: bad ? "alert" : "status" }, text);
}

/** An error message, and a button to try again. */
export function failed(message, again) {
  return [notice(message, true), h("p", {}, h("button", { type: "button", onclick: again }, "Try again"))];
}

/** A formatted value of the API, which is copied in full. A missing value is a dash. */
export function exact(value, format) {
  return (value ?? null) === null ? "–" : h("data", { value }, format(value));
}

// Copies the selection with exact values.
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

/** A table from columns `{title, cell, number}` and rows. `cell` returns the contents of a row's cell. */
export function table(caption, columns, rows) {
  const heads = columns.map((column) => h("th", { scope: "col", class: column.number ? "number" : null }, column.title));
  const cell = (column, row) => h("td", { class: column.number ? "number" : null }, column.cell(row) ?? "–");
  const body = rows.map((row) => h("tr", {}, columns.map((column) => cell(column, row))));
  return scrolling(caption, heads, h("tbody", {}, body));
}

/** A table of heads and a body, which scrolls if it is wider than the page. */
export function scrolling(caption, heads, body) {
  const all = [h("caption", { class: "hidden" }, caption), h("thead", {}, h("tr", {}, heads)), body];
  // A scrolling element must be reachable by keyboard.
  return h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": caption }, h("table", {}, all));
}

/** A button that copies text, and confirms it. */
export function copyButton(label, text) {
  const say = (said = label) => (button.textContent = said);
  const button = h("button", { type: "button", onclick: () => copy(text, say) }, label);
  return button;
}

/** Copies text, and reports the outcome for a moment; then calls `say` without an argument. */
async function copy(text, say) {
  try {
    await navigator.clipboard.writeText(text);
    say("Copied");
  } catch {
    say("Copying is not allowed here");
  }
  setTimeout(say, 1500);
}

/** A hash or an address, shortened or as the link `shown`, with a small button that copies it in full. `name` is for the
 * button's label. */
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

/** A panel that can be folded. Its id, for links, is made from its title. */
export function section(title, ...children) {
  let isOpen = true;
  // Charts resize with the window only, which may have changed while they were folded.
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
