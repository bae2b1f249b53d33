// An asset at one moment: its price and changes, supply, and markets.
import { ApiError, get, unlessUnknown } from "./api.js";
import { assetLink, assetName } from "./assets.js";
import { exact, failed, h } from "./dom.js";
import { age, percent, price, time, usd } from "./format.js";
import { moment } from "./route.js";
import { PRICES } from "./series.js";
import { fact, priceChange, skeleton } from "./tile.js";

const HOUR = 3600;
const SPANS = { "24h": 24 * HOUR, "7d": 7 * 24 * HOUR, "30d": 30 * 24 * HOUR };
// One bucket that begins in the minute or hour of the range's start, so that nothing earlier counts. A second bucket has
// the rest of the range.
const EXTREMES = { "24\u00a0h": { period: "min", interval: 24 * 60, seconds: 24 * HOUR },
  "52\u00a0weeks": { period: "h", interval: 52 * 7 * 24, seconds: 52 * 7 * 24 * HOUR } };

const PRICE_TILES = ["Price", "Price range"];
const MARKET_TILES = ["Deposits", "Debt", "Available", "Utilization", "Lend APR", "Borrow APR", "Collateral", "LTV"];

/** Tiles of an asset, now or at the end of a past range. */
export function headline(asset, all, there, route, signal) {
  const names = [...(there.has("prices") ? PRICE_TILES : []), ...(there.has("markets") ? MARKET_TILES : [])];
  const element = h("div", { class: "tiles quoted" }, skeleton(names));
  async function fill() {
    try {
      element.replaceChildren(...(await tiles(asset, all, there, route, signal)).flat().filter(Boolean));
    } catch (error) {
      if (signal.aborted || !(error instanceof ApiError)) throw error;
      element.replaceChildren(...failed(error.message, fill));
    }
  }
  return { element, done: fill() };
}

async function tiles(asset, all, there, route, signal) {
  const at = moment(route);
  const lookup = (more) => get("/markets/merged/lookup", { asset_id: asset.id, with_text: true, with_value: true, ...more }, signal);
  const [quoted, market, supplied] = await Promise.all([
    there.has("prices") ? quote(asset, at, signal) : null,
    there.has("markets") ? unlessUnknown(lookup(at)) : {},
    supply(asset, all, there, at, signal),
  ]);
  const valued = market.answer && !quoted ? await value(market.answer, lookup) : null;
  return [quoted && priceTiles(quoted, route), valued && changed(valued, "that of what it redeems"),
    supplied, market.answer && marketTiles(market.answer.data)];
}

/** Links to related assets: origins and receipt tokens. */
export function related({ id, kind, origin }, all) {
  const names = { protocol_receipt_token: "Receipt token of ", liquid_staking_token: "Staked " };
  const [root] = all.filter((other) => other.id === origin);
  const receipts = all.filter((other) => other.origin === id && other.kind === "protocol_receipt_token");
  const parts = [root && names[kind] && [names[kind], assetLink(root)],
    ...receipts.map((receipt) => ["Receipt token: ", assetLink(receipt)])].filter(Boolean);
  return parts.map((part) => [" · ", part]);
}

/** The price of an asset that the oracle quotes, its changes, and the lowest and highest prices. */
async function quote({ id }, at, signal) {
  const { answer } = await unlessUnknown(get("/assets/prices", { changes: Object.keys(SPANS).join(), ...at }, signal));
  const found = answer?.data.find(({ asset }) => asset.id === id)?.price;
  if (!found) return null;
  const second = ({ price: { last_updated_at: updated } }) => Date.parse(updated) / 1000;
  const [newest, own] = [Math.max(...answer.data.map(second)), Date.parse(found.last_updated_at) / 1000];
  const isOld = newest - own > SPANS["24h"];
  // All end at the newest price of any asset, as changes do.
  const extremes = Object.values(EXTREMES).map(async ({ seconds, ...bucket }) => {
    const range = { start: newest - seconds, end: newest, ...bucket, agg: "ohlc" };
    return (await get(PRICES, { ...range, asset_ids: id, fill: "none", format: "columns" }, signal)).data.series[0];
  });
  return { ...found, own, changes: isOld ? {} : found.changes, old: isOld ? age(newest - own) : null, ends: await Promise.all(extremes) };
}

/** The derived price of a token without a quote, and its changes. */
async function value({ data, dates }, lookup) {
  const priceOf = ({ borrow_collateral: collateral }) => collateral?.state.extra.value?.price ?? null;
  const [price, newest] = [priceOf(data), Math.max(...Object.values(dates))];
  if (price === null) return null;
  const changes = Object.entries(SPANS).map(async ([span, seconds]) => {
    const { answer } = await unlessUnknown(lookup({ at: newest - seconds }));
    const before = answer && Number(priceOf(answer.data));
    return [span, before ? price / before - 1 : null];
  });
  return { price, changes: Object.fromEntries(await Promise.all(changes)) };
}

function changed({ price: now, changes }, below) {
  const part = (span) => h("span", {}, priceChange(changes[span]), h("span", { class: "soft" }, ` ${span.replace(/(\d+)(\D)/, "$1 $2")}`));
  return h("section", { class: "tile broad" }, h("h2", {}, "Price"), h("div", { class: "value" }, exact(now, price)),
    h("div", { class: "changes" }, Object.keys(SPANS).map(part)), h("div", { class: "soft" }, below));
}

function priceTiles({ own, old, ends, ...quoted }, route) {
  const range = (name, place) => {
    const [lows, highs] = ["l", "h"].map((side) => ends[place][side].filter((value) => value !== null));
    const [low, high] = [Math.min(...lows), Math.max(...highs)];
    return lows.length === 0 ? null : h("div", {}, `${price(low)} – ${price(high)}`, h("span", { class: "soft" }, ` ${name}`));
  };
  const since = time(own, route.tz);
  return [changed(quoted, old ? `no data since ${since}, ${old} before the newest prices` : since),
    h("section", { class: "tile broad" }, h("h2", {}, "Price range"), Object.keys(EXTREMES).map(range))];
}

/** The supply of a receipt token or the protocol token; unknown for others. */
async function supply({ id, kind, origin }, all, there, at, signal) {
  if (kind === "protocol_receipt_token" && origin && there.has("markets")) {
    const { answer } = await unlessUnknown(get("/markets/lend/lookup", { asset_id: origin, with_text: true, ...at }, signal));
    const [root] = all.filter((other) => other.id === origin);
    return answer && fact("Supply", answer.data.state.extra.text.receipt_total_supply,
      `each redeems ${Number(answer.data.state.redemption_ratio).toFixed(4)} ${assetName(root ?? { id: origin })}`);
  }
  if (!there.has("ptoken")) return null;
  const { answer } = await unlessUnknown(get("/ptoken/params", at, signal));
  if (answer?.data.asset_info.asset.id !== id) return null;
  const { text } = (await get("/ptoken/state", { with_text: true, ...at }, signal)).data.extra;
  return fact("Supply", text.total_supply, `${text.total_issued} issued`);
}

function marketTiles({ lend, borrow_collateral: collateral, borrow_debt: debt }) {
  const used = lend && debt && Number(lend.state.principal) ? debt.state.balance / lend.state.principal : null;
  const free = lend && Number(lend.state.extra.value?.principal ?? NaN) * (1 - (used ?? 0));
  return [
    lend && amount("Deposits", lend.state, "principal", lend.config, "supply_cap"),
    debt && amount("Debt", debt.state, "balance", debt.config, "borrow_cap"),
    free && fact("Available", usd(free), "to borrow or withdraw"),
    used !== null && fact("Utilization", percent(used), `borrowing halts at ${percent(debt.config.borrow_halt_utilization)}`),
    lend && fact("Lend APR", percent(lend.rate.apr), `APY ${percent(lend.rate.apy)}`),
    debt && fact("Borrow APR", percent(debt.rate.apr), `APY ${percent(debt.rate.apy)}`),
    collateral && amount("Collateral", collateral.state, "balance", collateral.config, "collateral_cap"),
    collateral && fact("LTV", percent(collateral.config.allowable_ltv), `liquidation at ${percent(collateral.config.liquidation_ltv)}`),
  ].filter(Boolean);
}

/** A tile of an amount in USD and in the asset, with its cap if it has one. */
function amount(name, state, field, config, cap) {
  const most = config[cap] === null ? "" : ` · cap ${usd(config.extra.value?.[cap])}`;
  return fact(name, exact(state.extra.value?.[field], usd), `${state.extra.text[field]}${most}`);
}
