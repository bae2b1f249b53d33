// What an address did, newest first, a page at a time.
import { get } from "./api.js";
import { h, notice, table } from "./dom.js";
import { time } from "./format.js";

const PAGE = 25;
const COLUMNS = [
  { title: "Action", cell: (event) => event.extra.text.action },
  { title: "Amount", number: true, cell: (event) => event.extra.text.amount },
  { title: "Value then", number: true, cell: (event) => event.extra.text.historic_value },
  { title: "Account", cell: (event) => event.account_index },
  { title: "Transaction", cell: (event) => h("code", { title: event.tx_hash }, event.tx_hash.slice(0, 12)) },
];

/** A panel of the newest transactions, with a button for older ones. */
export function transactions(path, at, { tz }, signal) {
  const rows = [];
  const place = h("div", {}, h("p", { class: "soft" }, "Loading…"));
  const older = h("button", { type: "button", hidden: true, onclick: more }, "Older");
  const columns = [{ title: "Time", cell: (event) => time(Date.parse(event.event_time) / 1000, tz) }, ...COLUMNS];
  async function more() {
    const query = { limit: PAGE, prev_event_uuid: rows.at(-1)?.event_uuid, with_text: true, ...at };
    try {
      const { data } = await get(`${path}/tx-history`, query, signal);
      rows.push(...data);
      older.hidden = data.length < PAGE;
      place.replaceChildren(rows.length ? table("Transactions", columns, rows) : notice("There are no transactions."));
    } catch (error) {
      if (signal.aborted) return;
      place.replaceChildren(notice(error.message, true));
    }
  }
  more();
  return h("section", { class: "panel" }, h("h2", {}, "Transactions"), place, h("p", {}, older));
}
