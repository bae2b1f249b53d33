// One asset: its price, rates, utilization, collateral and loans.
import { assetLink, assetName, assets, marketsLink, matching, picker } from "./assets.js";
import { candles, colorOf, line } from "./charts.js";
import { compared, comparison } from "./compare.js";
import { copyable, exact, h, notice } from "./dom.js";
import { figure } from "./figure.js";
import { percent, price as priced, usd } from "./format.js";
import { headline, related } from "./headline.js";
import { go } from "./route.js";
import { aligned, BORROW_RATES, datasetOf, has, history, LEND_RATES, listing, numbers, PRICES, shared } from "./series.js";
import { DOLLARS, overTime, PERCENT, PRICE } from "./specs.js";
import { datasets } from "./status.js";
import { dateOf } from "./tile.js";

// More candles would be hard to see, and often hold one observation each.
const CANDLES = 60;
const NO_ASSETS = "There are no assets yet. They appear within two minutes after the service starts.";
// The histories of an asset.
const PATHS = [PRICES, LEND_RATES, BORROW_RATES, "/markets/history/utilization", "/markets/history/collateral",
  "/analytics/market/history/loans-originated/by-asset"];

/** The view of the asset that the route names by id or symbol. */
export async function asset(place, route, signal) {
  const there = await datasets();
  const all = await assets(there, signal);
  if (!all.length) return place.replaceChildren(h("h1", {}, "Asset"), notice(NO_ASSETS));
  const matches = matching(all, route.asset);
  const back = h("div", { class: "tools" }, marketsLink("All markets"), picker(all));
  if (matches.length !== 1) {
    return place.replaceChildren(h("h1", {}, "Asset"), ...unclear(route.asset, matches), back);
  }
  const [found] = matches;
  const [tiles, pending] = [headline(found, all, there, route, signal), h("div", { class: "pending" }, "Loading…")];
  place.replaceChildren(back, h("h1", {}, found.symbol, found.name === found.symbol ? null : [" ", h("span", { class: "soft" }, found.name)]),
    h("p", { class: "soft" }, copyable(found.id, "asset id"), related(found, all)), dateOf(route) ?? "", tiles.element, pending);
  await Promise.all([tiles.done, showCharts(pending, chartsOf(found, all, there, route, signal))]);
}

/** Replaces a placeholder with charts, and waits for their numbers. */
async function showCharts(pending, loading) {
  const charts = await loading;
  const [first, ...others] = charts.map((chart) => chart.panel);
  pending.replaceWith(first ?? notice("The asset has no price and no market."), h("div", { class: "pair" }, others));
  await Promise.all(charts.map((chart) => chart.done));
}

/** The charts of all histories of an asset. They start loading. */
async function chartsOf(asset, all, there, route, signal) {
  // All charts have the same buckets, so that one crosshair goes through them.
  const buckets = route.candles ? { points: CANDLES } : {};
  const of = (path, ...more) => history(path, route, { asset_ids: [asset.id, ...more].join(), agg: "ohlc", ...buckets }, signal);
  const [prices, lend, borrow, usage, posted, originated] = await Promise.all(
    PATHS.map(async (path) => (there.has(datasetOf(path)) && (await has(path, asset.id)) ? path : null)));
  const [lent, owed, use] = [lend, borrow, usage].map((path) => path && shared(() => of(path)));
  return [
    prices && await priceFigure(asset, all, of, route),
    (lent ?? owed) && figure("Lend and borrow APR", () => Promise.all([lent, owed].filter(Boolean).map((load) => load())), apr),
    use && figure("Utilization", use, used),
    use && lent && owed && figure("Utilization against APR", () => Promise.all([lent(), owed(), use()]), curve),
    posted && figure("Collateral", () => of(posted), collateral),
    originated && figure("Loans per day", () => loans(originated, asset.id, route, signal), daily),
  ].filter(Boolean);
}

/** The message for a route that names no asset, or several. */
function unclear(text, matches) {
  if (!text) return [notice("No asset is chosen.", true)];
  if (!matches.length) return [notice(`There is no asset ${text}.`, true)];
  return [notice(`${matches.length} assets have the symbol ${text}. Choose one by its id.`),
    h("ul", {}, matches.map((match) => h("li", {}, assetLink(match, h("code", {}, match.id)))))];
}

/** The chart of the price, alone or compared with another asset. */
async function priceFigure(asset, all, of, route) {
  const priced = new Set((await listing(PRICES)).assets.map(({ id }) => id));
  const others = all.filter(({ id }) => priced.has(id) && id !== asset.id);
  const [other] = matching(others, route.with);
  const choice = others.length ? comparison(others, other?.id) : null;
  if (!other) return figure("Price", () => of(PRICES), (answer) => price(answer, route), priceTools(route, choice));
  return figure(`Price of ${assetName(asset)} and ${assetName(other)}, change`, () => of(PRICES, other.id),
    (answer) => compared(answer, [asset, other]), h("div", { class: "tools" }, choice));
}

/** Controls for line or candles, and a linear or logarithmic axis. The URL keeps both. */
function priceTools({ candles: asCandles, log }, comparing) {
  const choice = (name, isOn, changes) =>
    h("button", { type: "button", "aria-pressed": isOn, onclick: () => go(changes) }, name);
  return h("div", { class: "tools" },
    h("fieldset", {}, h("legend", { class: "hidden" }, "Price as"),
      choice("Line", !asCandles, { candles: null }), choice("Candles", Boolean(asCandles), { candles: "1" })),
    choice("Log axis", Boolean(log), { log: log ? null : "1" }), comparing);
}

function price(loaded, route) {
  const answer = route.candles ? joined(loaded) : loaded;
  const [series] = answer.series;
  const traces = route.candles
    ? candles("Price", answer.x, series)
    : line("Price", answer.x, numbers(series.c), "--ink", series.n);
  const columns = { Open: "o", High: "h", Low: "l", Close: "c" };
  const readings = Object.entries(columns).map(([name, key]) => ({ name, values: series[key], format: priced }));
  const seen = { name: "Observations", values: series.n, format: (count) => count || "none, carried", counts: true };
  return overTime(answer, traces, [...readings, seen], { log: Boolean(route.log), yaxis: PRICE });
}

/** Candles of hours. The rest of a day of 23 or 25 hours joins the candle before it. */
function joined(answer) {
  const { t, range: { end, interval }, series: [series] } = answer;
  const width = { min: 60, h: 3600 }[interval.unit] * interval.value;
  const begins = [...t.keys()].filter((place) => place === 0 || !(t[place + 1] - t[place] <= width / 2));
  const first = (values, isBefore) => values.filter((value) => value !== null).toSorted(isBefore)[0] ?? null;
  const candle = (place, number) => {
    const [o, high, l, c, n] = ["o", "h", "l", "c", "n"].map((key) => series[key].slice(place, begins[number + 1]));
    return { o: o[0], h: first(high, (one, other) => other - one), l: first(l, (one, other) => one - other), c: c.at(-1),
      n: n.reduce((sum, count) => sum + count) };
  };
  const made = begins.map(candle);
  const columns = ["o", "h", "l", "c", "n"].map((key) => [key, made.map((one) => one[key])]);
  const middle = (place, number) => answer.at(((t[begins[number + 1]] ?? end + 1) + t[place]) / 2);
  return { ...answer, t: begins.map((place) => t[place]), starts: begins.map((place) => answer.starts[place]),
    x: begins.map(middle), series: [{ ...series, ...Object.fromEntries(columns) }] };
}

/** The chart of one or both rates of an asset. */
function apr(...answers) {
  const [first] = answers;
  const isLend = ({ path }) => path === LEND_RATES;
  const [lend, borrow] = [answers.find(isLend), answers.find((answer) => !isLend(answer))];
  const column = (answer, key) => (answer ? aligned(first, answer, key) : null);
  const [lent, owed] = [column(lend, "c"), column(borrow, "c")];
  const traces = [
    ...(lent ? line("Lend", first.x, numbers(lent), "--series-1", column(lend, "n")) : []),
    ...(owed ? line("Borrow", first.x, numbers(owed), "--series-2", column(borrow, "n")) : []),
  ];
  const readings = [["Lend", lent], ["Borrow", owed]];
  if (lent && owed) {
    const spread = owed.map((value, place) =>
      value === null || lent[place] === null ? null : Number(value) - Number(lent[place]));
    const counts = column(lend, "n").map((count, place) => Math.min(count, column(borrow, "n")[place]));
    traces.push(...line("Spread", first.x, spread, "--series-8", counts));
    readings.push(["Spread", spread, true]);
  }
  const there = readings.filter(([, values]) => values);
  const shown = there.map(([name, values, calculated]) => ({ name, values, calculated, format: percent }));
  return overTime(first, traces, shown, { yaxis: PERCENT });
}

function used(answer) {
  const [series] = answer.series;
  const traces = line("Utilization", answer.x, numbers(series.c), "--series-4", series.n);
  return overTime(answer, traces, [{ name: "Utilization", values: series.c, format: percent }], { yaxis: PERCENT });
}

function collateral(answer) {
  const [series] = answer.series;
  const traces = line("Collateral", answer.x, numbers(series.c), "--series-7", series.n);
  return overTime(answer, traces, [{ name: "Collateral", values: series.c, format: usd }], { yaxis: DOLLARS });
}

/** A chart of the rates at each utilization in the range, and of the present rates. */
function curve(lend, borrow, utilization) {
  const [used, lent, owed] = [utilization.series[0].c, aligned(utilization, lend, "c"), aligned(utilization, borrow, "c")];
  const places = [...used.keys()].filter((place) => [used, lent, owed].every((column) => column[place] !== null));
  if (!places.length) return null;
  const now = places.at(-1);
  const sorted = places.toSorted((one, other) => used[one] - used[other]);
  const x = sorted.map((place) => Number(used[place]));
  const drawn = (name, values, color) => {
    const y = sorted.map((place) => Number(values[place]));
    const marker = { color: colorOf(color), size: sorted.map((place) => (place === now ? 11 : 4)), line: { width: 0 }, opacity: 1 };
    return { x, y, name, type: "scatter", mode: "lines+markers", hoverinfo: "skip", line: { color: colorOf(color), width: 1.2 }, marker };
  };
  const columns = [["Utilization", used], ["Lend", lent], ["Borrow", owed]].map(([title, values]) =>
    ({ title, number: true, cell: (place) => exact(values[place], percent) }));
  return {
    traces: [drawn("Lend", lent, "--series-1"), drawn("Borrow", owed, "--series-2")],
    place: sorted.indexOf(now),
    xaxis: { ...PERCENT, title: { text: "Utilization" } },
    table: { columns, rows: sorted },
    yaxis: PERCENT,
  };
}

/** The loans of each day. */
function loans(path, id, route, signal) {
  return history(path, route, { period: "d", points: null, limit: 10_000, asset_ids: id, agg: "delta" }, signal);
}

function daily(answer) {
  const { t, x, range, series: [{ v: values }] } = answer;
  // The last day is drawn in full, though the range may end within it.
  const end = t.at(-1) + 86_400;
  const days = { ...answer, x: x.with(-1, answer.at(end - 43_200)), range: { ...range, end: end - 1 } };
  const width = t.map((second, place) => 1000 * ((t[place + 1] ?? end) - second) * 0.9);
  const marker = { color: colorOf("--series-6") };
  const bars = { x: days.x, y: numbers(values), width, name: "Loans", type: "bar", hoverinfo: "skip", marker };
  return overTime(days, [bars], [{ name: "Loans", values, format: usd }], { yaxis: { ...DOLLARS, rangemode: "tozero" } });
}
