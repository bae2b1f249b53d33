// The status of the service, requested at most every few seconds by all parts of the page together.
import { get } from "./api.js";

const FRESH = 10_000;
// Seconds after which a dataset has ended: from then on, the shortest range up to now would be empty.
const LONG_AGO = 86_400;
let asked = { at: -Infinity, answer: null };

/** The answer of /status/health. */
export function status() {
  const now = performance.now();
  if (now - asked.at > FRESH) {
    asked = { at: now, answer: get("/status/health").then(({ data }) => data) };
    // Failures are not cached.
    asked.answer.catch(() => (asked = { at: -Infinity, answer: null }));
  }
  return asked.answer;
}

/** The datasets that have a snapshot, so that the page requests nothing else. While the store cannot be reached, all
 * datasets, because the service has answers in memory. */
export async function datasets() {
  const { snapshots, store } = await status();
  if (!store.reachable) return { has: () => true };
  return new Set(snapshots.filter(({ newest }) => newest !== null).map(({ dataset }) => dataset));
}

/** The datasets with snapshots, or at least values of a history. */
export async function valued() {
  const { snapshots } = await status();
  return new Set(snapshots.filter(({ newest, fresh }) => newest !== null || fresh).map(({ dataset }) => dataset));
}

/** The newest instant (unix seconds) of a dataset that ended long ago, else null. For a dataset without snapshots,
 * `newestValue` returns the newest instant of a history. */
export async function ended(dataset, newestValue = null) {
  const { snapshots } = await status();
  const last = snapshots.find((snapshot) => snapshot.dataset === dataset);
  if (!last) return null;
  const valuesOnly = last.newest === null && last.fresh && newestValue;
  const newest = valuesOnly ? await newestValue() : last.newest && Date.parse(last.newest) / 1000;
  return newest !== null && Date.now() / 1000 - newest > LONG_AGO ? newest : null;
}
