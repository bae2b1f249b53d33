// What an address is worth, and how that and its health have changed.
import { line } from "./charts.js";
import { h } from "./dom.js";
import { figure } from "./figure.js";
import { change, changeInPoints, cut, percent, time, usd } from "./format.js";
import { go, rangeName, rangeUpTo } from "./route.js";
import { history, numbers } from "./series.js";
import { DOLLARS, overTime, PERCENT } from "./specs.js";
import { tile } from "./tile.js";

const health = (value) => (value === null ? "–" : cut(value));
const METRICS = {
  "net-value": { name: "Net worth", format: usd, yaxis: DOLLARS },
  collateral: { name: "Collateral", format: usd, yaxis: DOLLARS },
  debt: { name: "Debt", format: usd, yaxis: DOLLARS },
  deposits: { name: "Deposits", format: usd, yaxis: DOLLARS },
  health: { name: "Least health", format: health, yaxis: {} },
  ltv: { name: "Debt to collateral", format: percent, yaxis: PERCENT, compared: changeInPoints },
};
// Buckets of a tile's line, each of which the service values anew.
const POINTS = 30;

/** Tiles of all metrics of an address, and a chart of the one that the route names, up to the instant `until` (unix
 * seconds) if the view is of an earlier moment. */
export function worth(path, route, until, signal) {
  const metric = Object.hasOwn(METRICS, route.metric ?? "") ? route.metric : "net-value";
  const { start, end } = until ? rangeUpTo(until, route) : {};
  const load = (which, more = {}) =>
    history(`${path}/history`, route, { metric: which, ...(until ? { start, end } : {}), ...more }, signal);
  const tiles = h("div", { class: "tiles" });
  const chart = figure("Worth over time", () => counted((more) => load(metric, more)), (answer) => course(answer, METRICS[metric]), chooser(metric));
  const all = Promise.all(Object.entries(METRICS).map(async ([which, shown]) => overview(await load(which, { points: POINTS }), shown, route)));
  return { parts: [tiles, chart.panel], done: Promise.all([all.then((made) => tiles.replaceChildren(...made)), chart.done]) };
}

/** A history with counts of observations: it is loaded once more, without what buckets repeat. */
async function counted(load) {
  const answer = await load();
  const bare = await load({ fill: "none" });
  return { ...answer, n: bare.series[0].v.map((value) => Number(value !== null)) };
}

function chooser(chosen) {
  const choice = ([which, { name }]) => h("button", { type: "button", "aria-pressed": which === chosen,
    onclick: () => go({ metric: which === "net-value" ? null : which }) }, name);
  return h("div", { class: "tools" },
    h("fieldset", {}, h("legend", { class: "hidden" }, "Show"), Object.entries(METRICS).map(choice)));
}

function overview({ t, series: [{ v: values }] }, { name, format, compared = change }, route) {
  const last = values.findLast((value) => value !== null) ?? null;
  const span = (first) => (first > 0 ? `since ${time(t[first], route.tz)}` : `over ${rangeName(route)}`);
  return tile(name, format(last), span, { values: numbers(values), end: null, compared });
}

function course(answer, { name, format, yaxis }) {
  const values = answer.series[0].v;
  return overTime(answer, line(name, answer.x, numbers(values), "--series-1", answer.n), [{ name, values, format }], { yaxis });
}
