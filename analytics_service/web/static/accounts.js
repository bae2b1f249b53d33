// Borrow accounts in a table, each with a link to its address.
import { address, get } from "./api.js";
import { copyable, exact, h } from "./dom.js";
import { cut, short, usd } from "./format.js";
import { paged } from "./list.js";
import { follow, link } from "./route.js";

const PATH = "/analytics/market/borrowers";
// Accounts in a page, and the most accounts that are filtered.
const PAGE = 10, MOST = 1000;
const COLUMNS = [
  { title: "Address", cell: ({ address }) => addressLink(address) },
  { title: "Debt", number: true, cell: ({ debt_value: debt }) => exact(debt, usd) },
  { title: "Collateral", number: true, cell: ({ collateral_value: collateral }) => exact(collateral, usd) },
  { title: "Health", number: true, cell: ({ health }) => (health === null ? "N/A" : exact(health, cut)) },
  { title: "Account no.", number: true, cell: ({ account_index: index }) => index },
];

/** A link to the view of an address. */
export function addressLink(address) {
  return copyable(address, "address", h("a", { href: link({ view: "address", address }), onclick: follow, title: address }, short(address)));
}

/** A list of the first `count` accounts of `query` (see /analytics/market/borrowers) from its offset on; with `keep`, only
 * those that it returns true for. */
export function accounts(caption, query, count, signal, { columns = [], keep = null } = {}) {
  const { offset = 0 } = query;
  async function load({ length }) {
    const page = { offset: offset + length, limit: Math.min(keep ? MOST : PAGE, count - length), with_text: true };
    const { data: found } = count > length ? await get(PATH, { ...query, ...page }, signal) : { data: [] };
    if (keep) return { found: found.filter(keep), isLast: true };
    return { found, isLast: !found.length || length + found.length >= count };
  }
  // Without a limit a file has all accounts; MOST is the greatest limit.
  const file = keep || !count ? null : address(PATH, { ...query, limit: count > MOST ? null : count, format: "csv" });
  return paged(caption, [...COLUMNS, ...columns], load, { none: "No accounts.", file });
}
