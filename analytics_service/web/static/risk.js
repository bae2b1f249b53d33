// Liquidation risk: accounts by health, lists of accounts, and debt at risk over time.
import { accounts } from "./accounts.js";
import { get, unlessUnknown } from "./api.js";
import { colorOf, line } from "./charts.js";
import { exact, h, notice } from "./dom.js";
import { figure } from "./figure.js";
import { percent, time, usd } from "./format.js";
import { BAD_DEBT, ladder, LIQUIDATABLE } from "./ladder.js";
import { current, link, moment, note } from "./route.js";
import { numbers, observed } from "./series.js";
import { DOLLARS, overTime } from "./specs.js";
import { datasets } from "./status.js";
import { fact } from "./tile.js";
import { latest } from "./transactions.js";

const PATH = "/analytics/market";
const AT_RISK = "--series-2";
const OVER_TIME = ["debt-at-risk", "liquidatable-debt", "bad-debt"].map((name) => `${PATH}/history/${name}`);
const COUNT_OVER_TIME = `${PATH}/history/accounts-at-risk`;
const NO_POSITIONS = "This service has no positions of borrowers, so their risk is unknown.";

/** The view of risk, now or at the end of a past range. */
export async function risk(place, route, signal) {
  const title = h("h1", {}, "Risk");
  if (!(await datasets()).has("positions")) return place.replaceChildren(title, notice(NO_POSITIONS));
  const given = moment(route);
  const { answer, why } = await unlessUnknown(get(`${PATH}/risk`, given, signal));
  const overall = figure("Debt at risk", () => Promise.all(OVER_TIME.map((path) => observed(path, route, signal))), atRisk);
  const counted = figure("Accounts at risk", () => observed(COUNT_OVER_TIME, route, signal), countAtRisk);
  if (!answer) {
    place.replaceChildren(title, notice(why), h("div", { class: "pair" }, overall.panel, counted.panel));
    return Promise.all([overall.done, counted.done]);
  }
  // Lists use the moment of the figures: a newer snapshot would change the accounts.
  const at = Math.max(...Object.values(answer.dates));
  const byHealth = figure("Debt by health", async () => ({ ...answer, path: `${PATH}/risk`, given, isHistory: false }),
    ({ data }) => histogram(data, show));
  const groups = groupsOf(answer.data);
  const list = listing(groups, at, signal);
  function show(name) {
    list.show(name);
    list.panel.scrollIntoView();
  }
  const [falling, events] = [h("div", { class: "parts" }), h("div")];
  place.replaceChildren(title, h("p", { class: "soft" }, `As of ${time(at, route.tz)}.`),
    h("div", { class: "tiles" }, tiles(answer.data, show)), h("div", { class: "pair" }, byHealth.panel, overall.panel, counted.panel),
    h("div", { class: "pair" }, list.panel, falling), events);
  await Promise.all([byHealth.done, overall.done, counted.done, list.show(current().who),
    ladder(falling, answer.data.by_price, at, signal)]);
  if ((await datasets()).has("loans")) await latest(events, "Latest liquidations", given, route, signal, "liquidate");
}

function tiles({ accounts_with_debt: count, debt_value: debt, ...parts }, show) {
  const { at_risk: risky, liquidatable, bad_debt: bad, unpriced_debt_accounts: unpriced } = parts;
  return [
    fact("Debt", exact(debt, usd), button(count, "debt", show)),
    fact("At risk, health below 1.1", exact(risky.debt_value, usd),
      button(risky.accounts, "at-risk", show), `, ${share(risky.debt_value, debt)}`),
    fact("Liquidatable, health below 1", exact(liquidatable.debt_value, usd),
      button(liquidatable.accounts, "liquidatable", show), `, ${share(liquidatable.debt_value, debt)}`),
    fact("Bad debt, not covered by collateral", exact(bad.value, usd), button(bad.accounts, "bad-debt", show)),
    ...(unpriced ? [fact("Debt without a price", "N/A", `${number(unpriced)}, not in other figures`)] : []),
  ];
}

function number(accounts) {
  return `${accounts} account${accounts === 1 ? "" : "s"}`;
}

/** The number of accounts, as a link to their list. */
function button(count, name, show, text = number(count)) {
  const choose = (event) => {
    event.preventDefault();
    show(name);
  };
  return count ? h("a", { href: link({ who: name }), onclick: choose }, text) : text;
}

function share(part, whole) {
  return Number(whole) ? `${percent(Number(part) / Number(whole))} of debt` : "no debt";
}

function rangeOf({ from, to }) {
  return to === null ? `${from}+` : `${from}–${to}`;
}

/** Groups of accounts that can be listed: all with debt, at risk, liquidatable, with bad debt, and each bar. By health, the
 * accounts of a bar follow those of the bars before it. */
function groupsOf({ accounts_with_debt: all, at_risk: risky, liquidatable, bad_debt: bad, histogram: ranges }) {
  let offset = 0;
  const bars = ranges.map((range) => {
    const group = { name: range.from, text: `Health ${rangeOf(range)}`, count: range.accounts, query: { sort: "health", offset } };
    offset += range.accounts;
    return group;
  });
  return [
    { name: "debt", text: "Largest debt first", count: all, query: { sort: "debt" } },
    { name: "at-risk", text: "At risk, health below 1.1", count: risky.accounts, query: { sort: "health" } },
    { name: "liquidatable", text: "Liquidatable, health below 1", count: liquidatable.accounts, query: { sort: "health" } },
    { name: "bad-debt", text: "Bad debt, not covered by collateral", count: bad.accounts, query: { sort: "health" },
      among: risky.accounts, keep: (account) => Number(account.debt_value) > Number(account.collateral_value) },
    ...bars.filter(({ count }) => count),
  ];
}

/** A panel with the accounts of the group that the viewer chooses. */
function listing(groups, at, signal) {
  const select = h("select", { onchange: () => show(select.value) }, groups.map(({ name, text, count }) =>
    h("option", { value: name }, `${text} (${count})`)));
  const place = h("div");
  function show(wanted) {
    const { name, query, count, among = count, keep } = groups.find((group) => group.name === wanted) ?? groups[0];
    select.value = name;
    note({ who: name === groups[0].name ? null : name });
    const { list, done } = accounts("Borrow accounts", { ...query, at }, among, signal, { keep });
    place.replaceChildren(list);
    return done;
  }
  const panel = h("section", { class: "panel" }, h("h2", {}, "Borrow accounts"),
    h("div", { class: "tools" }, h("label", {}, "Show", select)), place);
  return { panel, show };
}

function histogram({ histogram: ranges }, show) {
  const kinds = [["Liquidatable", -Infinity, 1, LIQUIDATABLE], ["At risk", 1, 1.1, AT_RISK], ["Others", 1.1, Infinity, "--series-1"]];
  const bars = kinds.map(([name, least, below, color]) => {
    const own = ranges.filter(({ from }) => from >= least && from < below);
    return { x: own.map(rangeOf), y: own.map((range) => Number(range.debt_value)), name, type: "bar", hoverinfo: "skip", marker: { color: colorOf(color) } };
  });
  const columns = [
    { title: "Health", cell: rangeOf },
    { title: "Accounts", number: true, cell: ({ accounts: count, from }) => button(count, from, show, count), read: ({ accounts: count }) => count },
    { title: "Debt", number: true, cell: (range) => exact(range.debt_value, usd) },
    { title: "Collateral", number: true, cell: (range) => exact(range.collateral_value, usd) },
  ];
  const choose = (place) => ranges[place].accounts && show(ranges[place].from);
  const x = ranges.map(rangeOf);
  const xaxis = { type: "category", categoryorder: "array", categoryarray: x, tickfont: { size: 10 }, title: { text: "Health" }, automargin: true };
  return { x, traces: bars, choose, xaxis, yaxis: DOLLARS, table: { columns, rows: ranges } };
}

function atRisk(...answers) {
  const [first] = answers;
  const names = [["At risk", AT_RISK], ["Liquidatable", LIQUIDATABLE], ["Bad debt", BAD_DEBT]];
  const readings = names.map(([name], place) => ({ name, values: answers[place].series[0].v, format: usd }));
  const traces = names.flatMap(([name, color], place) => line(name, first.x, numbers(readings[place].values), color, answers[place].series[0].n));
  return overTime(first, traces, readings, { yaxis: { ...DOLLARS, rangemode: "tozero" } });
}

function countAtRisk(first) {
  const [{ v: values, n }] = first.series;
  const readings = [{ name: "Accounts", values, format: (value) => value }];
  return overTime(first, line("Accounts", first.x, numbers(values), AT_RISK, n), readings, { yaxis: { rangemode: "tozero" } });
}
