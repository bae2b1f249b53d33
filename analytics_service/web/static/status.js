// The service's health, requested at most every few seconds for all parts of the page together.
import { get } from "./api.js";

const FRESH = 10_000;
// Seconds after which a dataset has ended: from then on, the shortest range up to now would be empty.
const LONG_AGO = 86_400;
let asked = { at: -Infinity, answer: null };

/** What /status/health says. */
export function status() {
  const now = performance.now();
  if (now - asked.at > FRESH) {
    asked = { at: now, answer: get("/status/health").then(({ data }) => data) };
    // A failure is not kept.
    asked.answer.catch(() => (asked = { at: -Infinity, answer: null }));
  }
  return asked.answer;
}

/** The datasets that have a snapshot, so that nothing is asked for that cannot be there. While the store cannot be
 * reached nobody knows: all of them then, because the service has answers in memory. */
export async function datasets() {
  const { snapshots, store } = await status();
  if (!store.reachable) return { has: () => true };
  return new Set(snapshots.filter(({ newest }) => newest !== null).map(({ dataset }) => dataset));
}

/** The datasets that have at least values of a history. */
export async function valued() {
  const { snapshots } = await status();
  return new Set(snapshots.filter(({ newest, fresh }) => newest !== null || fresh).map(({ dataset }) => dataset));
}

/** The newest instant (unix seconds) of a dataset that ended long ago; null of any other. Of a dataset without snapshots
 * `newestValue` tells that of a history. */
export async function ended(dataset, newestValue = null) {
  const { snapshots } = await status();
  const last = snapshots.find((snapshot) => snapshot.dataset === dataset);
  if (!last) return null;
  const valuesOnly = last.newest === null && last.fresh && newestValue;
  const newest = valuesOnly ? await newestValue() : last.newest && Date.parse(last.newest) / 1000;
  return newest !== null && Date.now() / 1000 - newest > LONG_AGO ? newest : null;
}
