// All assets: links to them, and a form to choose one.
import { get } from "./api.js";
import { h } from "./dom.js";
import { short } from "./format.js";
import { follow, go, link } from "./route.js";
import { BORROW_RATES, LEND_RATES, listing } from "./series.js";

/** Every asset: its `id`, `symbol` and `name`, whether another asset has its symbol (`isAlike`), and if known, its `kind`
 * and the id of its `origin`. */
export async function assets(there, signal, at = {}) {
  if (there.has("prices")) {
    const { data } = await get("/assets", at, signal);
    return withAlike(data.map(({ asset: { id }, metadata: { name, symbol }, classification: { kind, origin_asset: origin } }) =>
      ({ id, symbol, name, kind, origin: origin?.id })));
  }
  // The list of assets comes with prices. Without prices, the histories of rates name their assets.
  const rates = there.has("rates") ? await Promise.all([LEND_RATES, BORROW_RATES].map(listing)) : [];
  return withAlike([...new Map(rates.flatMap((all) => all.assets).map((asset) => [asset.id, { ...asset, name: "" }])).values()]);
}

/** The assets, or their rows, each with `isAlike`. */
export function withAlike(rows) {
  const bySymbol = Map.groupBy(rows, ({ symbol }) => symbol);
  for (const row of rows) row.isAlike = Boolean(row.symbol) && bySymbol.get(row.symbol).length > 1;
  return rows;
}

/** The assets that a text names: the asset with this id, or all with this symbol. */
export function matching(all, text = "") {
  const isSame = (name) => name.toLowerCase() === text.toLowerCase();
  // Like the API, this ignores case in hexadecimal addresses and symbols.
  const tests = [({ id }) => id === text, ({ id }) => id.includes(";0x") && isSame(id),
    ({ symbol }) => symbol && isSame(symbol)];
  return tests.map((test) => all.filter(test)).find((matches) => matches.length) ?? [];
}

/** The name of an asset in a chart. */
export function assetName({ id, symbol, isAlike }) {
  return isAlike ? `${symbol} ${short(id)}` : symbol || short(id);
}

/** A link to the view of an asset, by default with its name. */
export function assetLink(row, text = null) {
  const name = text ?? (row.isAlike ? [row.symbol, h("span", { class: "soft" }, ` ${short(row.id)}`)] : assetName(row));
  return h("a", { href: link({ view: "asset", asset: row.isAlike || !row.symbol ? row.id : row.symbol }), onclick: follow, title: row.id }, name);
}

/** A link to the table of all assets. */
export function marketsLink(text) {
  return h("a", { href: link({ view: "markets" }), onclick: follow }, text);
}

/** A form to choose an asset by symbol, or by id if several share the symbol. `more` also changes the route. */
export function picker(all, more = {}) {
  const field = h("input", { name: "asset", list: "assets", required: true, autocomplete: "off", spellcheck: "false" });
  const options = h("datalist", { id: "assets" });
  // There may be thousands.
  field.addEventListener("focus", () => options.replaceChildren(...all.map((asset) => {
    const isUnique = asset.symbol && !asset.isAlike;
    return h("option", { value: isUnique ? asset.symbol : asset.id, label: isUnique ? asset.name : asset.symbol });
  })), { once: true });
  const submit = (event) => {
    event.preventDefault();
    go({ ...more, asset: field.value.trim() });
  };
  return h("form", { class: "tools", role: "search", onsubmit: submit }, h("label", {}, "Asset (symbol or id)", field),
    options, h("button", {}, "Show"));
}
