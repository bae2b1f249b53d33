// Histories of the API as what charts draw. Numbers are rounded to floats for drawing only; tables show the API's text.
import { get } from "./api.js";
import { wall } from "./format.js";
import { bounds } from "./route.js";

/** The parameters of a page of history that covers the range in as many buckets as a chart can show. */
function query(route, more = {}) {
  const points = innerWidth < 640 ? 100 : 200;
  return { ...bounds(route), period: "auto", points, tz: route.tz, format: "columns", ...more };
}

/** A history in the range: columns (see the API) with `x`, the starts of buckets on the zone's clocks, `at`,
 * which puts any second there, and what `get` tells of the request. */
export async function history(path, route, more = {}, signal = null) {
  const given = query(route, more);
  const answer = await get(path, given, signal);
  const { t, series, range } = answer.data;
  const at = (second) => wall(second, route.tz);
  return { ...answer, path, given, t, x: t.map(at), series, range, at };
}

/** The same history at the instant at which the range begins, as one bucket. A chart's first bucket ends later. */
export function beginning(path, route, signal = null) {
  const { start } = bounds(route);
  return get(path, { start, end: start, period: "min", tz: route.tz, format: "columns" }, signal).then(({ data }) => data);
}

/** Makes a loader for several parts of a view: it loads only once, and again only after a failure. */
export function shared(load) {
  let asked = null;
  return () => (asked ??= load().catch((error) => {
    asked = null;
    throw error;
  }));
}

const assets = new Map();

/** Forgets which series there are, because there may be new ones. */
export function forget() {
  assets.clear();
}

/** Whether a history has a series of an asset. */
export async function has(path, asset, signal) {
  // One bucket of all series names them.
  const all = { start: 0, end: 0, period: "y", format: "columns" };
  if (!assets.has(path)) assets.set(path, (await get(path, all, signal)).data.series.map((series) => series.asset));
  return assets.get(path).includes(asset);
}

/** Numbers of a column; null where there is none. */
export function numbers(column) {
  return column.map((value) => (value === null ? null : Number(value)));
}

/** Whether a column has any value. */
export function hasValues(column) {
  return column.some((value) => value !== null);
}

/** The sum of some series at each bucket; null where none has a value. */
export function total({ t, series }) {
  return t.map((_, place) => {
    const there = series.map((one) => one.v[place]).filter((value) => value !== null);
    return there.length ? there.reduce((sum, value) => sum + Number(value), 0) : null;
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
