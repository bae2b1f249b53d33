// What could be liquidated at other prices of one asset, which the viewer chooses.
import { accounts } from "./accounts.js";
import { get } from "./api.js";
import { clear, line, mark } from "./charts.js";
import { exact, h, notice } from "./dom.js";
import { figure } from "./figure.js";
import { withSign, price, short, usd } from "./format.js";
import { current, note } from "./route.js";
import { numbers } from "./series.js";
import { DOLLARS, PERCENT } from "./specs.js";

const PATH = "/analytics/market/risk/ladder";
// Colours in all charts of the risk view.
export const LIQUIDATABLE = "--series-6", BAD_DEBT = "--series-4";
// In percent.
const [LOWEST, HIGHEST, STEP, AT_FIRST] = [-95, 100, 5, -20];
const MANY = 100;

/** Fills a place with a chart over the asset's prices, a slider, and the accounts at the chosen price. The default asset
 * has the largest exposure. `at` is the moment of all numbers. */
export async function ladder(place, exposures, at, signal) {
  const assets = choices(exposures);
  if (!assets.size) return place.replaceChildren(notice("There is no debt."));
  const { tools, select, slider, field, follow, said } = controls(assets, current(), { redraw, announce, settle, choose });
  const [others, listed] = [h("p", { class: "soft" }), h("section", { class: "panel many" })];
  let [loaded, chart, drawing] = [null, null, new AbortController()];
  const step = () => loaded.steps.find(({ change }) => Math.abs(100 * change - slider.value) < 1e-6);
  const followers = () => (follow.input.checked ? followersOf(select.value, exposures) : []);
  async function load() {
    const following = followers().map(({ id }) => id).join();
    const given = { asset_id: select.value, from: slider.min, to: HIGHEST, step: STEP, following, at };
    const answer = await get(PATH, given, drawing.signal);
    loaded = answer.data;
    announce();
    show();
    return { ...answer, path: PATH, given, isHistory: false, hasCsv: true };
  }
  // The slider may move before steps are loaded.
  function announce() {
    field.value = slider.value;
    if (!loaded) return;
    said.textContent = sentence(slider.value, step());
    mark(chart.panel, loaded.steps.indexOf(step()));
  }
  /** Goes to a typed change. Invalid input keeps the one before. */
  function choose(typed) {
    const before = slider.min;
    point(slider, bounded(typed, Number(slider.value)));
    if (slider.min === before) {
      announce();
      return settle();
    }
    note({ change: slider.value });
    redraw();
  }
  function settle() {
    note({ change: slider.value });
    show();
  }
  function show() {
    if (!loaded) return;
    const moving = [loaded.asset_info.asset, ...followers()];
    const query = { sort: "health", at, prices: moving.map(({ id }) => `${id}:${slider.value}%`).join() };
    // Liquidation prices assume that all other prices stay.
    const columns = moving.length > 1 ? [] : [healthIsOneAt(loaded)];
    const { list } = accounts("Accounts that could be liquidated", query, step().accounts, drawing.signal, { columns });
    listed.replaceChildren(h("h2", {}, `Accounts that could be liquidated at ${signed(slider.value)}`),
      h("p", { class: "soft" }, "Debt, collateral and health at that price."), list);
  }
  async function redraw() {
    const focused = tools.contains(document.activeElement) ? document.activeElement : null;
    // Earlier requests are obsolete.
    drawing.abort();
    [loaded, drawing] = [null, new AbortController()];
    said.replaceChildren();
    listed.replaceChildren();
    field.value = slider.value;
    const names = followersOf(select.value, exposures).map(({ symbol }) => symbol).join(", ");
    follow.label.hidden = !names;
    follow.name.textContent = `${names} too`;
    others.textContent = `Receipt tokens of the asset follow its price. All other prices stay${names && !follow.input.checked
      ? `, including ${names}, which the oracle quotes` : ""}.`;
    clear(place);
    chart = figure("What could be liquidated at other prices", load, ({ data }) => ({ ...spec(data, data.steps.indexOf(step())),
      choose: (number) => choose(100 * data.steps[number].change) }), [tools, others]);
    place.replaceChildren(chart.panel, listed);
    focused?.focus({ preventScroll: true });
    await chart.done;
  }
  signal.addEventListener("abort", () => drawing.abort());
  await redraw();
}

/** Controls for the asset, the change of its price, and whether other assets follow, with an output for the result. */
function controls(assets, { of, change = AT_FIRST, follow: isFollowed }, { redraw, announce, settle, choose }) {
  const select = h("select", { onchange: () => (note({ of: select.value }), redraw()) }, [...assets].map(([id, text]) =>
    h("option", { value: id, selected: id === of }, text)));
  // Accounts are requested once the slider rests.
  const slider = h("input", { type: "range", max: HIGHEST, step: STEP, oninput: announce, onchange: settle });
  point(slider, bounded(Number(change || AT_FIRST), AT_FIRST));
  const field = h("input", { type: "number", min: LOWEST, max: HIGHEST, step: "any", value: slider.value, "aria-label": "Change in percent",
    onchange: () => choose(field.valueAsNumber) });
  const input = h("input", { type: "checkbox", checked: isFollowed === "1",
    onchange: () => (note({ follow: input.checked ? "1" : null }), redraw()) });
  const [name, said] = [h("span"), h("output")];
  const label = h("label", {}, input, name);
  const tools = h("div", { class: "tools" }, h("label", {}, "Price of", select), h("label", {}, "changes by", slider),
    h("label", {}, field, "%"), label, said);
  return { tools, select, slider, field, follow: { input, label, name }, said };
}

/** Puts a slider at a change in percent, among steps that include it. */
function point(slider, change) {
  slider.min = LOWEST + (Math.round(100 * (change - LOWEST)) % (100 * STEP)) / 100;
  slider.value = change;
}

/** A number as a change in percent, within the limits and with at most two decimals; `other` for NaN. */
function bounded(number, other) {
  return Number.isNaN(number) ? other : Math.round(100 * Math.min(Math.max(number, LOWEST), HIGHEST)) / 100;
}

/** The assets that stand for an asset, but have their own price from the oracle. */
function followersOf(id, exposures) {
  return exposures.map(({ asset_info: info }) => info).filter(({ classification }) => classification.origin_asset?.id === id)
    .map(({ asset, metadata }) => ({ id: asset.id, symbol: metadata.symbol || short(asset.id) }));
}

/** Labels of the assets with debt or collateral, the largest first, by id. */
function choices(exposures) {
  const worth = ({ collateral_value: posted, debt_value: owed }) => Math.max(Number(posted), Number(owed));
  const rows = exposures.filter(worth).sort((one, other) => worth(other) - worth(one));
  return new Map(rows.map(({ asset_info: info, collateral_value: posted, debt_value: owed }) => [info.asset.id,
    `${info.metadata.symbol || short(info.asset.id)}: ${usd(posted)} collateral, ${usd(owed)} debt`]));
}

function signed(change) {
  return `${change > 0 ? "+" : ""}${change}%`.replace("-", "−");
}

function sentence(change, { price: assumed, accounts: count, ...step }) {
  const at = `${signed(change)}, at ${price(assumed)}: `;
  return count === 0 ? `${at}no account could be liquidated`
    : `${at}${count} account${count === 1 ? "" : "s"} could be liquidated, with ${usd(step.debt_value)} of debt and `
      + `${usd(step.collateral_value)} of collateral; bad debt ${usd(step.bad_debt)}`;
}

/** The column of the price at which an account's health is 1, with its distance from the present price. */
function healthIsOneAt({ asset_info: { asset }, price: present }) {
  const at = ({ liquidation }) => liquidation.find((one) => one.asset.id === asset.id);
  // A price that is many times the present price means nothing.
  const text = ({ price: reached, extra }) =>
    (reached === null || reached > MANY * present ? null : `${extra.text.price} (${withSign(reached / present - 1)})`);
  return { title: "Health is 1 at", number: true, cell: (account) => at(account) && text(at(account)) };
}

function spec({ steps }, place) {
  const x = numbers(steps.map(({ change }) => change));
  const traces = [["Liquidatable debt", "debt_value", LIQUIDATABLE], ["Collateral", "collateral_value", "--series-7"], ["Bad debt", "bad_debt", BAD_DEBT]]
    .flatMap(([name, field, color]) => line(name, x, numbers(steps.map((step) => step[field])), color));
  const columns = [
    { title: "Change", number: true, cell: ({ change }) => withSign(change) },
    { title: "Price", number: true, cell: (step) => exact(step.price, price) },
    { title: "Accounts", number: true, cell: ({ accounts }) => accounts },
    { title: "Liquidatable debt", number: true, cell: (step) => exact(step.debt_value, usd) },
    { title: "Collateral", number: true, cell: (step) => exact(step.collateral_value, usd) },
    { title: "Bad debt", number: true, cell: (step) => exact(step.bad_debt, usd) },
  ];
  return { traces, place, xaxis: { ...PERCENT, title: { text: "Change of the price" } }, yaxis: DOLLARS, table: { columns, rows: steps } };
}
