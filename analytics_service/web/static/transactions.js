// Transactions, the newest first: of an address, or of all addresses.
import { addressLink } from "./accounts.js";
import { address, get } from "./api.js";
import { assetLink, assetName, assets } from "./assets.js";
import { copyable, h, section } from "./dom.js";
import { time } from "./format.js";
import { paged } from "./list.js";
import { current, note } from "./route.js";
import { datasets } from "./status.js";

const PAGE = 25, FIRST = 10;
// Labels of actions.
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

/** A panel of the newest transactions of an address, with a button for older ones, and filters by action and asset (of
 * `all`); `done` resolves with the first rows. */
export function transactions(path, at, all, route, signal) {
  return panel("Transactions", `${path}/tx-history`, at, all, columns(route, []), PAGE, signal);
}

/** As `transactions`, for all addresses, in a place, and only for `action` if given. */
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

/** An amount, as a link to its asset; null for an action without an amount. */
function amount({ asset: { asset: { id }, metadata }, amount: known, extra }) {
  return known === null ? null : assetLink({ id, symbol: metadata?.symbol }, extra.text.amount);
}

function panel(title, path, given, all, columns, size, signal) {
  const place = h("div");
  // The URL keeps the choice; its `asset` belongs to another view.
  const chosen = current();
  const chooser = (key, name, options) => h("select", { onchange: ({ target }) => (note({ [key]: target.value || null }), fill()) },
    h("option", { value: "" }, `All ${name}`),
    options.map(([value, text]) => h("option", { value, selected: value === chosen[key] }, text)));
  const action = chooser("action", "actions", Object.entries(ACTIONS));
  const asset = chooser("moved", "assets", all.map((one) => [one.id, assetName(one)]));
  function fill() {
    const query = { ...given, action: given.action ?? action.value, asset_ids: asset.value };
    const isChosen = Boolean(action.value || asset.value);
    const none = isChosen ? "There are no such transactions." : "There are no transactions yet.";
    const { list, done } = paged(title, columns, (rows) => page(path, query, rows, size, signal),
      { none, file: address(path, { ...query, format: "csv" }), more: "Older" });
    // A viewer who has filtered is reading: do not redraw.
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
