// The overview of a store without markets, such as imported history: its prices and rates.
import { assetLink, assetName, assets, marketsLink, picker, withAlike } from "./assets.js";
import { line } from "./charts.js";
import { assetColors } from "./colors.js";
import { h, notice, table } from "./dom.js";
import { figure } from "./figure.js";
import { percent, price, usd, wall, withSign } from "./format.js";
import { prices } from "./prices.js";
import { rangeName, RANGES } from "./route.js";
import { beginning, BORROW_RATES, BY_ASSET, datasetOf, history, largest, LEND_RATES, listing, MOST, numbers, observed, PRICES, whole } from "./series.js";
import { DOLLARS, overTime, PERCENT, stacked } from "./specs.js";
import { valued } from "./status.js";
import { fact, priceChange } from "./tile.js";

const NO_MARKETS = "This service has no deposits and debt.";
const NOTHING = "It has no prices and rates yet, either. They appear within two minutes after the service starts.";

// A history: its name, the title of its chart, the order of assets, and their formats. A row has the value of an asset at
// the end of the range (`after`), and its change over the range (`moved`), as a fraction.
const HISTORIES = [
  {
    name: "Prices",
    path: PRICES,
    title: "Largest price moves",
    rows: moves,
    worth: ({ moved }) => Math.abs(moved),
    // The value before follows from the change.
    drawn: ({ c }, { after, moved }) => c.map((value) => (value === null || !Number(after) ? null : (value / after) * (1 + Number(moved)) - 1)),
    format: withSign,
    columns: (route) => [
      { title: "Price", number: true, cell: ({ after, late }) => [price(after), late && h("span", { class: "soft" }, `, ${late}`)] },
      { title: `Over ${rangeName(route)}`, number: true, cell: ({ moved }) => priceChange(moved) },
    ],
  },
  rates("Lend rates", LEND_RATES, "Highest lend APRs"),
  rates("Borrow rates", BORROW_RATES, "Highest borrow APRs"),
];

// Histories of sums in USD of all assets.
const SUMS = [
  { title: "Total value locked", path: "/markets/history/tvl" },
  { title: "Loans originated", path: "/analytics/market/history/loans-originated" },
  { title: "Liquidations", path: "/analytics/market/history/liquidations" },
  { title: "Debt at risk", path: "/analytics/market/history/debt-at-risk" },
  { title: "Liquidatable debt", path: "/analytics/market/history/liquidatable-debt" },
];

function rates(name, path, title) {
  const columns = () => [{ title: "APR", number: true, cell: ({ after }) => percent(after) }];
  return { name, path, title, rows: changes, worth: ({ after }) => Number(after), drawn: ({ c }) => numbers(c), format: percent, columns };
}

/** The view of a store without markets. */
export async function imported(place, route, there, signal) {
  const title = h("h1", {}, "Overview");
  const stored = await listed(HISTORIES.filter(({ path }) => there.has(datasetOf(path))));
  const datasets = await valued();
  const parts = datasets.has("markets") ? await listed(BY_ASSET) : [];
  const totals = await listed(SUMS.filter(({ path }) => datasets.has(datasetOf(path))));
  const sums = [
    ...parts.map(({ title, path }) =>
      figure(title, async () => history(path, route, await largest(path, route, signal), signal), stacked)),
    ...totals.map(({ title, path }) => figure(title, () => observed(path, route, signal), (answer) => sum(answer, title))),
  ];
  if (!stored.length && !sums.length) return place.replaceChildren(title, notice(`${NO_MARKETS} ${NOTHING}`));
  const charts = [...stored.map((shown) => ranking(shown, route, signal)), ...sums];
  const [first, ...others] = charts.map(({ panel }) => panel);
  place.replaceChildren(title, parts.length ? "" : h("p", { class: "soft" }, NO_MARKETS), h("div", { class: "tiles" }, stored.map((shown) => tile(shown, route))),
    picker(await assets(there, signal), { view: "asset" }), first, h("div", { class: "pair" }, others),
    h("p", {}, marketsLink("All assets")));
  await Promise.all(charts.map(({ done }) => done));
}

/** The histories that have observations, with the listings of their assets. */
async function listed(histories) {
  const all = await Promise.all(histories.map(async (shown) => ({ ...shown, ...(await listing(shown.path)) })));
  return all.filter(({ begins }) => begins !== null);
}

/** A tile with a history's number of assets, and the dates of its first and last value. */
function tile({ name, assets: { length: count }, begins, asOf }, { tz }) {
  const [since, until] = [begins, asOf].map((second) => wall(second, tz).slice(0, 10));
  return fact(name, `${count} ${count === 1 ? "asset" : "assets"}`, since === until ? until : `${since} to ${until}`);
}

function sum(answer, title) {
  const [{ v, n }] = answer.series;
  if (v.every((value) => value === null)) return null;
  const readings = [{ name: title, values: v, format: usd }];
  // Sums of events are known between observations, too.
  const counts = datasetOf(answer.path) === "loans" ? null : n;
  return overTime(answer, line(title, answer.x, numbers(v), "--series-1", counts), readings, { yaxis: DOLLARS });
}

/** A chart of the first assets, and a table of them with links. */
function ranking({ path, title, rows: load, worth, columns, ...shown }, route, signal) {
  const list = h("div");
  let rows = [];
  async function ranked() {
    rows = (await load(path, route, signal)).sort((row, other) => worth(other) - worth(row)).slice(0, MOST);
    list.replaceChildren(...(rows.length ? [table(`${title}: assets`, [{ title: "Asset", cell: (row) => assetLink(row) }, ...columns(route)], rows)] : []));
    return history(path, route, { asset_ids: rows.map(({ id }) => id).join(), agg: "ohlc" }, signal);
  }
  const chart = figure(title, ranked, (answer) => lines(answer, rows, shown));
  chart.panel.append(list);
  return chart;
}

/** A row for each asset that was observed in the range: its last value there, and the change since the last value before
 * the range, or else since the first value in it. */
async function changes(path, route, signal) {
  const [first, all] = await Promise.all([beginning(path, route, signal), whole(path, route, signal)]);
  const before = new Map(first.series.map(({ asset, v }) => [asset, v[0]]));
  const moved = (from, to) => (Number(from) ? to / from - 1 : 0);
  return withAlike(all.series.filter(({ n, c }) => n[0] > 0 && c[0] !== null).map(({ asset: id, symbol, o, c }) =>
    ({ id, symbol: symbol ?? "", after: c[0], moved: moved(before.get(id) ?? o[0], c[0]) })));
}

/** As `changes`, for prices. For ranges of days up to now, the API calculates them. */
async function moves(path, route, signal) {
  const days = route.custom ? null : RANGES[route.range];
  if (days === null) return changes(path, route, signal);
  const { newest, all } = await prices(days, {}, signal);
  if ((await listing(path)).begins > newest - days * 86_400) return changes(path, route, signal);
  return withAlike(all.filter(({ moved }) => moved !== null).map((row) => ({ ...row, after: row.price })));
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
