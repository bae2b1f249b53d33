// Rows of the API in a table, a page at a time.
import { ApiError } from "./api.js";
import { failed, h, loading, notice, table } from "./dom.js";
import { fileLink } from "./file.js";

/** An element (`list`) with a table and a button for more rows; `done` resolves with the first rows. `load` gets the rows
 * so far, and returns the next rows (`found`) and whether they are the last. `none` is the message without rows.
 * `file` is the URL of the rows as CSV. */
export function paged(caption, columns, load, { none, file = null, more = "More" }) {
  const rows = [];
  const place = h("div", {}, loading());
  const fault = h("div");
  const button = h("button", { type: "button", hidden: true, onclick: next }, more);
  const list = h("div", {}, place, fault, h("p", { class: "tools" }, button, file && fileLink("CSV", file)));
  async function next() {
    // A second click would request the same rows.
    button.disabled = true;
    fault.replaceChildren();
    // A viewer who wants more is reading: do not redraw.
    if (rows.length) list.dataset.used = "";
    try {
      const { found, isLast } = await load(rows);
      rows.push(...found);
      button.hidden = isLast;
      place.replaceChildren(rows.length ? table(caption, columns, rows) : notice(none));
    } catch (error) {
      if (error.name === "AbortError") return;
      if (!rows.length) place.replaceChildren();
      // Another attempt would get the same answer.
      if (error.kind === "entity_not_found") return fault.replaceChildren(notice(error.message));
      fault.replaceChildren(...failed(error.message, next));
      if (!(error instanceof ApiError)) throw error;
    } finally {
      button.disabled = false;
    }
  }
  return { list, done: next() };
}
