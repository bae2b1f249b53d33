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
// Colours of the view of risk, which mean the same in all its charts.
export const LIQUIDATABLE = "--series-6", BAD_DEBT = "--series-4";
// In percent.
const [LOWEST, HIGHEST, STEP, AT_FIRST] = [-95, 100, 5, -20];
const MANY = 100;

/** Fills a place with a chart of the asset's prices, a slider, and the accounts at the chosen one. By default the asset
 * is that of the largest exposure. `at` is the moment of all numbers. */
export async function ladder(place, exposures, at, signal) {
  const assets = choices(exposures);
  if (!assets.size) return place.replaceChildren(notice("Nobody owes anything."));
  const { tools, select, slider, field, follow, said } = controls(assets, current(), { redraw, tell, settle, choose });
  const [others, listed] = [h("p", { class: "soft" }), h("section", { class: "panel many" })];
  let [loaded, chart, drawing] = [null, null, new AbortController()];
  const step = () => loaded.steps.find(({ change }) => Math.abs(100 * change - slider.value) < 1e-6);
  const followers = () => (follow.input.checked ? followersOf(select.value, exposures) : []);
  async function load() {
    const following = followers().map(({ id }) => id).join();
    const given = { asset_id: select.value, from: slider.min, to: HIGHEST, step: STEP, following, at };
    const answer = await get(PATH, given, drawing.signal);
    loaded = answer.data;
    tell();
    show();
    return { ...answer, path: PATH, given, isHistory: false, hasCsv: true };
  }
  // The slider may be moved before there are steps.
  function tell() {
    field.value = slider.value;
    if (!loaded) return;
    said.textContent = sentence(slider.value, step());
    mark(chart.panel, loaded.steps.indexOf(step()));
  }
  /** Goes to a change that was typed. What is none leaves the one before. */
  function choose(typed) {
    const before = slider.min;
    point(slider, bounded(typed, Number(slider.value)));
    if (slider.min === before) {
      tell();
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
    // A price at which health is 1 is one while all others stay.
    const columns = moving.length > 1 ? [] : [turnsAt(loaded)];
    const { list } = accounts("Accounts that could be liquidated", query, step().accounts, drawing.signal, { columns });
    listed.replaceChildren(h("h2", {}, `Accounts that could be liquidated at ${signed(slider.value)}`),
      h("p", { class: "soft" }, "Debt, collateral and health are those at that price."), list);
  }
  async function redraw() {
    const focused = tools.contains(document.activeElement) ? document.activeElement : null;
    // What was asked for before is not wanted any more.
    drawing.abort();
    [loaded, drawing] = [null, new AbortController()];
    said.replaceChildren();
    listed.replaceChildren();
    field.value = slider.value;
    const names = followersOf(select.value, exposures).map(({ symbol }) => symbol).join(", ");
    follow.label.hidden = !names;
    follow.name.textContent = `${names} too`;
    others.textContent = `Receipt tokens of the asset follow its price. All other prices stay${names && !follow.input.checked
      ? `, also that of ${names}, which the oracle quotes` : ""}.`;
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

/** What chooses the asset, the change of its price, and whether others follow it, with a place to say what comes of it. */
function controls(assets, { of, change = AT_FIRST, follow: isFollowed }, { redraw, tell, settle, choose }) {
  const select = h("select", { onchange: () => (note({ of: select.value }), redraw()) }, [...assets].map(([id, text]) =>
    h("option", { value: id, selected: id === of }, text)));
  // Accounts are asked for once the slider rests.
  const slider = h("input", { type: "range", max: HIGHEST, step: STEP, oninput: tell, onchange: settle });
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

/** A number as a change in percent, with two decimals at most; another one in place of what is no number. */
function bounded(number, other) {
  return Number.isNaN(number) ? other : Math.round(100 * Math.min(Math.max(number, LOWEST), HIGHEST)) / 100;
}

/** The assets that stand for an asset in the market, but have a price of their own from the oracle. */
function followersOf(id, exposures) {
  return exposures.map(({ asset_info: info }) => info).filter(({ classification }) => classification.origin_asset?.id === id)
    .map(({ asset, metadata }) => ({ id: asset.id, symbol: metadata.symbol || short(asset.id) }));
}

/** What the assets with debt or collateral are called in the list to choose from, the largest first. */
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

/** The column of the price at which an account begins or ceases to be liquidatable, with its distance from the present
 * one. */
function turnsAt({ asset_info: { asset }, price: present }) {
  const at = ({ liquidation }) => liquidation.find((one) => one.asset.id === asset.id);
  // A price that is many times the present one tells nothing.
  const text = ({ price: turning, extra }) =>
    (turning === null || turning > MANY * present ? null : `${extra.text.price} (${withSign(turning / present - 1)})`);
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
