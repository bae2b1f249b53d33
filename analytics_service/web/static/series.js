// Histories of the API for charts. Numbers are rounded to floats for drawing only; tables show the API's text.
import { get } from "./api.js";
import { wall } from "./format.js";
import { bounds, isAll } from "./route.js";
import { ended } from "./status.js";

const RISK = "/analytics/market/history/";
export const PRICES = "/assets/price-history";
export const LEND_RATES = "/markets/lend/rate-history";
export const BORROW_RATES = "/markets/borrow/rate-history";
// Histories by asset, in USD.
export const BY_ASSET = [
  { title: "Deposits by asset", path: "/markets/history/deposits" },
  { title: "Collateral by asset", path: "/markets/history/collateral" },
  { title: "Debt by asset", path: "/markets/history/debt" },
];

/** The dataset of a history. */
export function datasetOf(path) {
  if (path === PRICES) return "prices";
  if ([LEND_RATES, BORROW_RATES].includes(path)) return "rates";
  if (/at-risk|liquidatable|^\/users\//.test(path)) return "positions";
  return path.startsWith("/analytics/") ? "loans" : "markets";
}

// The most assets in a chart.
export const MOST = 12;
// More days than there is data: one bucket, which ends with the range.
const ONE_BUCKET = { period: "d", interval: 10_000, format: "columns" };

/** The most buckets that a chart can show. */
export function most() {
  return innerWidth < 640 ? 100 : 200;
}

/** The parameters of a page of history that covers the range. */
function query(range, tz, more) {
  return { ...range, period: "auto", points: most(), tz, format: "columns", ...more };
}

/** A history in the range: the result of `get` with columns (see the API), `starts` (starts of buckets on the zone's
 * clocks), `x` (middles of buckets, where charts draw their values) and `at` (converts a second for the axis). If the range
 * reaches the end of data that ended long ago, `last` is that instant. */
export async function history(path, route, more = {}, signal = null) {
  const newest = await endOf(path);
  const given = query(await rangeOf(path, route, more.others ? null : more.asset_ids), route.tz, more);
  const answer = await get(path, given, signal);
  const { t, series, range } = answer.data;
  const at = (second) => wall(second, route.tz);
  const last = newest !== null && newest <= range.end ? newest : null;
  const x = t.map((second, place) => at(((t[place + 1] ?? range.end + 1) + second) / 2));
  return { ...answer, path, given, t, starts: t.map(at), x, series, range, at, last };
}

/** As `history`, with the last value of each bucket as `v`, and its number of observations as `n`. */
export async function observed(path, route, signal = null, more = {}) {
  const answer = await history(path, route, { agg: "ohlc", ...more }, signal);
  return { ...answer, series: answer.series.map((one) => ({ ...one, v: one.c })) };
}

/** The parameters of a history of the assets with the largest values at the end of the range, and of the sum of all others,
 * which comes last and has no asset. */
export async function largest(path, route, signal) {
  const { end } = await rangeOf(path, route);
  const { assets } = await (end === "now" ? listing(path) : valuesAt(path, end, route.tz, signal));
  const first = assets.toSorted((one, other) => other.v - one.v).slice(0, MOST);
  return { asset_ids: first.map(({ id }) => id).join(), others: true };
}

/** The history at the start of the range, as one bucket; a chart's first bucket ends later. If the history begins later,
 * its first value, and the instant of it (`since`, unix seconds). */
export async function beginning(path, route, signal = null, more = {}) {
  const { start } = { ...(await rangeOf(path, route)), ...more };
  const at = (second) => get(path, { ...more, start: second, end: second, period: "min", tz: route.tz, format: "columns" }, signal);
  const { data, begins } = await at(start);
  const isYoung = begins > data.range.start;
  if (!isYoung && !isAll(route)) return data;
  return { ...(isYoung ? (await at(begins)).data : data), since: begins };
}

/** The history over the whole range as one bucket, with a summary of its observations. */
export async function whole(path, route, signal) {
  return (await get(path, { ...(await rangeOf(path, route)), ...ONE_BUCKET, agg: "ohlc", tz: route.tz }, signal)).data;
}

/** The range of a history for the API. */
async function rangeOf(path, route, assets = null) {
  return bounds(route, await endOf(path), await begun(path, route, assets));
}

/** The newest instant of a history whose dataset ended long ago, else null. */
function endOf(path) {
  return ended(datasetOf(path), async () => (await listing(path)).asOf);
}

/** The values of a history at an instant: its `assets` with `id`, `symbol` and value (`v`), the start of the first series,
 * and the newest instant by then (`asOf`), in unix seconds; null if there is none. */
async function valuesAt(path, instant, tz, signal = null) {
  const given = { start: instant, end: instant, ...ONE_BUCKET, fill: "last", digits: 6, tz };
  const { data, begins, asOf } = await get(path, given, signal);
  return { assets: data.series.map(({ asset: id, symbol, v }) => ({ id, symbol: symbol ?? "", v: v[0] })), begins, asOf };
}

/** A loader for several parts of a view: it loads once, and again only after a failure. */
export function shared(load) {
  let asked = null;
  return () => (asked ??= load().catch((error) => {
    asked = null;
    throw error;
  }));
}

/** The start of a range that begins with the data (unix seconds); null for other ranges. */
export async function begun(path, route, assets = null) {
  if (!isAll(route)) return null;
  // The history of an address has no listing; the risk of all addresses begins with positions, too.
  const of = datasetOf(path) === "positions" ? `${RISK}debt-at-risk` : path;
  const { begins } = assets ? await get(of, { start: 0, end: 0, ...ONE_BUCKET, asset_ids: assets }) : await listing(of);
  return begins ?? Math.floor(Date.now() / 1000);
}

const listed = new Map();

/** Forgets the listings of series, because there may be new series. */
export function forget() {
  listed.clear();
}

/** The result of `valuesAt` for now. */
export function listing(path) {
  if (!listed.has(path)) listed.set(path, shared(() => valuesAt(path, "now", "UTC")));
  return listed.get(path)();
}

/** Whether a history has a series of an asset. */
export async function has(path, asset) {
  return (await listing(path)).assets.some(({ id }) => id === asset);
}

/** The numbers of a column, or nulls. */
export function numbers(column) {
  return column.map((value) => (value === null ? null : Number(value)));
}

/** Whether a column has any value. */
export function hasValues(column) {
  return column.some((value) => value !== null);
}

/** The sum of the series at each bucket; null where no series has a value, or one is unknown: it has values before and
 * after. */
export function total({ t, series }) {
  const spans = series.map(({ v }) => ends(v));
  return t.map((_, place) => {
    const values = series.map(({ v }) => v[place]);
    const there = values.filter((value) => value !== null);
    const isUnknown = values.some((value, number) => value === null && spans[number][0] < place && place < spans[number][1]);
    return there.length && !isUnknown ? there.reduce((sum, value) => sum + Number(value), 0) : null;
  });
}

/** The values of another history at the buckets of this history, or nulls. */
export function aligned(answer, other, column) {
  const places = new Map(other.t.map((second, place) => [second, place]));
  return answer.t.map((second) => other.series[0]?.[column][places.get(second)] ?? null);
}

/** The places of the first and the last value of a column that is not null, else -1. */
export function ends(column) {
  const isThere = (value) => value !== null;
  return [column.findIndex(isThere), column.findLastIndex(isThere)];
}
