// What could be liquidated at other prices of one asset, which the viewer chooses.
import { accounts } from "./accounts.js";
import { get } from "./api.js";
import { clear, line, mark } from "./charts.js";
import { h, notice } from "./dom.js";
import { figure } from "./figure.js";
import { withSign, price, short, usd } from "./format.js";
import { current, note } from "./route.js";
import { numbers } from "./series.js";
import { DOLLARS, PERCENT } from "./specs.js";

const PATH = "/analytics/market/risk/ladder";
const STEP = 5;
const MANY = 100;
const OTHERS = "Receipt tokens of the asset follow its price. All other prices stay, also that of a staked token.";

/** Fills a place with a chart of the asset's prices, a slider, and the accounts at the chosen one. By default the asset
 * is that of the largest exposure. `at` is the moment of all numbers. */
export async function ladder(place, exposures, at, signal) {
  const assets = choices(exposures);
  if (!assets.size) return place.replaceChildren(notice("Nobody owes anything."));
  const chosen = assets.has(current().of) ? current().of : [...assets.keys()][0];
  const change = (event) => {
    note({ of: event.target.value });
    ladder(place, exposures, at, signal);
  };
  const select = h("select", { onchange: change }, [...assets].map(([id, text]) =>
    h("option", { value: id, selected: id === chosen }, text)));
  const [said, listed] = [h("output"), h("div")];
  // Accounts are asked for once the slider rests.
  const slider = h("input", { type: "range", min: -95, max: 100, step: STEP, value: current().change ?? -20,
    oninput: () => tell(), onchange: () => settle() });
  const tools = h("div", { class: "tools" }, h("label", {}, "Price of", select), h("label", {}, "changes by", slider), said);
  const given = { asset_id: chosen, step: STEP, at };
  let loaded = null;
  const step = () => loaded.steps.find(({ change }) => Math.round(100 * change) === Number(slider.value));
  async function load() {
    const answer = await get(PATH, given, signal);
    loaded = answer.data;
    tell();
    show();
    return { ...answer, path: PATH, given, isHistory: false, hasCsv: true };
  }
  // The slider may be moved before there are steps.
  function tell() {
    if (!loaded) return;
    said.textContent = sentence(slider.value, step());
    mark(chart.panel, loaded.steps.indexOf(step()));
  }
  function choose(number) {
    slider.value = Math.round(100 * loaded.steps[number].change);
    tell();
    settle();
  }
  function settle() {
    note({ change: slider.value });
    show();
  }
  function show() {
    if (!loaded) return;
    const query = { sort: "health", at, prices: `${loaded.asset_info.asset.id}:${slider.value}%` };
    const { list } = accounts("Accounts that could be liquidated", query, step().accounts, signal, { columns: [turnsAt(loaded)] });
    listed.replaceChildren(h("section", { class: "panel" }, h("h2", {}, `Accounts that could be liquidated at ${signed(slider.value)}`),
      h("p", { class: "soft" }, "Debt, collateral and health are those at that price."), list));
  }
  const chart = figure("What could be liquidated at other prices", load, ({ data }) => ({ ...spec(data, data.steps.indexOf(step())), choose }),
    [tools, h("p", { class: "soft" }, OTHERS)]);
  clear(place);
  place.replaceChildren(chart.panel, listed);
  await chart.done;
}

/** What the assets with debt or collateral are called in the list to choose from, the largest first. */
function choices(exposures) {
  const worth = ({ collateral_value: posted, debt_value: owed }) => Math.max(Number(posted), Number(owed));
  const rows = exposures.filter(worth).sort((one, other) => worth(other) - worth(one));
  return new Map(rows.map(({ asset_info: info, collateral_value: posted, debt_value: owed }) => [info.asset.id,
    `${info.metadata.symbol || short(info.asset.id)}: ${usd(posted)} of collateral, ${usd(owed)} of debt`]));
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
  const traces = [["Debt", "debt_value", "--bad"], ["Collateral", "collateral_value", "--series-1"], ["Bad debt", "bad_debt", "--warn"]]
    .flatMap(([name, field, color]) => line(name, x, numbers(steps.map((step) => step[field])), color));
  const columns = [
    { title: "Change", number: true, cell: ({ change }) => withSign(change) },
    { title: "Price", number: true, cell: (step) => step.price, read: (step) => price(step.price) },
    { title: "Accounts", number: true, cell: ({ accounts }) => accounts },
    { title: "Debt", number: true, cell: (step) => step.debt_value, read: (step) => usd(step.debt_value) },
    { title: "Collateral", number: true, cell: (step) => step.collateral_value, read: (step) => usd(step.collateral_value) },
    { title: "Bad debt", number: true, cell: (step) => step.bad_debt, read: (step) => usd(step.bad_debt) },
  ];
  return { traces, place, xaxis: { ...PERCENT, title: { text: "Change of the price" } }, yaxis: DOLLARS, table: { columns, rows: steps } };
}
