// Common parts of charts over time: the range, the open bucket, the tooltip, the table of numbers.
import { colorOf } from "./charts.js";
import { assetColors } from "./colors.js";
import { exact } from "./dom.js";
import { usd } from "./format.js";
import { hasValues, numbers, total } from "./series.js";

// Vertical axes. Percentages have as many digits as ticks need.
export const DOLLARS = { tickprefix: "$" };
// Prices below a cent have all their zeros; other axes use prefixes such as µ.
export const PRICE = { ...DOLLARS, exponentformat: "none", separatethousands: true };
export const PERCENT = { tickformat: "~%" };

/** A chart of an answer's buckets, or null if no reading has a value. `readings` are columns of the API's texts with the
 * name of their trace, their format, whether they only count observations, and whether the page calculated them, without
 * exact values. `more` goes to `draw` of charts.js. */
export function overTime(answer, traces, readings, more = {}) {
  if (!readings.some(({ values, counts }) => !counts && hasValues(values))) return null;
  const { x, starts, range } = answer;
  const end = range.end + 1;
  const open = end * 1000 > Date.now() ? { openFrom: starts.at(-1), openTo: answer.at(end) } : {};
  const when = (place) => `${starts[place].slice(0, 16)}${starts[place] === open.openFrom ? ", in progress" : ""}`;
  const hasValue = (place) => readings.some(({ values, counts }) => !counts && (values[place] ?? null) !== null);
  const said = (place) => (hasValue(place) ? readings.map(({ name, values, format }) => ({ name, value: format(values[place]) }))
    : [{ name: "No data", value: "" }]);
  const columns = [{ title: "From", cell: (place) => starts[place] },
    ...readings.map(({ name, values, format, calculated }) =>
      ({ title: name, number: true, cell: (place) => (calculated ? format(values[place]) : exact(values[place], format)) }))];
  return {
    x,
    starts,
    place: x.findLastIndex((_, place) => hasValue(place)),
    traces,
    xaxis: { type: "date", range: [starts[0], answer.at(end)] },
    read: (place) => ({ title: when(place), rows: said(place) }),
    table: { columns, rows: x.map((_, place) => place) },
    ...open,
    ...more,
  };
}

/** Stacked areas, one for each series of an answer in its order; the last has all other assets. Where no asset has a value
 * there is a gap. */
export function stacked(answer) {
  const series = answer.series.filter(({ v }) => hasValues(v));
  const colors = assetColors(series.map(({ asset }) => asset).filter(Boolean));
  const areas = series.map(({ asset, symbol, v }, place) =>
    ({ name: asset ? symbol ?? asset : "Others", y: numbers(v), color: colors[place] ?? "--series-8" }));
  const sums = total(answer);
  const stretches = filled(sums);
  const traces = areas.flatMap((one) => stretches.map((stretch, number) => area(one, answer.x, stretch, number)));
  const readings = areas.map(({ name }, place) => ({ name, values: series[place].v, format: usd }));
  const all = { name: "All", values: sums, calculated: true, format: usd };
  return overTime(answer, traces, [...readings, all], { yaxis: DOLLARS });
}

/** The stretches of a column without nulls, as half-open pairs of places. */
function filled(column) {
  const isThere = (place) => (column[place] ?? null) !== null;
  const begins = column.map((_, place) => place).filter((place) => isThere(place) && !isThere(place - 1));
  return begins.map((begin) => {
    const length = column.slice(begin).indexOf(null);
    return [begin, length < 0 ? column.length : begin + length];
  });
}

/** One stretch of an area. The library would draw a gap as zero, so each stretch is a stack of its own. */
function area({ name, y, color }, x, [from, to], number) {
  const line = { width: 0.7, color: colorOf("--paper") };
  return { x: x.slice(from, to), y: y.slice(from, to), name, type: "scatter", mode: "lines", stackgroup: `stretch ${number}`,
    line, fillcolor: colorOf(color), hoverinfo: "skip" };
}
