// Histories of the API as what charts draw. Numbers are rounded to floats for drawing only; tables show the API's text.
import { get } from "./api.js";
import { wall } from "./format.js";
import { bounds, isAll } from "./route.js";
import { ended } from "./status.js";

const RISK = "/analytics/market/history/";
export const PRICES = "/assets/price-history";
export const LEND_RATES = "/markets/lend/rate-history";
export const BORROW_RATES = "/markets/borrow/rate-history";

/** The family of the snapshots that a history is made from. */
export function familyOf(path) {
  if (path === PRICES) return "prices";
  if ([LEND_RATES, BORROW_RATES].includes(path)) return "rates";
  if (/at-risk|liquidatable|^\/users\//.test(path)) return "positions";
  return path.startsWith("/analytics/") ? "loans" : "markets";
}

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
  const newest = await ended(familyOf(path), path);
  const given = query(bounds(route, newest, await begun(path, route, more.asset_ids)), route.tz, more);
  const answer = await get(path, given, signal);
  const { t, series, range } = answer.data;
  const at = (second) => wall(second, route.tz);
  const last = newest !== null && newest <= range.end ? newest : null;
  const x = t.map((second, place) => at(((t[place + 1] ?? range.end + 1) + second) / 2));
  return { ...answer, path, given, t, starts: t.map(at), x, series, range, at, last };
}

/** The same, with the last value of each bucket as `v` and the count of its observations as `n`. */
export async function observed(path, route, signal = null) {
  const answer = await history(path, route, { agg: "ohlc" }, signal);
  return { ...answer, series: answer.series.map((one) => ({ ...one, v: one.c })) };
}

/** The same history at the instant at which the range begins, as one bucket. A chart's first bucket ends later. */
export async function beginning(path, route, signal = null, more = {}) {
  const { start } = { ...bounds(route, await ended(familyOf(path), path), await begun(path, route)), ...more };
  return (await get(path, { ...more, start, end: start, period: "min", tz: route.tz, format: "columns" }, signal)).data;
}

/** The same history over the whole range as one bucket, with what it has observed there. */
export async function whole(path, route, signal) {
  const range = bounds(route, await ended(familyOf(path), path), await begun(path, route));
  // So many days are more than there are of data, and buckets end with the range.
  const bucket = { period: "d", interval: 10_000, agg: "ohlc" };
  return (await get(path, { ...range, ...bucket, tz: route.tz, format: "columns" }, signal)).data;
}

/** Makes a loader for several parts of a view: it loads only once, and again only after a failure. */
export function shared(load) {
  let asked = null;
  return () => (asked ??= load().catch((error) => {
    asked = null;
    throw error;
  }));
}

/** Where a range that begins with the data does (unix seconds): at the beginning of the first day with a value; null for
 * other ranges. */
export function begun(path, route, assets) {
  if (!isAll(route)) return null;
  // What an address had is asked for bucket by bucket; positions of all are as old.
  const of = familyOf(path) === "positions" ? `${RISK}debt-at-risk` : path;
  const key = `${of} ${assets} ${route.tz}`;
  if (!firsts.has(key)) firsts.set(key, shared(() => firstDay(of, { asset_ids: assets, tz: route.tz, format: "columns" })));
  return firsts.get(key)();
}

async function firstDay(path, given) {
  const years = (await get(path, { start: 0, end: "now", period: "y", ...given })).data;
  const year = firstOf(years);
  if (year === null) return Math.floor(Date.now() / 1000);
  return firstOf((await get(path, { start: year, end: year + 366 * 86_400, period: "d", limit: 400, ...given })).data) ?? year;
}

/** The beginning of the first bucket with a value of any series. */
function firstOf({ t, series }) {
  const places = series.map(({ v }) => ends(v)[0]).filter((place) => place >= 0);
  return places.length ? t[Math.min(...places)] : null;
}

const [listed, firsts] = [new Map(), new Map()];

/** Forgets which series there are, because there may be new ones, and where they begin. */
export function forget() {
  listed.clear();
  firsts.clear();
}

/** The series of a history: the `id` and `symbol` of each asset. */
export async function assetsOf(path, signal) {
  // One bucket of all series names them.
  const all = { start: 0, end: 0, period: "y", format: "columns" };
  const asset = (series) => ({ id: series.asset, symbol: series.symbol ?? "" });
  if (!listed.has(path)) listed.set(path, (await get(path, all, signal)).data.series.map(asset));
  return listed.get(path);
}

/** Whether a history has a series of an asset. */
export async function has(path, asset, signal) {
  return (await assetsOf(path, signal)).some(({ id }) => id === asset);
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
