// The net worth of an address, its health, and their history.
import { ApiError } from "./api.js";
import { line } from "./charts.js";
import { exact, failed, h, section } from "./dom.js";
import { figure } from "./figure.js";
import { change, changeInPoints, cut, percent, usd } from "./format.js";
import { go, isAll, lengthOf } from "./route.js";
import { beginning, begun, history, most, numbers } from "./series.js";
import { DOLLARS, overTime, PERCENT } from "./specs.js";
import { skeleton, spanOf, tile } from "./tile.js";

const health = (value) => (value === null ? "–" : cut(value));
const METRICS = {
  "net-value": { name: "Net worth", format: usd, yaxis: DOLLARS },
  collateral: { name: "Collateral", format: usd, yaxis: DOLLARS },
  debt: { name: "Debt", format: usd, yaxis: DOLLARS },
  deposits: { name: "Deposits", format: usd, yaxis: DOLLARS },
  health: { name: "Least health", format: health, yaxis: {} },
  ltv: { name: "Debt to collateral", format: percent, yaxis: PERCENT, compared: changeInPoints },
};
const MADE_OF = "Net worth is the value of collateral, wallet, deposits and stakes less debt. Deposits whose receipt tokens are "
  + "collateral or in the wallet count once.";
// Buckets of a tile's line. The service values each of them.
const POINTS = 30;

/** A section (`panel`) with tiles of all metrics of an address, and a chart of the route's metric; up to the instant `until`
 * (unix seconds) if the view shows an earlier moment. */
export function worth(path, route, until, signal) {
  const metric = Object.hasOwn(METRICS, route.metric ?? "") ? route.metric : "net-value";
  const load = async (which, points, more = {}) =>
    history(`${path}/history`, route, { metric: which, points, ...(until ? await upTo(until, path, route, points) : {}), ...more }, signal);
  const tiles = skeleton(Object.values(METRICS).map(({ name }) => name));
  const chart = figure("Worth over time", () => counted((more) => load(metric, most(), more)), (answer) => worthChart(answer, METRICS[metric]), chooser(metric));
  async function fill() {
    // One by one, because each takes long.
    for (const [place, [which, shown]] of Object.entries(METRICS).entries()) {
      const start = until ? { start: (await upTo(until, path, route, POINTS)).start } : {};
      const first = () => beginning(`${path}/history`, route, signal, { metric: which, ...start });
      await fillTile(tiles[place], async () => overview(await first(), await load(which, POINTS), shown, route));
    }
  }
  return { panel: section("Worth", h("div", { class: "tiles lines" }, tiles), h("p", { class: "soft" }, MADE_OF), chart.panel), done: Promise.all([fill(), chart.done]) };
}

/** Replaces a placeholder with a tile, or shows the error below its name. */
async function fillTile(place, make) {
  try {
    place.replaceWith(await make());
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    place.replaceChildren(place.querySelector("h2"), ...failed(error.message, () => fillTile(place, make)));
  }
}

/** Parameters of about `points` buckets up to an instant: automatic buckets may end later. */
async function upTo(until, path, route, points) {
  const start = isAll(route) ? Math.min(await begun(`${path}/history`, route), until) : Math.max(until - lengthOf(route), 0);
  const minutes = Math.ceil((until - start) / 60 / points) || 1;
  const width = minutes > 10_000 ? { period: "h", interval: Math.ceil(minutes / 60) } : { period: "min", interval: minutes };
  return { start, end: until, ...width, points: null, limit: points + 1 };
}

/** A history with counts of observations: it is loaded a second time, without repeated values. */
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

/** A tile. The value at the start of the range comes before the values at the ends of buckets. */
function overview(begun, history, { name, format, compared = change }, route) {
  const values = [...begun.series[0].v, ...history.series[0].v];
  const last = values.findLast((value) => value !== null) ?? null;
  return tile(name, exact(last, format), spanOf(begun, history, route), { values: numbers(values), end: null, compared });
}

function worthChart(answer, { name, format, yaxis }) {
  const values = answer.series[0].v;
  return overTime(answer, line(name, answer.x, numbers(values), "--ink", answer.n), [{ name, values, format }], { yaxis });
}
