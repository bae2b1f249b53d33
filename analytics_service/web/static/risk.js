// Who could be liquidated: accounts by health, now and at other prices of one asset, and debt at risk over time.
import { get, unlessUnknown } from "./api.js";
import { clear, colorOf, line, mark } from "./charts.js";
import { h, notice, table } from "./dom.js";
import { figure } from "./figure.js";
import { cut, percent, price, short, usd } from "./format.js";
import { current, follow, link, note } from "./route.js";
import { numbers, observed } from "./series.js";
import { DOLLARS, overTime, PERCENT } from "./specs.js";
import { families } from "./status.js";

const PATH = "/analytics/market";
const OVER_TIME = ["debt-at-risk", "liquidatable-debt", "bad-debt"].map((name) => `${PATH}/history/${name}`);
const COUNT_OVER_TIME = `${PATH}/history/accounts-at-risk`;
// Accounts that are looked at for those that fall, and rows of their table.
const ACCOUNTS = 1000, ROWS = 50;
const STEP = 5;

/** The view of risk. */
export async function risk(place, route, signal) {
  const title = h("h1", {}, "Risk");
  if (!(await families()).has("positions")) return place.replaceChildren(title, notice("There is no snapshot of positions."));
  const given = { with_text: true };
  const { answer, why } = await unlessUnknown(get(`${PATH}/risk`, given, signal));
  const byHealth = answer && figure("Debt by health", async () => ({ ...answer, path: `${PATH}/risk`, given, isHistory: false }),
    ({ data }) => histogram(data));
  const overall = figure("Debt at risk", () => Promise.all(OVER_TIME.map((path) => observed(path, route, signal))), atRisk);
  const counted = figure("Accounts at risk", () => observed(COUNT_OVER_TIME, route, signal), countAtRisk);
  const falling = h("div");
  place.replaceChildren(title, answer ? h("div", { class: "tiles" }, tiles(answer.data)) : notice(why),
    h("div", { class: "pair" }, byHealth?.panel, overall.panel), falling, counted.panel);
  await Promise.all([byHealth?.done, overall.done, counted.done, answer && fall(falling, answer.data, signal)]);
}

function tiles({ accounts_with_debt: count, debt_value: debt, extra, ...parts }) {
  const { at_risk: risky, liquidatable, bad_debt: bad, unpriced_debt_accounts: unpriced } = parts;
  return [
    tile("Debt", extra.text.debt_value, number(count)),
    tile("At risk, health below 1.1", risky.extra.text.debt_value, `${number(risky.accounts)}, ${share(risky.debt_value, debt)}`),
    tile("Liquidatable, health below 1", liquidatable.extra.text.debt_value,
      `${number(liquidatable.accounts)}, ${share(liquidatable.debt_value, debt)}`),
    tile("Bad debt", bad.extra.text.value, number(bad.accounts)),
    ...(unpriced ? [tile("Debt without a price", "N/A", `${number(unpriced)}, in no other figure`)] : []),
  ];
}

function tile(name, value, below) {
  return h("section", { class: "tile" }, h("h2", {}, name), h("div", { class: "value" }, value), h("div", { class: "soft" }, below));
}

function number(accounts) {
  return `${accounts} account${accounts === 1 ? "" : "s"}`;
}

function share(part, whole) {
  return Number(whole) ? `${percent(Number(part) / Number(whole))} of debt` : "no debt";
}

function histogram({ histogram: ranges }) {
  const name = ({ from, to }) => (to === null ? `${from}+` : `${from}–${to}`);
  const color = ({ from }) => colorOf(Number(from) < 1 ? "--bad" : Number(from) < 1.1 ? "--warn" : "--series-1");
  const bars = { x: ranges.map(({ from }) => from), y: ranges.map((range) => Number(range.debt_value)), name: "Debt", type: "bar",
    hoverinfo: "skip", marker: { color: ranges.map(color) } };
  const columns = [
    { title: "Health", cell: name },
    { title: "Accounts", number: true, cell: ({ accounts }) => accounts },
    { title: "Debt", number: true, cell: (range) => range.debt_value, read: (range) => usd(range.debt_value) },
    { title: "Collateral", number: true, cell: (range) => range.collateral_value, read: (range) => usd(range.collateral_value) },
  ];
  return { traces: [bars], xaxis: { type: "category", title: { text: "Health, from" }, automargin: true }, yaxis: DOLLARS, table: { columns, rows: ranges } };
}

function atRisk(...answers) {
  const [first] = answers;
  const names = [["At risk", "--warn"], ["Liquidatable", "--bad"], ["Bad debt", "--series-1"]];
  const readings = names.map(([name], place) => ({ name, values: answers[place].series[0].v, format: usd }));
  const traces = names.flatMap(([name, color], place) => line(name, first.x, numbers(readings[place].values), color, answers[place].series[0].n));
  return overTime(first, traces, readings, { yaxis: { ...DOLLARS, rangemode: "tozero" } });
}

function countAtRisk(first) {
  const [{ v: values, n }] = first.series;
  const readings = [{ name: "Accounts", values, format: (value) => value }];
  return overTime(first, line("Accounts", first.x, numbers(values), "--warn", n), readings, { yaxis: { rangemode: "tozero" } });
}

/** The part of the view that depends on one asset, which the viewer chooses: by default that of the largest exposure. */
async function fall(place, { by_price: exposures }, signal) {
  const worth = ({ collateral_value: posted, debt_value: owed }) => Math.max(Number(posted), Number(owed));
  const rows = exposures.filter(worth).sort((one, other) => worth(other) - worth(one));
  const assets = new Map(rows.map(({ asset_info: info, collateral_value: posted, debt_value: owed }) => [info.asset.id,
    `${info.metadata.symbol || short(info.asset.id)}: ${usd(posted)} of collateral, ${usd(owed)} of debt`]));
  if (!assets.size) return place.replaceChildren(notice("Nobody owes anything."));
  const chosen = assets.has(current().of) ? current().of : [...assets.keys()][0];
  const choose = (event) => {
    note({ of: event.target.value });
    fall(place, { by_price: exposures }, signal);
  };
  const select = h("select", { onchange: choose }, [...assets].map(([id, text]) =>
    h("option", { value: id, selected: id === chosen }, text)));
  const said = h("output");
  const listed = h("div");
  const slider = h("input", { type: "range", min: -95, max: 100, step: STEP, value: current().change ?? -20,
    oninput: () => (note({ change: slider.value }), tell()) });
  const tools = h("div", { class: "tools" }, h("label", {}, "Price of", select), h("label", {}, "changes by", slider), said);
  const given = { asset_id: chosen, step: STEP };
  const path = `${PATH}/risk/ladder`;
  let loaded = null;
  async function load() {
    loaded = await Promise.all([get(path, given, signal),
      get(`${PATH}/borrowers`, { sort: "health", limit: ACCOUNTS, with_text: true }, signal)]);
    tell();
    return { ...loaded[0], path, given, isHistory: false };
  }
  function tell() {
    // The slider may be moved before.
    if (!loaded) return;
    const [{ data: { steps } }, { data: accounts, count }] = loaded;
    const change = Number(slider.value) / 100;
    const step = steps.find((one) => Math.abs(Number(one.change) - change) < 1e-9);
    const sign = change > 0 ? "+" : "";
    said.textContent = `${sign}${slider.value}%, at ${price(step.price)}: ${number(step.accounts)} could be liquidated, with `
      + `${usd(step.debt_value)} of debt and ${usd(step.collateral_value)} of collateral; bad debt ${usd(step.bad_debt)}`;
    listed.replaceChildren(falling(accounts, chosen, change, count));
    mark(chart.panel, steps.indexOf(step));
  }
  const chart = figure("Debt that falls with a price", load, ({ data }) => ladder(data, Number(slider.value)), tools);
  clear(place);
  place.replaceChildren(chart.panel, listed);
  await chart.done;
}

function ladder({ steps }, chosen) {
  const x = numbers(steps.map(({ change }) => change));
  const traces = [["Debt", "debt_value", "--bad"], ["Collateral", "collateral_value", "--series-1"], ["Bad debt", "bad_debt", "--warn"]]
    .flatMap(([name, field, color]) => line(name, x, numbers(steps.map((step) => step[field])), color));
  const columns = [
    { title: "Change", number: true, cell: ({ change }) => percent(change) },
    { title: "Price", number: true, cell: (step) => step.price, read: (step) => price(step.price) },
    { title: "Accounts", number: true, cell: ({ accounts }) => accounts },
    { title: "Debt", number: true, cell: (step) => step.debt_value, read: (step) => usd(step.debt_value) },
    { title: "Collateral", number: true, cell: (step) => step.collateral_value, read: (step) => usd(step.collateral_value) },
    { title: "Bad debt", number: true, cell: (step) => step.bad_debt, read: (step) => usd(step.bad_debt) },
  ];
  const place = x.findIndex((change) => Math.abs(100 * change - chosen) < 1e-9);
  return { traces, place, xaxis: { ...PERCENT, title: { text: "Change of the price" } }, yaxis: DOLLARS, table: { columns, rows: steps } };
}

/** The accounts that are liquidated on the way to a change of the price, first those that fall first. */
function falling(accounts, asset, change, count) {
  const at = (account) => account.liquidation.find((one) => one.asset.id === asset);
  const fraction = (account) => Number(at(account)?.change ?? NaN);
  const falls = (account) => Number(account.health) >= 1 && fraction(account) * change > 0
    && Math.abs(fraction(account)) <= Math.abs(change);
  const found = accounts.filter(falls).sort((one, other) => Math.abs(fraction(one)) - Math.abs(fraction(other)));
  const columns = [
    { title: "Address", cell: ({ address }) =>
      h("a", { href: link({ view: "address", address }), onclick: follow, title: address }, short(address)) },
    { title: "Account", number: true, cell: (one) => one.account_index },
    { title: "Debt", number: true, cell: ({ extra }) => extra.text.debt_value },
    { title: "Collateral", number: true, cell: ({ extra }) => extra.text.collateral_value },
    { title: "Health", number: true, cell: ({ health }) => cut(health) },
    { title: "Falls at", number: true, cell: (one) => at(one).extra.text.price },
    { title: "Change", number: true, cell: (one) => percent(at(one).change) },
  ];
  const name = "Accounts that fall until then";
  const shown = found.length > ROWS ? `The first ${ROWS} of ${found.length}. ` : "";
  const looked = count > accounts.length ? `Of the ${accounts.length} accounts of least health.` : "";
  return h("section", { class: "panel" }, h("h2", {}, name), h("p", { class: "soft" }, shown + looked),
    found.length ? table(name, columns, found.slice(0, ROWS)) : notice("No account falls."));
}
