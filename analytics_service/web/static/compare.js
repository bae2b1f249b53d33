// The prices of two assets, as changes since the first moment in the range when both have a price.
import { assetName } from "./assets.js";
import { line } from "./charts.js";
import { assetColors } from "./colors.js";
import { h } from "./dom.js";
import { withSign } from "./format.js";
import { go } from "./route.js";
import { numbers } from "./series.js";
import { overTime, PERCENT } from "./specs.js";

/** A list of assets to compare with. The URL keeps the choice. */
export function comparison(others, chosen) {
  const sorted = others.toSorted((one, other) => assetName(one).localeCompare(assetName(other)));
  const select = h("select", { onchange: () => go({ with: select.value || null, candles: null, log: null }) },
    h("option", { value: "" }, "nothing"),
    sorted.map((asset) => h("option", { value: asset.id, selected: asset.id === chosen }, assetName(asset))));
  return h("label", {}, "Compare with", select);
}

/** Lines of an answer with the candles of some assets, in their order. */
export function compared(answer, assets) {
  const closes = answer.series.map(({ c }) => numbers(c));
  const base = answer.t.findIndex((_, place) => closes.every((values) => values[place]));
  if (base < 0) return null;
  const readings = assets.map((asset, number) => ({ name: assetName(asset), calculated: true, format: withSign,
    values: closes[number].map((value) => (value === null ? null : value / closes[number][base] - 1)) }));
  const colors = assetColors(assets.map(({ id }) => id));
  const traces = readings.flatMap(({ name, values }, number) =>
    line(name, answer.x, values, colors[number], answer.series[number].n));
  return overTime(answer, traces, readings, { yaxis: PERCENT });
}
