// What an address has, now or at an earlier moment.
import { accounts } from "./accounts.js";
import { ApiError, asksForKeys, get, unlessUnknown } from "./api.js";
import { assetLink, assets } from "./assets.js";
import { line } from "./charts.js";
import { copyable, failed, h, loading, notice, section, table } from "./dom.js";
import { figure } from "./figure.js";
import { withSign, cut, percent, time, wall } from "./format.js";
import { go } from "./route.js";
import { datasets } from "./status.js";
import { transactions } from "./transactions.js";
import { worth } from "./worth.js";

const NO_ADDRESS = "Enter an address to see its worth, health, collateral, debt, lending, staking and transactions.";
const NOTHING = "The address has nothing at this moment: no collateral, debt, deposits, stakes or balances.";
const NO_POSITIONS = "This service has no positions of addresses. Prices and rates are under Markets.";
// Borrowers that are listed when no address is chosen.
const OFFERED = 10;

/** The view of an address, with a search form. */
export async function address(place, route, signal) {
  const result = h("div", {}, loading());
  place.replaceChildren(h("h1", {}, "Address"), form(route), result);
  const isKnown = (await datasets()).has("positions");
  if (!isKnown) return result.replaceChildren(notice(NO_POSITIONS));
  if (!route.address) return offer(result, signal);
  await fill(result, route, signal);
}

/** Addresses to choose from. */
async function offer(result, signal) {
  const { list, done } = accounts("Largest borrowers", { sort: "debt" }, OFFERED, signal);
  result.replaceChildren(h("p", { class: "soft" }, NO_ADDRESS, asksForKeys() ? "" : example()), section("Largest borrowers", list));
  await done;
}

/** A link to an example address. */
function example() {
  return [" The ", h("a", { href: "docs#get_users_address_user" }, "API documentation"), " has an example."];
}

/** Shows what the address has, or an error below the form. */
async function fill(result, route, signal) {
  result.replaceChildren(loading());
  try {
    await show(result, route, signal);
  } catch (error) {
    if (signal.aborted || !(error instanceof ApiError) || error.kind === "unauthorized") throw error;
    result.replaceChildren(...failed(error.message, () => fill(result, route, signal)));
  }
}

async function show(result, route, signal) {
  const path = `/users/${encodeURIComponent(route.address)}`;
  const at = { at: route.at, tz: route.at ? route.tz : null };
  const given = { with_text: true, with_value: true, ...at };
  const answer = await get(`${path}/user`, given, signal);
  const { markets, ptoken, wallets } = answer.data;
  const isOwing = markets.borrow.accounts.some(({ debts }) => debts.length);
  const asked = { address: route.address, limit: 1000, with_text: true, ...at };
  const { answer: borrowers, why } = isOwing
    ? await unlessUnknown(get("/analytics/market/borrowers", asked, signal)) : { answer: { data: [] } };
  const all = await assets(await datasets(), signal, at);
  const origins = new Map(all.map(({ id, origin }) => [id, origin]));
  // Positions may be older than prices.
  const { positions, ...others } = answer.dates;
  const until = Math.max(positions, ...Object.values(others));
  const older = positions < until ? `, with the positions of ${time(positions, route.tz)}` : "";
  const asOf = h("p", { class: "soft" }, copyable(route.address, "address"), ` as of ${time(until, route.tz)}${older}.`);
  const unlocks = ptoken.unlocks.arrangements.length
    ? figure("Unlocks over time", async () => ({ ...answer, path: `${path}/user`, given, isHistory: false }),
        () => unlocksChart(ptoken.unlocks, route, route.at ? until : Date.now() / 1000))
    : null;
  const chart = worth(path, route, route.at ? until : null, signal);
  const events = transactions(path, at, all, route, signal);
  const has = [
    health(markets.borrow.accounts, why), ...markets.borrow.accounts.map((one) => account(one, origins, borrowers?.data)),
    lending(markets.lend), staking(ptoken.staking, route), unlocks && section("Unlocks", unlocks.panel), wallet(wallets),
  ].filter((part) => part !== null);
  result.replaceChildren(asOf, contents([chart.panel, ...has, events.panel]), chart.panel,
    has.length ? h("div", { class: "pair" }, has) : notice(NOTHING), events.panel);
  await Promise.all([chart.done, unlocks?.done, events.done]);
}

function form({ address: shown = "", at = "" }) {
  const field = h("input", { name: "address", value: shown, required: true, size: "46", spellcheck: "false",
    autocomplete: "off", pattern: "\\s*(\\S+1[0-9A-Za-z]+|0x[0-9a-fA-F]{40})\\s*", title: "bech32, or 0x and 40 hex digits" });
  const moment = h("input", { type: "datetime-local", name: "at", value: at, step: "1" });
  const submit = (event) => {
    event.preventDefault();
    go({ address: field.value.trim(), at: moment.value || null });
  };
  return h("form", { class: "tools", role: "search", onsubmit: submit }, h("label", {}, "Address", field),
    h("label", {}, "as of (optional)", moment), h("button", {}, "Show"),
    h("button", { type: "button", onclick: () => go({ at: null }) }, "Now"));
}

/** Links to the sections of the view, which unfold them. */
function contents(sections) {
  const to = (part) => h("a", { href: `#${part.id}`, onclick: () => (part.open = true) }, part.querySelector("h2").textContent);
  return h("nav", { "aria-label": "Sections" }, h("ul", {}, sections.map((part) => h("li", {}, to(part)))));
}

function symbol({ asset_info: { asset: { id }, metadata: { symbol } } }) {
  return assetLink({ id, symbol });
}

// Columns that many tables have: the asset, an amount of the row, and its value.
function amounts(field, of = (row) => row) {
  return [
    { title: "Asset", cell: symbol },
    { title: "Amount", number: true, cell: (row) => of(row).extra.text[field] },
    { title: "Value", number: true, cell: (row) => of(row).extra.value?.extra.text[field] },
  ];
}

function health(borrowing, why) {
  if (!borrowing.length) return null;
  const columns = [
    { title: "Account", cell: ({ index }) => index },
    { title: "Health", number: true, cell: ({ health: { result } }) => (result === "Infinity" ? "no debt" : cut(result)) },
    { title: "Base", number: true, cell: ({ health: { base } }) => (base === "Infinity" ? "–" : cut(base)) },
    { title: "Boost from staking", number: true, cell: ({ health: { boost } }) => cut(boost) },
    { title: "Debt APR", number: true, cell: ({ debts_net_rate: rate }) => percent(rate.apr) },
  ];
  return section("Health", h("p", { class: "soft" }, "Below 1, an account may be liquidated."),
    why ? h("p", { class: "soft" }, `Liquidation prices are unknown. ${why}`) : null,
    table("Health of the borrow accounts", columns, borrowing));
}

/** A borrow account, with the prices at which it is liquidated if `borrowers` are known. */
function account({ index, collaterals, debts, health }, origins, borrowers) {
  const borrower = (borrowers ?? []).find((one) => one.account_index === index);
  const prices = borrower?.liquidation ?? [];
  // A receipt token without a price has the price of its origin, which may be a receipt token, too.
  const at = (id) => prices.find((one) => one.asset.id === id);
  const price = ({ asset_info: { asset } }) => redemptionChain(asset.id, origins).map(at).find(Boolean);
  // The price at which health is 1.
  const reached = { title: health.result !== null && Number(health.result) < 1 ? "Recovers at" : "Liquidated at", number: true,
    cell: (row) => (price(row)?.price ?? null) === null ? "–" : `${price(row).extra.text.price} (${withSign(price(row).change)})` };
  const ending = borrowers ? [reached] : [];
  const ownLtv = { title: "Liquidation LTV", number: true, cell: (row) => percent(row.liquidation_ltv) };
  const posted = [...(collaterals.some((row) => row.liquidation_ltv !== null) ? [ownLtv] : []), ...ending];
  const part = (name, rows, more = []) =>
    rows.length ? table(`${name} of account ${index}`, [...amounts("principal"), ...more], rows) : h("p", { class: "soft" }, `No ${name.toLowerCase()}.`);
  const rate = { title: "APR", number: true, cell: (row) => percent(row.market_rate.apr) };
  const sums = borrower ? h("p", { class: "soft" }, `${borrower.extra.text.collateral_value} of collateral, `
    + `${borrower.extra.text.debt_value} of debt`) : null;
  return section(`Account ${index}`, sums, h("div", { class: "pair" },
    h("div", {}, h("h3", {}, "Collateral"), part("Collateral", collaterals, posted)),
    h("div", {}, h("h3", {}, "Debt"), part("Debt", debts, [rate, ...ending]))));
}

/** An asset, the asset that it redeems, and so on, without repeats. */
function redemptionChain(id, origins) {
  const chain = new Set();
  for (let next = id; next && !chain.has(next); next = origins.get(next)) chain.add(next);
  return [...chain];
}

function lending({ asset_pools: pools, net_rate: rate }) {
  if (!pools.length) return null;
  const columns = [
    ...amounts("total", (row) => row.receipt_amounts),
    { title: "Worth", number: true, cell: (row) => row.origin_equivalent.extra.text.total },
    { title: "APR", number: true, cell: (row) => percent(row.market_rate.apr) },
  ];
  return section("Lending", h("p", { class: "soft" }, `Net APR ${percent(rate.apr)}`), table("Lending", columns, pools));
}

function staking({ pools, unbonding, extra }, { tz }) {
  const columns = [
    { title: "Pool", cell: (pool) => pool.common.extra.text.duration },
    { title: "Staked", number: true, cell: (pool) => pool.extra.text.amount_sum },
    { title: "Value", number: true, cell: (pool) => pool.extra.value?.extra.text.amount_sum },
  ];
  const leaving = [
    { title: "Unlocks at", cell: (one) => time(Date.parse(one.unlock_at) / 1000, tz) },
    { title: "Amount", number: true, cell: (one) => one.extra.text.amount },
    { title: "Value", number: true, cell: (one) => one.extra.value?.extra.text.amount },
  ];
  const staked = pools.filter((pool) => pool.contents.length);
  if (!staked.length && !unbonding.contents.length) return null;
  return section("Staking", h("p", {}, `${extra.text.bonding_sum} staked, ${extra.text.claimable_rewards} to claim.`),
    staked.length ? table("Stakes by pool", columns, staked) : null,
    unbonding.contents.length ? [h("h3", {}, "Unstaking"), table("Unstaking", leaving, unbonding.contents)] : null);
}

function wallet({ balances, extra }) {
  if (!balances.length) return null;
  const known = ({ values }) => values.kind !== "unknown";
  const columns = [
    { title: "Asset", cell: (row) => (known(row) ? symbol(row.values) : copyable(row.asset.id, "asset id")) },
    { title: "Amount", number: true, cell: ({ values }) => values.extra?.text?.amount ?? values.amount },
    { title: "Value", number: true, cell: ({ values }) => values.extra?.value?.extra.text.amount },
  ];
  return section("Wallet", h("p", { class: "soft" }, `${extra.text.total_value} in all known assets`),
    table("Wallet", columns, balances));
}

// Steps in the chart of unlocks.
const STEPS = 120;

/** A chart of the part that all arrangements have unlocked over time, without reclaims and expiry. It is dotted after the
 * instant `now`. */
function unlocksChart({ arrangements, totals }, { tz }, now) {
  const plans = arrangements.map(({ begins_at: begins, schedule, amounts: { amount } }) => {
    const begin = Date.parse(begins) / 1000;
    return { begin, end: schedule.ends_at ? Date.parse(schedule.ends_at) / 1000 : begin, amount: BigInt(amount) };
  });
  const [first, last] = [Math.min(...plans.map(({ begin }) => begin)), Math.max(...plans.map(({ end }) => end))];
  const step = Math.max(Math.ceil((last - first) / STEPS), 1);
  const t = Array.from({ length: STEPS + 2 }, (_, place) => first + place * step);
  const x = t.map((second) => wall(second, tz));
  const all = plans.reduce((sum, { amount }) => sum + amount, 0n);
  const parts = t.map((second) => Number((plans.reduce((sum, plan) => sum + unlocked(plan, second), 0n) * 10_000n) / all) / 10_000);
  const isPast = t.map((second) => Number(second <= now));
  const columns = [{ title: "At", cell: (place) => x[place] },
    { title: "Unlocked", number: true, cell: (place) => percent(parts[place]) }];
  return {
    x,
    traces: line("Unlocked", x, parts, "--series-4", isPast),
    place: isPast.lastIndexOf(1),
    xaxis: { type: "date", range: [x[0], x.at(-1)] },
    yaxis: { tickformat: ".0%", range: [0, 1.05] },
    zoomable: false,
    dotted: "still to come",
    read: (place) => ({ title: x[place].slice(0, 10),
      rows: [{ name: "Unlocked", value: percent(parts[place]) }, { name: "of", value: totals.extra.text.amount }] }),
    table: { columns, rows: x.map((_, place) => place) },
  };
}

function unlocked({ begin, end, amount }, second) {
  if (second < begin) return 0n;
  return second >= end ? amount : (amount * BigInt(second - begin)) / BigInt(end - begin);
}
