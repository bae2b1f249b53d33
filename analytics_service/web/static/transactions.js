// What has happened, newest first: at an address, or at all.
import { addressLink } from "./accounts.js";
import { address, get } from "./api.js";
import { assetLink, assetName, assets } from "./assets.js";
import { copyable, h, section } from "./dom.js";
import { time } from "./format.js";
import { paged } from "./list.js";
import { current, note } from "./route.js";
import { datasets } from "./status.js";

const PAGE = 25, FIRST = 10;
// The actions in words. Each can be listed alone.
const ACTIONS = {
  liquidate: "Liquidate", borrow: "Borrow", return: "Repay", lend: "Lend", redeem: "Withdraw",
  deposit_collateral: "Deposit collateral", withdraw_collateral: "Withdraw collateral", bond: "Stake", unbond: "Unstake",
  cascade: "Move stake to a shorter pool", claim_unbonded: "Claim unstaked", claim_rewards: "Claim rewards",
  claim_war_chest: "Claim war chest", create_token_unlock: "Create unlock", claim_token_unlock: "Claim unlock",
  reclaim_token_unlock: "Reclaim unlock", borrow_flash_loan: "Borrow flash loan", return_flash_loan: "Repay flash loan",
  send: "Send",
};
// A liquidation is two events.
const LEGS = { debt: ", debt repaid", collateral: ", collateral taken" };

/** A panel of the newest transactions of an address, with a button for older ones; `done` when the first ones are there.
 * They can be chosen by action, and by asset of `all`. */
export function transactions(path, at, all, route, signal) {
  return panel("Transactions", `${path}/tx-history`, at, all, columns(route, []), PAGE, signal);
}

/** The same of all addresses in a place, of one action if `action` says so. */
export async function latest(place, title, at, route, signal, action = null) {
  const whose = { title: "Address", cell: (event) => addressLink(event.account_address) };
  const all = await assets(await datasets(), signal, at);
  const events = panel(title, "/analytics/market/events", { action, ...at }, all, columns(route, [whose]), FIRST, signal);
  place.replaceChildren(events.panel);
  await events.done;
}

function columns({ tz }, whose) {
  return [
    { title: "Time", cell: (event) => time(Date.parse(event.event_time) / 1000, tz) },
    { title: "Action", cell: (event) => `${ACTIONS[event.action] ?? event.extra.text.action}${LEGS[event.leg] ?? ""}` },
    { title: "Amount", number: true, cell: amount },
    { title: "Value then", number: true, cell: ({ historic_value: value, extra }) => (value === null ? null : extra.text.historic_value) },
    ...whose,
    { title: "Account no.", cell: (event) => event.account_index },
    { title: "Transaction", cell: (event) => event.tx_hash && copyable(event.tx_hash, "transaction") },
  ];
}

/** An amount, which is a link to its asset; null of an action that moves nothing. */
function amount({ asset: { asset: { id }, metadata }, amount: known, extra }) {
  return known === null ? null : assetLink({ id, symbol: metadata?.symbol }, extra.text.amount);
}

function panel(title, path, given, all, columns, size, signal) {
  const place = h("div");
  // What is chosen is in the address; `asset` there is that of another view.
  const chosen = current();
  const chooser = (key, name, options) => h("select", { onchange: ({ target }) => (note({ [key]: target.value || null }), fill()) },
    h("option", { value: "" }, `All ${name}`),
    options.map(([value, text]) => h("option", { value, selected: value === chosen[key] }, text)));
  const action = chooser("action", "actions", Object.entries(ACTIONS));
  const asset = chooser("moved", "assets", all.map((one) => [one.id, assetName(one)]));
  function fill() {
    const query = { ...given, action: given.action ?? action.value, asset_ids: asset.value };
    const isChosen = Boolean(action.value || asset.value);
    const none = isChosen ? "There are no transactions of this kind." : "There are none yet.";
    const { list, done } = paged(title, columns, (rows) => page(path, query, rows, size, signal),
      { none, file: address(path, { ...query, format: "csv" }), more: "Older" });
    // A viewer who has chosen is reading.
    if (isChosen) list.dataset.used = "";
    place.replaceChildren(list);
    return done;
  }
  const tools = h("div", { class: "tools" }, given.action ? null : h("label", {}, "Action", action), h("label", {}, "Asset", asset));
  return { panel: section(title, tools, place), done: fill() };
}

async function page(path, query, rows, limit, signal) {
  const { data: found } = await get(path, { ...query, limit, prev_event_uuid: rows.at(-1)?.event_uuid, with_text: true }, signal);
  return { found, isLast: found.length < limit };
}
