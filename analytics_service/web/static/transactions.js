// What has happened, newest first: of an address, or of all.
import { addressLink } from "./accounts.js";
import { get } from "./api.js";
import { assetLink } from "./assets.js";
import { h } from "./dom.js";
import { time } from "./format.js";
import { paged } from "./list.js";

const PAGE = 25;
// What can be chosen to be listed alone.
const ACTIONS = ["borrow", "return", "lend", "redeem", "deposit_collateral", "withdraw_collateral", "liquidate", "bond",
  "unbond", "claim_unbonded", "claim_rewards", "claim_token_unlock", "send"];

function columns({ tz }, party) {
  return [
    { title: "Time", cell: (event) => time(Date.parse(event.event_time) / 1000, tz) },
    { title: "Action", cell: (event) => event.extra.text.action },
    { title: "Amount", number: true, cell: amount },
    { title: "Value then", number: true, cell: (event) => event.extra.text.historic_value },
    ...party,
    { title: "Account", cell: (event) => event.account_index },
    { title: "Transaction", cell: (event) => h("code", { title: event.tx_hash }, event.tx_hash.slice(0, 12)) },
  ];
}

/** An amount, which is a link to its asset. */
function amount({ asset, amount: known, extra }) {
  const name = ({ asset: { id }, metadata: { symbol } }) => ({ id, symbol });
  return known === null || !asset ? extra.text.amount : assetLink(name(asset), extra.text.amount);
}

/** A panel of the newest transactions of an address, with a button for older ones and a list of actions to choose from;
 * `done` when the first ones are there. */
export function transactions(path, at, route, signal) {
  const place = h("div");
  const title = (action) => `${action[0].toUpperCase()}${action.slice(1).replaceAll("_", " ")}`;
  const select = h("select", { onchange: () => fill() }, h("option", { value: "" }, "All"),
    ACTIONS.map((action) => h("option", { value: action }, title(action))));
  function fill() {
    const { list, done } = events("Transactions", `${path}/tx-history`, { action: select.value, ...at }, columns(route, []), signal);
    // A viewer who has chosen is reading.
    if (select.value) list.dataset.used = "";
    place.replaceChildren(list);
    return done;
  }
  const panel = h("section", { class: "panel" }, h("h2", {}, "Transactions"),
    h("div", { class: "tools" }, h("label", {}, "Action", select)), place);
  return { panel, done: fill() };
}

/** A list of events at a path. */
function events(caption, path, query, columns, signal) {
  async function load(rows) {
    const page = { limit: PAGE, prev_event_uuid: rows.at(-1)?.event_uuid, with_text: true };
    const { data: found } = await get(path, { ...query, ...page }, signal);
    return { found, isLast: found.length < PAGE };
  }
  return paged(caption, columns, load, query.action ? "There are no transactions of this kind." : "There are no transactions.", "Older");
}
