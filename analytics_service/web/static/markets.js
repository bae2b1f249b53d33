// Every asset in one table: price, market, rates.
import { ApiError, get } from "./api.js";
import { assetLink, withAlike } from "./assets.js";
import { exact, h, notice, saveAs, scrolling } from "./dom.js";
import { age, percent, price, time, usd } from "./format.js";
import { prices } from "./prices.js";
import { current, moment, note } from "./route.js";
import { numbers, PRICES } from "./series.js";
import { spark } from "./spark.js";
import { datasets, status } from "./status.js";
import { dateOf, priceChange } from "./tile.js";

const DAY_SECONDS = 86_400;
// Rows that are shown at first, and added at a time.
const PAGE = 50;
const VALUED = "The price of a receipt token that the oracle does not quote is the price of the asset that it redeems, times "
  + "the redemption ratio.";
const TERMS = "Available deposits are not lent out: they can be borrowed or withdrawn at once. LTV is how much can be "
  + "borrowed against collateral. An account whose debt reaches the liquidation LTV can be liquidated.";
const NOTHING = "There are no prices and markets yet. They appear within two minutes after the service starts.";

// Columns for lenders, for borrowers, or all, which need a wide window.
const SIDES = { lend: "For lenders", borrow: "For borrowers", all: "All" };
const ROOMY = "(min-width: 94rem)";

// A column: its title, the number or text to sort by, the contents of a cell and of a file (by default as `sort`), whether
// the last row has its sum, and the side it belongs to.
const COLUMNS = [
  { title: "Symbol", sort: (row) => row.symbol.toLowerCase(), cell: symbol, file: (row) => row.symbol },
  number("Price", (row) => row.price, priceCell),
  { ...number("24 h", (row) => row.moved), cell: (row) => priceChange(row.moved) },
  { title: "7 days", cell: week },
  of("lend", summed(number("Deposits", (row) => row.deposits, (row) => usd(row.deposits)))),
  of("borrow", summed(number("Debt", (row) => row.debt, (row) => usd(row.debt)))),
  summed(number("Available", available, (row) => usd(available(row)))),
  of("borrow", summed(number("Collateral", (row) => row.collateral, (row) => usd(row.collateral)))),
  of("lend", summed({ ...number("Utilization", (row) => part(row.deposits, row.debt)), cell: utilization })),
  of("lend", number("Lend APR", (row) => row.lendApr, (row) => percent(row.lendApr))),
  of("borrow", number("Borrow APR", (row) => row.borrowApr, (row) => percent(row.borrowApr))),
  of("borrow", number("LTV", (row) => row.ltv, (row) => percent(row.ltv))),
  of("borrow", number("Liquidation LTV", (row) => row.liquidationLtv, (row) => percent(row.liquidationLtv))),
  of("borrow", number("Collateral cap", (row) => row.collateralCap, (row) => usd(row.collateralCap))),
  of("lend", number("Supply cap", (row) => row.supplyCap, (row) => usd(row.supplyCap))),
  of("borrow", number("Borrow cap", (row) => row.borrowCap, (row) => usd(row.borrowCap))),
];

/** The view of all markets. */
export async function markets(place, route, signal) {
  const at = moment(route);
  const { rows, sums, newest } = await load(at, route, signal);
  if (!rows.length) return place.replaceChildren(h("h1", {}, "Markets"), notice(NOTHING));
  const count = h("p", { class: "soft", "aria-live": "polite" });
  const [list, body] = [h("div"), h("tbody")];
  const there = COLUMNS.filter(({ sort }) => !sort || rows.some((row) => !isMissing(sort(row))));
  let [columns, heads, shown] = [[], [], PAGE];
  function choose(chosen) {
    columns = there.filter(({ side }) => !side || chosen === "all" || side === chosen);
    heads = columns.map((column) => head(column, columns, () => fill()));
    list.replaceChildren(scrolling("Markets by asset", heads, [body, sums ? foot(columns, sums) : ""]));
    return fill();
  }
  const search = h("input", { type: "search", value: route.q ?? "", autocomplete: "off",
    oninput: (event) => (note({ q: event.target.value || null }), fill()) });
  const more = h("button", { type: "button", onclick: () => fill(shown + PAGE) }, "More");
  function fill(most = PAGE) {
    const { q = "" } = current();
    const { chosen, isDown } = order(columns);
    const found = rows.filter(({ symbol, id }) => `${symbol} ${id}`.toLowerCase().includes(q.trim().toLowerCase()));
    const sorted = found.sort(by(chosen, isDown));
    shown = most;
    more.hidden = sorted.length <= shown;
    const page = sorted.slice(0, shown);
    body.replaceChildren(...page.map((row) => h("tr", {}, columns.map((column) => cell(column, row)))));
    heads.forEach((one, place) => mark(one, columns[place] === chosen, isDown));
    count.textContent = `${page.length < sorted.length ? `${page.length} of ` : ""}${sorted.length} of ${rows.length} assets`;
    return drawWeeks(page, newest, route, signal);
  }
  const side = sums ? sideOf(route) : "all";
  const drawn = choose(side);
  const tools = h("div", { class: "tools" }, sums && switcher(side, choose), h("label", {}, "Search", search), tableLink(rows), count);
  const notes = [sums && TERMS, rows.some(({ isValued }) => isValued) && VALUED].filter(Boolean).map((text) => h("p", { class: "soft" }, text));
  place.replaceChildren(h("h1", {}, "Markets"), await dates(route), sums ? locked(sums) : "", tools, list,
    h("p", {}, more), ...notes);
  await drawn;
}

/** The side whose columns are shown: the route's, or all if the window is wide. */
function sideOf({ columns }) {
  return Object.hasOwn(SIDES, columns ?? "") ? columns : matchMedia(ROOMY).matches ? "all" : "lend";
}

/** Buttons that choose a side. */
function switcher(side, choose) {
  const change = ({ currentTarget }) => {
    for (const button of buttons) button.setAttribute("aria-pressed", button === currentTarget);
    note({ columns: currentTarget.value });
    choose(currentTarget.value);
  };
  const buttons = Object.entries(SIDES).map(([value, text]) =>
    h("button", { type: "button", value, "aria-pressed": value === side, onclick: change }, text));
  return h("fieldset", {}, h("legend", { class: "hidden" }, "Columns"), buttons);
}

/** The parts of the total value locked. */
function locked({ tvl, deposits, own, receipts }) {
  const more = Number(receipts) ? ` Another ${usd(receipts)} of collateral is receipt tokens, which stand for deposits.` : "";
  return h("p", {}, `Total value locked is ${usd(tvl)}: ${usd(deposits)} of deposits and ${usd(own)} of collateral, each rounded.${more}`);
}

function foot(columns, sums) {
  return h("tfoot", {}, h("tr", {}, columns.map((column) =>
    cell(column, sums, column === COLUMNS[0] ? "All assets" : column.isSummed ? column.cell(sums) : ""))));
}

/** The shown moment, if it is past. Without snapshots of markets, the instants of imported prices and rates, which may be
 * years apart. */
async function dates(route) {
  const past = dateOf(route);
  if (past) return past;
  if ((await datasets()).has("markets")) return "";
  const { snapshots } = await status();
  const instants = snapshots.filter(({ dataset, newest }) => newest && ["prices", "rates"].includes(dataset))
    .map(({ dataset, newest }) => `${time(Date.parse(newest) / 1000, route.tz)} (${dataset})`);
  return h("p", { class: "soft" }, `As of ${instants.join(" and ")}.`);
}

/** A row for each asset with a price or a market (`rows`), and sums over all markets, if any (`sums`). */
async function load(at, { tz }, signal) {
  const there = await datasets();
  const [{ newest, all }, merged, supply] = await Promise.all([
    there.has("prices") ? prices(1, at, signal) : { all: [] },
    there.has("markets") ? get("/markets/merged", { with_text: true, with_value: true, ...at }, signal) : { data: [] },
    there.has("markets") ? get("/markets/supply", at, signal) : null,
  ]);
  const rows = new Map(all.map((row) => [row.id, row]));
  const row = ({ asset: { id }, metadata: { symbol } }) => {
    if (!rows.has(id)) rows.set(id, { id, symbol });
    return rows.get(id);
  };
  // The last price of an asset is shown however old it is, but no longer used for values.
  for (const { asset_id: id, age_seconds: seconds } of (!at.at && (await status()).lost_prices) || []) {
    if (rows.has(id)) Object.assign(rows.get(id), { late: `${age(seconds)} old`, moved: null });
  }
  for (const one of merged.data) {
    const found = Object.assign(row(one.asset_info), market(one));
    if (isMissing(found.price)) Object.assign(found, valued(one));
  }
  if (!merged.data.length && there.has("rates")) await addRates(rows, at, signal);
  return { rows: withAlike([...rows.values()]), sums: supply && together(supply.data), newest };
}

/** The sums of all markets, as a row for the columns. */
function together({ lend, borrow_debt: debt, borrow_collateral: { non_receipt: own, receipt, total }, tvl: { tvl } }) {
  return { symbol: "all assets", deposits: lend.principal, debt: debt.balance, collateral: total.balance, own: own.balance,
    receipts: receipt.balance, tvl };
}

/** Adds the newest rates of a service that has their history, but no markets. */
async function addRates(rows, { at, tz }, signal) {
  const { snapshots } = await status();
  const newest = at ?? Date.parse(snapshots.find(({ dataset }) => dataset === "rates").newest) / 1000;
  const query = { start: newest, end: newest, tz, period: "h", format: "columns" };
  for (const [kind, name] of [["lend", "lendApr"], ["borrow", "borrowApr"]]) {
    const { data } = await get(`/markets/${kind}/rate-history`, query, signal);
    for (const { asset, symbol, v } of data.series) {
      if (!rows.has(asset)) rows.set(asset, { id: asset, symbol: symbol ?? "" });
      [rows.get(asset)[name]] = v;
    }
  }
}

/** Draws the prices of the last week into shown rows that lack them. */
async function drawWeeks(page, newest, { tz }, signal) {
  const lacking = page.filter((row) => row.from && !row.isAsked);
  if (!lacking.length) return;
  lacking.forEach((row) => (row.isAsked = true));
  const range = { start: newest - 7 * DAY_SECONDS, end: newest, period: "auto", points: 60, tz, digits: 6 };
  const ids = lacking.map(({ id }) => id).join();
  try {
    const { t, series } = (await get(PRICES, { ...range, asset_ids: ids, format: "columns" }, signal)).data;
    lacking.forEach((row, place) => {
      // The line ends with the last price of an asset.
      row.week = numbers(series[place].v).map((value, bucket) => (t[bucket] > row.from ? null : value));
      row.spark.replaceChildren(weekOf(row));
    });
  } catch (error) {
    if (!signal.aborted && !(error instanceof ApiError)) throw error;
    lacking.forEach((row) => (row.isAsked = false));
  }
}

function market({ lend, borrow_collateral: collateral, borrow_debt: debt }) {
  const states = [lend, collateral, debt].map((side) => side?.config);
  return {
    state: ["paused", "frozen"].find((state) => states.some((config) => config?.[state])),
    supplyCap: lend?.config.extra.value?.supply_cap,
    deposits: lend?.state.extra.value?.principal,
    lendApr: lend?.rate.apr,
    debt: debt?.state.extra.value?.balance,
    borrowApr: debt?.rate.apr,
    borrowCap: debt?.config.extra.value?.borrow_cap,
    collateral: collateral?.state.extra.value?.balance,
    ltv: collateral?.config.allowable_ltv,
    liquidationLtv: collateral?.config.liquidation_ltv,
    collateralCap: collateral?.config.extra.value?.collateral_cap,
  };
}

/** The price of an asset as collateral, which receipt tokens have even without a quote. */
function valued({ borrow_collateral: collateral }) {
  const value = collateral?.state.extra.value;
  return isMissing(value?.price) ? {} : { price: value.price, isValued: true };
}

function number(title, sort, show = null) {
  return { title, number: true, sort, cell: (row) => exact(sort(row), () => show(row)) };
}

function summed(column) {
  return { ...column, isSummed: true };
}

function of(side, column) {
  return { ...column, side };
}

/** Deposits that nobody has borrowed; undefined if deposits or debt are unknown. */
function available({ deposits, debt }) {
  return isMissing(deposits) || debt === null ? undefined : Number(deposits) - Number(debt ?? 0);
}

/** A value as a fraction of another; undefined if either is missing. */
function part(whole, value) {
  return isMissing(whole) || isMissing(value) || !Number(whole) ? undefined : Number(value) / Number(whole);
}

function isMissing(value) {
  return value === null || value === undefined;
}

function priceCell({ price: value, late }) {
  return late ? h("span", { class: "soft" }, `${price(value)}, ${late}`) : price(value);
}

function week(row) {
  row.spark = h("span", { class: "week" }, row.week || !row.from ? weekOf(row) : null);
  return row.spark;
}

function weekOf(row) {
  return spark(row.week ?? [], `${row.symbol}, 7 days`) ?? "–";
}

function symbol(row) {
  return h("span", {}, assetLink(row), row.state ? h("span", { class: "soft" }, ` ${row.state}`) : "");
}

function utilization(row) {
  const meter = (used) => h("meter", { min: 0, max: 1, value: used, "aria-label": `Utilization of ${row.symbol}` });
  return exact(part(row.deposits, row.debt), (used) => [meter(used), ` ${percent(used)}`]);
}

function cell(column, row, made = column.cell(row) ?? "–") {
  return column === COLUMNS[0] ? h("th", { scope: "row" }, made) : h("td", { class: column.number ? "number" : null }, made);
}

function head(column, columns, fill) {
  const { title, sort, number: isNumber } = column;
  const change = () => {
    const { chosen, isDown } = order(columns);
    note({ sort: COLUMNS.indexOf(column), down: chosen === column ? !isDown : Boolean(isNumber) });
    fill();
  };
  const name = sort ? h("button", { type: "button", onclick: change }, title) : title;
  return h("th", { scope: "col", class: isNumber ? "number" : null }, name);
}

/** The column to sort by: the URL's, else the first with sums, else the symbol. */
function order(columns) {
  const { sort, down } = current();
  const named = columns.find((column) => column.sort && String(COLUMNS.indexOf(column)) === sort);
  if (named) return { chosen: named, isDown: down === "true" };
  const summed = columns.find(({ isSummed }) => isSummed);
  return { chosen: summed ?? COLUMNS[0], isDown: Boolean(summed) };
}

function mark(element, isSorted, isDown) {
  element.setAttribute("aria-sort", isSorted ? (isDown ? "descending" : "ascending") : "none");
}

/** Compares rows by a column; those without a value come last. */
function by({ sort, number: isNumber }, isDown) {
  return (one, other) => {
    const [first, second] = [sort(one), sort(other)];
    if (isMissing(first) || isMissing(second)) return isMissing(first) - isMissing(second);
    const order = isNumber ? Number(first) - Number(second) : first < second ? -1 : Number(first > second);
    return isDown ? -order : order;
  };
}

/** A link to the table as a file with exact values. */
function tableLink(rows) {
  const there = COLUMNS.filter((column) => column.sort);
  const quoted = (value) => (/[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  // Spreadsheets read some symbols as formulas.
  const safe = (value) => (/^[ \u00a0\u3000]*[-=+@\uff1d\uff0b\uff0d\uff20\t\r\n]/.test(value) && Number.isNaN(Number(value)) ? `'${value}` : value);
  const line = (values) => values.map((value) => quoted(safe(String(value ?? "")))).join(",");
  const lines = [line(["asset_id", ...there.map(({ title }) => title)]),
    ...rows.map((row) => line([row.id, ...there.map(({ file, sort }) => (file ?? sort)(row))]))];
  const save = (event) => {
    event.preventDefault();
    saveAs("markets.csv", new Blob([`${lines.join("\n")}\n`], { type: "text/csv" }));
  };
  return h("a", { href: "#", download: "markets.csv", onclick: save }, "CSV");
}
