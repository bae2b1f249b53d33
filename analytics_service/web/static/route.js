// The page's URL has its whole state: view, range and zone. An entry of the browser's history also has the scroll position,
// and the ranges before each zoom.
import { wall } from "./format.js";

// Days of each range that ends now, or with the data; null for the range that begins with the data.
export const RANGES = { "24h": 1, "7d": 7, "30d": 30, "90d": 90, "1y": 365, All: null };
const VIEWS = ["overview", "markets", "risk", "asset", "address"];
const DEFAULTS = { view: "overview", range: "7d" };
// These stay when another view is opened; everything else belongs to one view.
const SHARED = ["range", "start", "end", "tz", "theme"];
const ZONE = "zone";
const listeners = [];

/** The route in the page's URL, with defaults for missing parts. With `custom`, `start` and `end` apply. */
export function current() {
  const given = Object.fromEntries(new URLSearchParams(location.search));
  const route = { ...DEFAULTS, tz: ownZone(), ...given };
  if (!VIEWS.includes(route.view)) route.view = DEFAULTS.view;
  if (!isZone(route.tz)) route.tz = ownZone();
  route.custom = isTime(route.start) && isTime(route.end);
  // A date alone ends with its last second.
  route.isReversed = route.custom && route.start > (route.end.length > 10 ? route.end : `${route.end}T23:59:59`);
  if (!Object.hasOwn(RANGES, route.range)) route.range = DEFAULTS.range;
  return route;
}

/** The page's URL after changes: null removes a parameter; a change of view removes the parameters of the present view.
 * Times are on the clocks of a zone, so the URL then also has the zone. */
export function link(changes) {
  const before = new URLSearchParams(location.search);
  const kept = changes.view ? SHARED : [...before.keys()];
  const after = kept.filter((name) => before.has(name)).map((name) => [name, before.get(name)]);
  const all = { ...Object.fromEntries(after), ...changes };
  if (all.start || all.at) all.tz = changes.tz ?? current().tz;
  const said = Object.entries(all).filter(([name, value]) => value !== null && value !== DEFAULTS[name]);
  return `?${new URLSearchParams(said)}`;
}

// A link from elsewhere may have times without a zone.
if (/[?&](start|at)=/.test(location.search)) history.replaceState(history.state, "", link({}) + location.hash);
// The query of the shown URL. A link within the page does not change it.
let shown = location.search;

/** Goes to the URL with changes. Another range ends all zooms. */
export function go(changes, zoomed = "start" in changes ? null : history.state?.zoomed) {
  history.pushState({ zoomed }, "", link(changes));
  notify(changes);
}

/** Uses a zone from now on, also on later visits without a zone in their URL. */
export function useZone(tz) {
  localStorage.setItem(ZONE, tz);
  go({ tz });
}

function notify(changes) {
  shown = location.search;
  for (const listener of listeners) listener(changes);
}

/** Goes to a part of the range, between times in the charting library's format; `zoomOut` goes back. */
export function zoom(start, end) {
  // The library writes midnight as a date, which the API would read as the end of that day.
  const second = (wall) => (wall.length > 10 ? wall : `${wall} 00:00:00`).replace(" ", "T").slice(0, 19);
  const given = new URLSearchParams(location.search);
  const before = Object.fromEntries(["range", "start", "end"].map((name) => [name, given.get(name)]));
  go({ range: null, start: second(start), end: second(end) }, { before, zoomed: history.state?.zoomed });
}

/** Whether there is a range to zoom out to. */
export function isZoomed() {
  return Boolean(history.state?.zoomed);
}

/** Goes back to the range before the last zoom, if any. */
export function zoomOut() {
  const { before, zoomed } = history.state?.zoomed ?? {};
  if (before) go(before, zoomed);
}

/** Records a change that is already shown in the URL, without an entry in the browser's history: going back would undo it
 * letter by letter. */
export function note(changes) {
  history.replaceState(history.state, "", link(changes) + location.hash);
  shown = location.search;
}

/** Calls back after every change of the URL, also by back and forward. */
export function onChange(listener) {
  listeners.push(listener);
}
addEventListener("popstate", () => location.search === shown || notify({ scroll: scrolled() }));

// The browser would restore the position before the view is drawn.
history.scrollRestoration = "manual";
addEventListener("scrollend", () => history.replaceState({ ...history.state, scroll: scrollY }, ""));

/** The scroll position of this entry of the browser's history. */
export function scrolled() {
  return history.state?.scroll ?? 0;
}

/** Follows a link within the page, unless it is to open in another tab or window. */
export function follow(event) {
  if (event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  history.pushState(null, "", event.currentTarget.getAttribute("href"));
  notify({ view: current().view });
}

/** Whether the range begins with the data. */
export function isAll({ custom, range }) {
  return !custom && RANGES[range] === null;
}

/** The range for the API. It ends now, or at `last`; a range that begins with the data begins at `first` (unix seconds). */
export function bounds(route, last = null, first = null) {
  if (route.custom) return { start: route.start, end: route.end };
  if (isAll(route)) return { start: first, end: last ?? "now" };
  const days = RANGES[route.range];
  return last === null ? { start: `now-${days}d`, end: "now" } : { start: Math.max(last - days * 86_400, 0), end: last };
}

/** The moment for the API, in views without a range: the end of a past range. */
export function moment({ custom, end, tz }) {
  const now = wall(Date.now() / 1000, tz).replace(" ", "T");
  return custom && end < now ? { at: end, tz } : {};
}

/** The changes for a range of the present length that ends at an instant (unix seconds). */
export function rangeUpTo(second, route) {
  const text = (at) => wall(at, route.tz).replace(" ", "T");
  return { range: null, start: text(second - lengthOf(route)), end: text(second) };
}

/** The length of the range in seconds, if it does not begin with the data. */
export function lengthOf(route) {
  return route.custom ? seconds(route.end) - seconds(route.start) : RANGES[route.range] * 86_400;
}

function seconds(wallTime) {
  return Date.parse(`${wallTime}Z`) / 1000;
}

/** The range in words. */
export function rangeName(route) {
  if (isAll(route)) return "all of the past";
  return route.custom ? "the range" : route.range.replace(/(\d+)(\D)/, "$1 $2");
}

// A date, or a date and a time: the API would read a year as a unix second.
function isTime(text) {
  return /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?)?$/.test(text) && !Number.isNaN(Date.parse(`${text}Z`));
}

function ownZone() {
  const chosen = localStorage.getItem(ZONE);
  if (chosen && isZone(chosen)) return chosen;
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return zone && zone !== "Etc/Unknown" ? zone : "UTC";
}

// Browsers also accept offsets; the API does not.
function isZone(name) {
  try {
    return /^[A-Z]/i.test(name) && Boolean(Intl.DateTimeFormat("en", { timeZone: name }));
  } catch {
    return false;
  }
}
