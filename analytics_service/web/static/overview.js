// Sums over the protocol, and their history.
import { accounts } from "./accounts.js";
import { ApiError, get, unlessUnknown } from "./api.js";
import { clear, line } from "./charts.js";
import { assetColors } from "./colors.js";
import { exact, failed, h, notice } from "./dom.js";
import { figure } from "./figure.js";
import { changeInPoints, percent, usd } from "./format.js";
import { imported } from "./imported.js";
import { follow, isAll, link, moment } from "./route.js";
import { beginning, begun, BY_ASSET, history, largest, numbers, observed, shared, total } from "./series.js";
import { spark } from "./spark.js";
import { DOLLARS, overTime, stacked } from "./specs.js";
import { ended, datasets } from "./status.js";
import { dateOf, skeleton, spanOf, tile } from "./tile.js";
import { latest } from "./transactions.js";

const TVL = "/markets/history/tvl";
const RECEIPTS = "Receipt tokens stand for deposits, so as collateral they do not count in the total value locked.";
const BORROWERS = 10;
const TILES = ["Total value locked", "Deposits", "Collateral", "Debt", "Utilization", "Liquidations, 24 h"];

/** The view of the whole protocol. */
export async function overview(place, route, signal) {
  const there = await datasets();
  if (!there.has("markets")) return imported(place, route, there, signal);
  const at = moment(route);
  // Liquidations are of the last hours, so they are not shown beside numbers of another moment.
  const hasLiquidations = there.has("loans") && !("at" in at);
  // All charts have the same buckets, from the oldest data on.
  const starts = isAll(route) ? await Promise.all([{ path: TVL }, ...BY_ASSET].map(({ path }) => begun(path, route))) : [];
  const range = starts.length ? { start: Math.min(...starts) } : {};
  const tvl = shared(() => observed(TVL, route, signal, range));
  const chosen = BY_ASSET.map(({ path }) => shared(async () => ({ ...(await largest(path, route, signal)), ...range })));
  // Assigned here, so that colours do not depend on which chart is drawn first.
  const colored = Promise.allSettled(chosen.map((load) => load()))
    .then((all) => assetColors(all.flatMap(({ value }) => value?.asset_ids.split(",") ?? [])));
  const byAsset = BY_ASSET.map(({ path }, place) => shared(async () => {
    await colored;
    return history(path, route, await chosen[place](), signal);
  }));
  const before = Promise.all([beginning(TVL, route, signal, range),
    ...BY_ASSET.map(async ({ path }, place) => beginning(path, route, signal, await chosen[place]()))]);
  const loading = Promise.all([unlessUnknown(get("/markets/supply", at, signal)), tvl(), ...byAsset.map((load) => load()), before,
    hasLiquidations ? recentLiquidations(route, signal) : null]);
  const charts = [
    figure("Total value locked", tvl, tvlChart),
    ...BY_ASSET.map(({ title }, place) => figure(title, byAsset[place], stacked)),
  ];
  const [owing, events] = [h("div"), h("div")];
  const tiles = h("div", { class: "tiles lines" }, skeleton(hasLiquidations ? TILES : TILES.slice(0, -1)));
  const [first, ...others] = charts.map(({ panel }) => panel);
  place.replaceChildren(h("h1", {}, "Overview"), dateOf(route) ?? "", tiles, h("p", { class: "soft" }, RECEIPTS), first, h("div", { class: "pair" }, others, owing), events);
  try {
    tiles.replaceChildren(...all(route, "at" in at, ...(await loading)));
  } catch (error) {
    if (signal.aborted || !(error instanceof ApiError)) throw error;
    const again = () => {
      clear(place);
      overview(place, route, signal).catch((fault) => signal.aborted || place.replaceChildren(notice(fault.message, true)));
    };
    tiles.replaceChildren(...failed(error.message, again));
  }
  await Promise.all(charts.map((chart) => chart.done));
  // Few requests at a time: the service would refuse some.
  if (there.has("positions")) await borrowers(owing, at, signal);
  if (there.has("loans")) await latest(events, "Latest transactions", at, route, signal);
}

function borrowers(place, at, signal) {
  const { list, done } = accounts("Largest borrowers", { sort: "debt", ...at }, BORROWERS, signal);
  const more = h("a", { href: link({ view: "risk" }), onclick: follow }, "All borrow accounts");
  place.replaceChildren(h("section", { class: "panel" }, h("h2", {}, "Largest borrowers"), list, h("p", {}, more)));
  return done;
}

function tvlChart(answer) {
  const [{ v: values, n }] = answer.series;
  const readings = [{ name: "TVL", values, format: usd }];
  return overTime(answer, line("TVL", answer.x, numbers(values), "--ink", n), readings, { yaxis: DOLLARS });
}

function all(route, isOver, { answer, why }, tvl, deposits, collateral, debt, before, liquidations) {
  if (!answer) return [notice(why)];
  const { lend, borrow_debt: debts, borrow_collateral: { total: pool, receipt }, tvl: locked } = answer.data;
  // The values at the start of the range come before the chart's values.
  const histories = [tvl, deposits, collateral, debt];
  const [held, ...parts] = histories.map((history, place) => [...total(before[place]), ...total(history)]);
  // While a price is unknown, the other sums would be too low.
  const [lent, posted, owed] = parts.map((sums) => sums.map((value, place) => (held[place] === null ? null : value)));
  const used = lent.map((value, place) => (value && owed[place] !== null ? owed[place] / value : null));
  const [ofAll, ofDeposits, ofCollateral, ofDebt] = histories.map((history, place) => spanOf(before[place], history, route));
  const now = Number(lend.principal) && debts.balance !== null ? Number(debts.balance) / Number(lend.principal) : null;
  // The last bucket of a past range may end after the range.
  const atEnd = (value) => (isOver ? value : null);
  return [
    tile("Total value locked", exact(locked.tvl, usd), ofAll, { values: held, end: atEnd(locked.tvl) }),
    tile("Deposits", exact(lend.principal, usd), ofDeposits, { values: lent, end: atEnd(lend.principal) }),
    tile("Collateral", exact(pool.balance, usd), ofCollateral, { values: posted, end: atEnd(pool.balance) },
      Number(receipt.balance) ? `incl. ${usd(receipt.balance)} receipts` : null),
    tile("Debt", exact(debts.balance, usd), ofDebt, { values: owed, end: atEnd(debts.balance) }),
    tile("Utilization", percent(now), ofDebt, { values: used, end: atEnd(now), compared: changeInPoints }),
    liquidations && liquidationTile(liquidations),
  ].filter(Boolean);
}

/** The sums of liquidations at the ends of days of 24 hours; the last day ends now, or with the data. */
async function recentLiquidations({ tz }, signal) {
  const last = await ended("loans");
  // Counted in hours, because a day may have 23 or 25.
  const range = last === null ? { start: "now-192h", end: "now" } : { start: last - 192 * 3600, end: last };
  const query = { ...range, period: "min", interval: 1440, tz, format: "columns" };
  return get("/analytics/market/history/liquidations", query, signal);
}

function liquidationTile({ data }) {
  // Buckets begin at whole minutes, so the last bucket has only seconds.
  const sums = numbers(data.series[0].v.slice(0, -1));
  // Before its first value a sum is unknown: a follower's first value includes everything before.
  const daily = sums.slice(1).map((sum, place) => (sum === null || sums[place] === null ? null : sum - sums[place]));
  const [before, last] = [daily.at(-2), daily.at(-1)];
  return h("section", { class: "tile" }, h("h2", {}, "Liquidations, 24 h"), h("div", { class: "value" }, usd(last ?? null)),
    h("div", { class: "soft" }, `day before: ${usd(before ?? null)}`),
    spark(daily, "Liquidations on each of the last days"));
}
