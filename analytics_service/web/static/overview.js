// What the protocol holds, and how it has changed.
import { ApiError, get } from "./api.js";
import { clear, line } from "./charts.js";
import { failed, h, notice } from "./dom.js";
import { figure } from "./figure.js";
import { change, changeInPoints, percent, time, usd, wall } from "./format.js";
import { imported } from "./imported.js";
import { rangeName } from "./route.js";
import { beginning, history, numbers, observed, shared, total } from "./series.js";
import { spark } from "./spark.js";
import { DOLLARS, overTime, stacked } from "./specs.js";
import { ended, families } from "./status.js";
import { tile } from "./tile.js";

/** The view of the whole protocol. */
export async function overview(place, route, signal) {
  const there = await families();
  if (!there.has("markets")) return imported(place, route, there, signal);
  const paths = ["tvl", "deposits", "debt"].map((one) => `/markets/history/${one}`);
  const [tvl, deposits, debt] = paths.map((path, place) =>
    shared(() => (place ? history(path, route, {}, signal) : observed(path, route, signal))));
  const begun = Promise.all(paths.map((path) => beginning(path, route, signal)));
  const moment = until(route);
  const loading = Promise.all([get("/markets", { with_text: true, ...moment }, signal), tvl(), deposits(), debt(), begun,
    // These are of the last hours, and would stand beside numbers of another moment.
    there.has("loans") && !("at" in moment) ? recentLiquidations(route, signal) : null]);
  const charts = [
    figure("Total value locked", tvl, tvlChart),
    figure("Deposits by asset", deposits, stacked),
    figure("Debt by asset", debt, stacked),
  ];
  const tiles = h("div", { class: "tiles" });
  place.replaceChildren(h("h1", {}, "Overview"), tiles, charts[0].panel,
    h("div", { class: "pair" }, charts[1].panel, charts[2].panel));
  try {
    tiles.replaceChildren(...all(route, "at" in moment, ...(await loading)));
  } catch (error) {
    if (signal.aborted || !(error instanceof ApiError)) throw error;
    const again = () => {
      clear(place);
      overview(place, route, signal).catch((fault) => signal.aborted || place.replaceChildren(notice(fault.message, true)));
    };
    tiles.replaceChildren(...failed(error.message, again));
  }
  await Promise.all(charts.map((chart) => chart.done));
}

function tvlChart(answer) {
  const [{ v: values, n }] = answer.series;
  const readings = [{ name: "TVL", values, format: usd }];
  return overTime(answer, line("TVL", answer.x, numbers(values), "--series-1", n), readings, { yaxis: DOLLARS });
}

/** The moment of the numbers on the tiles: the end of a range that is over. */
function until({ custom, end, tz }) {
  const now = wall(Date.now() / 1000, tz).replace(" ", "T");
  return custom && end < now ? { at: end, tz } : {};
}

function all(route, isOver, { data: markets }, tvl, deposits, debt, begun, liquidations) {
  // Before the chart's values the one with which the range begins.
  const [held, lent, owed] = [tvl, deposits, debt].map((one, place) => [...total(begun[place]), ...total(one)]);
  const used = lent.map((value, place) => (value && owed[place] !== null ? owed[place] / value : null));
  const span = (first) => (first > 0 ? `since ${time(tvl.t[first - 1], route.tz)}` : `over ${rangeName(route)}`);
  const [lend, debts] = [markets.lend.supply, markets.borrow.debts.supply];
  const now = Number(lend.principal) && debts.balance !== null ? Number(debts.balance) / Number(lend.principal) : null;
  // The last bucket of a range that is over may end later than the range.
  const atEnd = (value) => (isOver ? value : null);
  return [
    tile("Total value locked", markets.tvl.extra.text.tvl, span, { values: held, end: atEnd(markets.tvl.tvl) }),
    tile("Deposits", lend.extra.text.principal, span, { values: lent, end: atEnd(lend.principal) }),
    tile("Debt", debts.extra.text.balance, span, { values: owed, end: atEnd(debts.balance) }),
    tile("Utilization", percent(now), span, { values: used, end: atEnd(now), compared: changeInPoints }),
    liquidations && liquidationTile(liquidations),
  ].filter(Boolean);
}

/** The sums of liquidations at the ends of days of 24 hours, the last of which ends now, or with the data. */
async function recentLiquidations({ tz }, signal) {
  const last = await ended("loans");
  // Of hours, because a day is not always 24 of them.
  const range = last === null ? { start: "now-192h", end: "now" } : { start: last - 192 * 3600, end: last };
  const query = { ...range, period: "min", interval: 1440, tz, format: "columns" };
  return get("/analytics/market/history/liquidations", query, signal);
}

function liquidationTile({ data }) {
  // Buckets begin at whole minutes, so the last one has no more than seconds.
  const sums = numbers(data.series[0].v.slice(0, -1));
  // Before its first value a sum is unknown: a follower's begins with all that was before.
  const daily = sums.slice(1).map((sum, place) => (sum === null || sums[place] === null ? null : sum - sums[place]));
  const [before, last] = [daily.at(-2), daily.at(-1)];
  const { text } = change(before, last);
  return h("section", { class: "tile" }, h("h2", {}, "Liquidations, 24 h"), h("div", { class: "value" }, usd(last ?? null)),
    h("div", {}, h("span", {}, text), h("span", { class: "soft" }, " from the day before")),
    spark(daily, "Liquidations of each of the last days"));
}
