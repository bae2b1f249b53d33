// Histories of the API as what charts draw. Numbers are rounded to floats for drawing only; tables show the API's text.
import { get } from "./api.js";
import { wall } from "./format.js";
import { bounds, isAll } from "./route.js";
import { ended } from "./status.js";

const RISK = "/analytics/market/history/";
export const PRICES = "/assets/price-history";
export const LEND_RATES = "/markets/lend/rate-history";
export const BORROW_RATES = "/markets/borrow/rate-history";
// Histories of sums in USD of each asset.
export const BY_ASSET = [
  { title: "Deposits by asset", path: "/markets/history/deposits" },
  { title: "Collateral by asset", path: "/markets/history/collateral" },
  { title: "Debt by asset", path: "/markets/history/debt" },
];

/** The dataset of the snapshots that a history is made from. */
export function datasetOf(path) {
  if (path === PRICES) return "prices";
  if ([LEND_RATES, BORROW_RATES].includes(path)) return "rates";
  if (/at-risk|liquidatable|^\/users\//.test(path)) return "positions";
  return path.startsWith("/analytics/") ? "loans" : "markets";
}

// A chart tells apart no more assets than this.
export const MOST = 12;
// So many days are more than there are of data, and a bucket ends with the range.
const ONE_BUCKET = { period: "d", interval: 10_000, format: "columns" };

/** As many buckets as a chart can show. */
export function most() {
  return innerWidth < 640 ? 100 : 200;
}

/** The parameters of a page of history that covers the range. */
function query(range, tz, more) {
  return { ...range, period: "auto", points: most(), tz, format: "columns", ...more };
}

/** A history in the range: columns (see the API) with `starts`, the first seconds of buckets on the zone's clocks, `x`,
 * their middles, where charts draw what is of a bucket, `at`, which puts any second there, and what `get` tells of the request. If the range reaches the end of data that ended long
 * ago, `last` is that instant. */
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

/** The same, with the last value of each bucket as `v` and the count of its observations as `n`. */
export async function observed(path, route, signal = null, more = {}) {
  const answer = await history(path, route, { agg: "ohlc", ...more }, signal);
  return { ...answer, series: answer.series.map((one) => ({ ...one, v: one.c })) };
}

/** The parameters of a history of the assets that are worth most at the end of the range, and of all others as one, which
 * comes last and has no asset. */
export async function largest(path, route, signal) {
  const { end } = await rangeOf(path, route);
  const { assets } = await (end === "now" ? listing(path) : valuesAt(path, end, route.tz, signal));
  const first = assets.toSorted((one, other) => other.v - one.v).slice(0, MOST);
  return { asset_ids: first.map(({ id }) => id).join(), others: true };
}

/** The history at the instant at which the range begins, as one bucket; a chart's first bucket ends later. If the history
 * begins later, or the range with it, it is that at its own beginning (`since`, unix seconds). */
export async function beginning(path, route, signal = null, more = {}) {
  const { start } = { ...(await rangeOf(path, route)), ...more };
  const at = (second) => get(path, { ...more, start: second, end: second, period: "min", tz: route.tz, format: "columns" }, signal);
  const { data, begins } = await at(start);
  const isYoung = begins > data.range.start;
  if (!isYoung && !isAll(route)) return data;
  return { ...(isYoung ? (await at(begins)).data : data), since: begins };
}

/** The same history over the whole range as one bucket, with what it has observed there. */
export async function whole(path, route, signal) {
  return (await get(path, { ...(await rangeOf(path, route)), ...ONE_BUCKET, agg: "ohlc", tz: route.tz }, signal)).data;
}

/** The range as the API takes it for a history. */
async function rangeOf(path, route, assets = null) {
  return bounds(route, await endOf(path), await begun(path, route, assets));
}

/** The newest instant of a history whose dataset ended long ago; null of any other. */
function endOf(path) {
  return ended(datasetOf(path), async () => (await listing(path)).asOf);
}

/** What all series of a history have at an instant: their `assets` with `id`, `symbol` and value (`v`), when the first of
 * them begins, and the newest instant by then (`asOf`), unix seconds; null where there is none. */
async function valuesAt(path, instant, tz, signal = null) {
  const given = { start: instant, end: instant, ...ONE_BUCKET, fill: "last", digits: 6, tz };
  const { data, begins, asOf } = await get(path, given, signal);
  return { assets: data.series.map(({ asset: id, symbol, v }) => ({ id, symbol: symbol ?? "", v: v[0] })), begins, asOf };
}

/** Makes a loader for several parts of a view: it loads only once, and again only after a failure. */
export function shared(load) {
  let asked = null;
  return () => (asked ??= load().catch((error) => {
    asked = null;
    throw error;
  }));
}

/** Where a range that begins with the data does (unix seconds); null for other ranges. */
export async function begun(path, route, assets = null) {
  if (!isAll(route)) return null;
  // What an address had is asked for bucket by bucket; positions of all are as old.
  const of = datasetOf(path) === "positions" ? `${RISK}debt-at-risk` : path;
  const { begins } = assets ? await get(of, { start: 0, end: 0, ...ONE_BUCKET, asset_ids: assets }) : await listing(of);
  return begins ?? Math.floor(Date.now() / 1000);
}

const listed = new Map();

/** Forgets which series there are, because there may be new ones. */
export function forget() {
  listed.clear();
}

/** What `valuesAt` tells of now. */
export function listing(path) {
  if (!listed.has(path)) listed.set(path, shared(() => valuesAt(path, "now", "UTC")));
  return listed.get(path)();
}

/** Whether a history has a series of an asset. */
export async function has(path, asset) {
  return (await listing(path)).assets.some(({ id }) => id === asset);
}

/** Numbers of a column; null where there is none. */
export function numbers(column) {
  return column.map((value) => (value === null ? null : Number(value)));
}

/** Whether a column has any value. */
export function hasValues(column) {
  return column.some((value) => value !== null);
}

/** The sum of some series at each bucket; null where none has a value, or one is unknown: it has values before and
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

/** The values of another history at the buckets of this one; null where it has none. */
export function aligned(answer, other, column) {
  const places = new Map(other.t.map((second, place) => [second, place]));
  return answer.t.map((second) => other.series[0]?.[column][places.get(second)] ?? null);
}

/** The places of the first and the last value of a column that are not null; -1 where there is none. */
export function ends(column) {
  const isThere = (value) => value !== null;
  return [column.findIndex(isThere), column.findLastIndex(isThere)];
}
