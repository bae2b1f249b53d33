// The newest prices of all assets, and their changes.
import { get } from "./api.js";
import { age } from "./format.js";

const DAY_SECONDS = 86_400;

/** The `newest` instant of a price (unix seconds), and a row for each asset: its `id`, `symbol` and `price`, the instant
 * that it is `from`, and its change over `days` (`moved`, a fraction). A price a day behind the newest is `late`. */
export async function prices(days, at, signal) {
  const { data } = await get("/assets/prices", { changes: days === 1 ? "24h" : `${days}d`, ...at }, signal);
  const all = data.map(({ asset: { id }, metadata: { symbol }, price: { price, changes, last_updated_at: from } }) =>
    ({ id, symbol, price, moved: Object.values(changes)[0], from: Date.parse(from) / 1000 }));
  const newest = Math.max(...all.map(({ from }) => from));
  for (const row of all) {
    const behind = newest - row.from;
    if (behind > DAY_SECONDS) row.late = `${age(behind)} older than others`;
    // A price from before these days has no change in them.
    if (behind > days * DAY_SECONDS) row.moved = null;
  }
  return { newest, all };
}
