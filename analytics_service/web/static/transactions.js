// What an address did, newest first, a page at a time.
import { get } from "./api.js";
import { failed, h, notice, table } from "./dom.js";
import { time } from "./format.js";

const PAGE = 25;
const COLUMNS = [
  { title: "Action", cell: (event) => event.extra.text.action },
  { title: "Amount", number: true, cell: (event) => event.extra.text.amount },
  { title: "Value then", number: true, cell: (event) => event.extra.text.historic_value },
  { title: "Account", cell: (event) => event.account_index },
  { title: "Transaction", cell: (event) => h("code", { title: event.tx_hash }, event.tx_hash.slice(0, 12)) },
];

/** A panel of the newest transactions, with a button for older ones; `done` when the first ones are there. */
export function transactions(path, at, { tz }, signal) {
  const rows = [];
  const place = h("div", {}, h("p", { class: "soft" }, "Loading…"));
  const fault = h("div");
  const older = h("button", { type: "button", hidden: true, onclick: more }, "Older");
  const panel = h("section", { class: "panel" }, h("h2", {}, "Transactions"), place, fault, h("p", {}, older));
  const columns = [{ title: "Time", cell: (event) => time(Date.parse(event.event_time) / 1000, tz) }, ...COLUMNS];
  async function more() {
    const query = { limit: PAGE, prev_event_uuid: rows.at(-1)?.event_uuid, with_text: true, ...at };
    // A second click would ask for the same ones.
    older.disabled = true;
    fault.replaceChildren();
    // A viewer who has opened older ones is reading them.
    if (rows.length) panel.dataset.used = "";
    try {
      const { data } = await get(`${path}/tx-history`, query, signal);
      rows.push(...data);
      older.hidden = data.length < PAGE;
      place.replaceChildren(rows.length ? table("Transactions", columns, rows) : notice("There are no transactions."));
    } catch (error) {
      if (signal.aborted) return;
      if (!rows.length) place.replaceChildren();
      fault.replaceChildren(...failed(error.message, more));
    } finally {
      older.disabled = false;
    }
  }
  return { panel, done: more() };
}
