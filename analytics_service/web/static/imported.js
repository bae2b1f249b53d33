// The overview of a store without markets, such as one of imported history: the prices and rates that there are.
import { get } from "./api.js";
import { assetLink, assetName, assets, marketsLink, picker, withAlike } from "./assets.js";
import { line } from "./charts.js";
import { assetColors } from "./colors.js";
import { h, notice, table } from "./dom.js";
import { figure } from "./figure.js";
import { change, withSign, percent, price, usd, wall } from "./format.js";
import { rangeName } from "./route.js";
import { beginning, begun, BORROW_RATES, familyOf, hasValues, history, LEND_RATES, numbers, observed, PRICES, whole } from "./series.js";
import { DOLLARS, MOST, overTime, PERCENT } from "./specs.js";
import { valued } from "./status.js";
import { fact } from "./tile.js";

const NO_MARKETS = "Deposits and debt are not known here.";
const NOTHING = "There are no prices and no rates yet, either. If the service has just started, they come within a minute or two.";

// A history: its name, the title of its chart, the assets that come first there, and how they are shown. Rows have the
// values of an asset before the range and at its end.
const HISTORIES = [
  {
    name: "Prices",
    path: PRICES,
    title: "Largest price moves",
    worth: ({ before, after }) => Math.abs(moved(before, after)),
    drawn: ({ c }, { before }) => c.map((value) => (value === null ? null : moved(before, value))),
    format: withSign,
    columns: (route) => [
      { title: "Price", number: true, cell: ({ after }) => price(after) },
      { title: `Over ${rangeName(route)}`, number: true, cell: priceChange },
    ],
  },
  rates("Lend rates", LEND_RATES, "Highest lend APRs"),
  rates("Borrow rates", BORROW_RATES, "Highest borrow APRs"),
];

// Histories of sums, each with how its values are written.
const SUMS = [
  { title: "Total value locked", path: "/markets/history/tvl" },
  { title: "Loans originated", path: "/analytics/market/history/loans-originated" },
  { title: "Liquidations", path: "/analytics/market/history/liquidations" },
  { title: "Debt at risk", path: "/analytics/market/history/debt-at-risk" },
  { title: "Liquidatable debt", path: "/analytics/market/history/liquidatable-debt" },
];

function rates(name, path, title) {
  const columns = () => [{ title: "APR", number: true, cell: ({ after }) => percent(after) }];
  return { name, path, title, worth: ({ after }) => Number(after), drawn: ({ c }) => numbers(c), format: percent, columns };
}

/** The view of what there is without markets. */
export async function imported(place, route, there, signal) {
  const title = h("h1", {}, "Overview");
  const extents = await Promise.all(HISTORIES.filter(({ path }) => there.has(familyOf(path)))
    .map((shown) => extent(shown, route, signal)));
  const stored = extents.filter(({ count }) => count);
  const families = await valued();
  const sums = SUMS.filter(({ path }) => families.has(familyOf(path)))
    .map(({ title, path }) => figure(title, () => observed(path, route, signal), (answer) => sum(answer, title)));
  if (!stored.length && !sums.length) return place.replaceChildren(title, notice(`${NO_MARKETS} ${NOTHING}`));
  const charts = [...stored.map((shown) => ranking(shown, route, signal)), ...sums];
  const [first, ...others] = charts.map(({ panel }) => panel);
  place.replaceChildren(title, h("p", { class: "soft" }, NO_MARKETS), h("div", { class: "tiles" }, stored.map(tile)),
    picker(await assets(there, signal), { view: "asset" }), first, h("div", { class: "pair" }, others),
    h("p", {}, marketsLink("All assets")));
  await Promise.all(charts.map(({ done }) => done));
}

/** A history with how many assets it has, and the dates of its first and its last value. */
async function extent(shown, route, signal) {
  const { tz } = route;
  const years = { start: 0, end: "now", period: "y", tz, format: "columns" };
  const { data, asOf } = await get(shown.path, years, signal);
  const count = data.series.filter(({ v }) => hasValues(v)).length;
  if (!count) return { ...shown, count };
  const first = await begun(shown.path, { ...route, custom: false, range: "All" });
  const [since, until] = [first, asOf].map((second) => wall(second, tz).slice(0, 10));
  return { ...shown, count, since, until };
}

function tile({ name, count, since, until }) {
  return fact(name, `${count} ${count === 1 ? "asset" : "assets"}`, since === until ? until : `${since} to ${until}`);
}

function sum(answer, title) {
  const [{ v, n }] = answer.series;
  if (v.every((value) => value === null)) return null;
  const readings = [{ name: title, values: v, format: usd }];
  // Sums of events are known between these, too.
  const counts = familyOf(answer.path) === "loans" ? null : n;
  return overTime(answer, line(title, answer.x, numbers(v), "--series-1", counts), readings, { yaxis: DOLLARS });
}

/** A chart of the assets that come first, and a table of them with links. */
function ranking({ path, title, worth, columns, ...shown }, route, signal) {
  const list = h("div");
  let rows = [];
  async function load() {
    rows = (await changes(path, route, signal)).sort((row, other) => worth(other) - worth(row)).slice(0, MOST);
    list.replaceChildren(...(rows.length ? [table(`${title}: assets`, [{ title: "Asset", cell: (row) => assetLink(row) }, ...columns(route)], rows)] : []));
    return history(path, route, { asset_ids: rows.map(({ id }) => id).join(), agg: "ohlc" }, signal);
  }
  const chart = figure(title, load, (answer) => lines(answer, rows, shown));
  chart.panel.querySelector(".source").before(list);
  return chart;
}

/** A row for each asset that was observed in the range: its value before the range, or else the first in it, and the
 * last. */
async function changes(path, route, signal) {
  const [first, all] = await Promise.all([beginning(path, route, signal), whole(path, route, signal)]);
  const before = new Map(first.series.map(({ asset, v }) => [asset, v[0]]));
  return withAlike(all.series.map(({ asset: id, symbol, o, c, n }) =>
    ({ id, symbol: symbol ?? "", before: before.get(id) ?? o[0], after: c.at(-1), count: n.at(-1) })))
    .filter(({ count }) => count > 0);
}

function lines(answer, rows, { drawn, format }) {
  if (!rows.length) return null;
  const readings = rows.map((row, place) =>
    ({ name: assetName(row), values: drawn(answer.series[place], row), calculated: true, format }));
  const colors = assetColors(rows.map(({ id }) => id));
  const traces = readings.flatMap(({ name, values }, place) =>
    line(name, answer.x, values, colors[place], answer.series[place].n));
  return overTime(answer, traces, readings, { yaxis: PERCENT });
}

/** A change as a fraction of the value before; 0 where that is 0. */
function moved(before, after) {
  return Number(before) ? Number(after) / Number(before) - 1 : 0;
}

function priceChange({ before, after }) {
  const { text, class: color } = change(before, after);
  return h("span", { class: color }, text);
}
