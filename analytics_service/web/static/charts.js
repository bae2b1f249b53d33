// Charts by plotly.js. All charts of a view share a crosshair.
import { h } from "./dom.js";
import { isZoomed, zoom, zoomOut } from "./route.js";
import { spark } from "./spark.js";

// Pixels between labels over time: closer labels would be rotated and cut off. Labels with hours have no room for the
// year, which the tooltip shows.
const LABEL = 54;
const HOURS = { dtickrange: [null, 43_200_000], value: "%H:%M\n%b %-d" };
const MARGIN = { l: 64, r: 12, t: 8, b: 36 };
// Below this width in pixels, on a phone, labels of the vertical axis get only the room that they need.
const NARROW = 500;
const CONFIG = { displayModeBar: false, responsive: true, doubleClick: false };
// Milliseconds to wait before the library is started, so that everything else is drawn first.
const PAUSE = 150;
const shown = new Set();
// Whether the viewer has chosen a range by pointer.
let hasZoomed = false;

/** Forgets the charts in an element, by default all. */
export function clear(element = document) {
  for (const chart of shown) {
    if (!element.contains(chart.box)) continue;
    globalThis.Plotly?.purge(chart.box);
    shown.delete(chart);
  }
}

/** A line through the values of a series. With counts of observations (`n`), buckets that only repeat the value before
 * are a dotted line. */
export function line(name, x, y, color, n = null) {
  const base = { x, name, type: "scatter", mode: "lines", hoverinfo: "skip", connectgaps: false };
  const stroke = { color: colorOf(color), width: 1.8 };
  if (n === null) return [{ ...base, y, line: stroke }];
  // A stretch begins and ends at its neighbours, so that the two lines meet.
  const near = (place, test) => [place, place + 1].some((one) => n[one] !== undefined && test(n[one]));
  const observed = y.map((value, place) => (n[place] > 0 || near(place, (count) => count > 0) ? value : null));
  const carried = y.map((value, place) => (n[place] === 0 || near(place, (count) => count === 0) ? value : null));
  return [
    { ...base, y: observed, line: stroke },
    { ...base, y: carried, line: { ...stroke, dash: "dot" }, opacity: 0.7 },
  ];
}

/** Candles of a series; buckets without observations have none. */
export function candles(name, x, series) {
  const there = (column) => column.map((value, place) => (series.n[place] && value !== null ? Number(value) : null));
  const side = (color) => ({ line: { color: colorOf(color), width: 1 }, fillcolor: colorOf(color) });
  const [open, high, low, close] = [series.o, series.h, series.l, series.c].map(there);
  const sides = { increasing: side("--good"), decreasing: side("--bad") };
  return [{ x, open, high, low, close, name, type: "candlestick", hoverinfo: "skip", ...sides }];
}

/** Draws traces into a box, and fills its legend. `spec` has `traces` and `table`, the columns and rows of their numbers.
 * Charts over time also have `x`, where the buckets lie on the axis, and `starts`, when they begin, if they lie elsewhere.
 * Optional are `read(place)`, the title and rows of the tooltip (by default the table's row), `place` (what the keyboard
 * begins with; a chart not over time marks it), `zoomable` (false if the chart's range is not that of the page), `openFrom`
 * and `openTo` (the bucket that has not ended), `dotted`, what a dotted line means where it is not what `line` says,
 * `choose(place)`, what a click or Enter does instead of a zoom, `log`, and settings of `xaxis` and `yaxis`. */
export async function draw(box, names, spec) {
  if (!globalThis.Plotly) box.replaceChildren(preview(spec));
  const Plotly = await library();
  if (!box.isConnected) return;
  box.replaceChildren();
  await Plotly.newPlot(box, literal(spec.traces), literal(layout(spec, box.clientWidth)), CONFIG);
  // The viewer may have left the view. A chart that is not purged stays in memory.
  if (!box.isConnected) return Plotly.purge(box);
  const hair = h("div", { class: "hair", hidden: true });
  const tooltip = h("div", { class: "tooltip", "aria-live": "polite" });
  const x = placesOf(spec);
  const chart = { box, hair, tooltip, spec, x, times: isOverTime(spec) ? spec.starts ?? x : null, place: spec.place ?? x.length - 1, anchor: null };
  shown.add(chart);
  box.append(hair, tooltip);
  names.replaceChildren(...legend(box, spec));
  follow(chart);
  // Brushing a chart chooses the range of the whole page.
  box.on("plotly_relayout", (change) => {
    const [start, end] = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
    if (start === undefined) return;
    hasZoomed = true;
    zoom(start, end);
  });
  // Deferred: the library still uses the chart after the event, and zooming replaces it.
  if (isZoomable(spec)) box.on("plotly_doubleclick", () => setTimeout(zoomOut));
}

/** Marks another place in the chart of a panel, once it is drawn. */
export function mark(panel, place) {
  const chart = [...shown].find(({ box }) => panel.contains(box));
  if (!chart) return;
  globalThis.Plotly.relayout(chart.box, { shapes: [markOf(chart.x[place])] });
  point(chart, place);
}

function markOf(x) {
  const line = { color: colorOf("--ink"), width: 1.5 };
  return { type: "line", yref: "paper", x0: x, x1: x, y0: 0, y1: 1, line };
}

/** A copy with escaped texts: the library reads HTML in texts, and symbols may be anything. */
function literal(parts) {
  const escaped = (_, part) => (typeof part === "string" ? part.replaceAll("&", "&amp;").replaceAll("<", "&lt;") : part);
  return JSON.parse(JSON.stringify(parts), escaped);
}

/** Whether the chart can choose a range: it shows the page's range. */
function isZoomable(spec) {
  return isOverTime(spec) && spec.zoomable !== false;
}

function isOverTime({ xaxis }) {
  return xaxis?.type === "date";
}

/** The positions of the table's rows on the axis. */
function placesOf({ x, traces }) {
  return x ?? traces[0].x;
}

/** Whether a pointer can choose a range. A finger on a chart scrolls the page. */
function isBrushable(spec) {
  return isZoomable(spec) && !matchMedia("(pointer: coarse)").matches;
}

function layout(spec, width) {
  const { openFrom, openTo, place } = spec;
  const [ink, line, paper] = ["--ink", "--line", "--paper"].map(colorOf);
  const axis = { gridcolor: line, zerolinecolor: line, linecolor: line, color: ink };
  const ticks = isOverTime(spec) ? { tickangle: 0, tickformatstops: [HOURS], nticks: Math.max(Math.floor((width - MARGIN.l) / LABEL), 2) } : {};
  const band = { type: "rect", yref: "paper", y0: 0, y1: 1, fillcolor: colorOf("--warn"), opacity: 0.1, line: { width: 0 } };
  return {
    autosize: true,
    margin: width < NARROW ? { ...MARGIN, l: 44 } : MARGIN,
    paper_bgcolor: paper,
    plot_bgcolor: paper,
    font: { family: "system-ui, sans-serif", size: 12, color: ink },
    dragmode: isBrushable(spec) ? "zoom" : false,
    hovermode: false,
    barmode: "stack",
    // The library's legend has no keyboard access, and would resize the plot.
    showlegend: false,
    xaxis: { ...axis, ticks: "outside", ticklen: 4, tickcolor: paper, rangeslider: { visible: false }, fixedrange: !isBrushable(spec), ...ticks, ...(spec.xaxis ?? {}) },
    // If values hardly differ, labels are long.
    yaxis: { ...axis, type: spec.log ? "log" : "linear", fixedrange: true, automargin: true, ...(spec.yaxis ?? {}) },
    shapes: [...(openFrom ? [{ ...band, x0: openFrom, x1: openTo }] : []),
      ...(place === undefined || isOverTime(spec) ? [] : [markOf(placesOf(spec)[place])])],
  };
}

/** Buttons that hide and show traces, if there are several; the meaning of other marks; and a button to zoom out. */
function legend(box, spec) {
  const { traces } = spec;
  const names = [...new Set(traces.map(({ name }) => name))];
  const toggle = ({ currentTarget: button }) => {
    const isOn = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", isOn);
    const places = traces.map((_, place) => place).filter((place) => traces[place].name === button.textContent);
    globalThis.Plotly.restyle(box, { visible: isOn }, places);
  };
  const buttons = names.length < 2 ? [] : names.map((name) =>
    h("button", { type: "button", "aria-pressed": true, onclick: toggle }, swatch(colorIn(spec, name)), name));
  const out = isZoomable(spec) && isZoomed() ? [h("button", { type: "button", class: "zoom", onclick: zoomOut }, "Zoom out")] : [];
  return [...buttons, ...marks(spec), ...out];
}

/** The colour of the traces with a name, if they have one colour. */
function colorIn({ traces }, name) {
  const { fillcolor, line, marker } = traces.find((trace) => trace.name === name) ?? {};
  return [fillcolor, line?.color, marker?.color].find((color) => typeof color === "string");
}

function swatch(color) {
  const made = h("span", { class: "swatch" });
  made.style.background = color;
  return made;
}

/** The meaning of dotted lines, shades and gaps in a chart over time, if it has them. */
function marks(spec) {
  const { traces, openFrom, dotted = "no new observation" } = spec;
  if (!isOverTime(spec)) return [];
  // A line of observations would hide the dots.
  const isSeen = ({ name, y }) => traces.some((other) => other.name === name && !other.line.dash && y.some((value, place) => value !== null && other.y[place] === null));
  const isDotted = traces.some((trace) => trace.line?.dash && isSeen(trace));
  const mark = (kind, text) => h("span", { class: "mark" }, h("span", { class: `swatch ${kind}` }), text);
  return [isDotted ? mark("dotted", dotted) : null, openFrom ? mark("shaded", "in progress") : null,
    hasGap(traces, placesOf(spec)) ? h("span", { class: "mark" }, "Gap: no data") : null].filter(Boolean);
}

/** Whether a series lacks a value between two values. A stack draws it as zero. */
function hasGap(traces, x) {
  const names = [...new Set(traces.map(({ name }) => name))];
  return names.some((name) => {
    const own = traces.filter((trace) => trace.name === name);
    const there = new Set(own.flatMap(({ x: at, y, close, stackgroup }) => at.filter((_, place) => stackgroup || (y ?? close)[place] !== null)));
    const places = [...x.keys()].filter((place) => there.has(x[place]));
    return places.length > 0 && places.length <= places.at(-1) - places[0];
  });
}

// The crosshair: by pointer, by touch and by the arrow keys.
function follow(chart) {
  const { box } = chart;
  for (const kind of ["pointermove", "pointerdown"]) box.addEventListener(kind, (event) => pointAll(chart, nearest(chart, event)));
  if (chart.spec.choose) box.addEventListener("click", (event) => choose(chart, nearest(chart, event)));
  box.addEventListener("keydown", (event) => {
    const last = chart.x.length - 1;
    const place = chart.place ?? last;
    const to = { ArrowLeft: place - 1, ArrowRight: place + 1, Home: 0, End: last }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      pointAll(chart, Math.min(Math.max(to, 0), last));
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      choose(chart, place);
    } else if (event.key === "Escape" && chart.anchor !== null) {
      chart.anchor = null;
      point(chart, place);
    }
  });
  box.addEventListener("pointerleave", () => shown.forEach(({ hair }) => (hair.hidden = true)));
}

/** Zooming without a pointer: Enter begins a range at the crosshair, and a second Enter ends it. */
function choose(chart, place) {
  if (chart.spec.choose) return chart.spec.choose(place);
  if (!isZoomable(chart.spec)) return;
  const { times } = chart;
  if (chart.anchor === null || chart.anchor === place) {
    chart.anchor = place;
    chart.tooltip.replaceChildren(`${times[place]}: start of the range. Move on and press Enter to zoom, or Escape to cancel.`);
  } else zoom(times[Math.min(chart.anchor, place)], endOf(chart, Math.max(chart.anchor, place)));
}

/** The last second of a bucket. */
function endOf({ times, spec }, place) {
  const next = times[place + 1] ?? spec.xaxis.range[1];
  return new Date(Date.parse(`${next.replace(" ", "T")}Z`) - 1000).toISOString().slice(0, 19);
}

/** Moves the crosshair of a chart; for a chart over time, of all charts over time. */
function pointAll(chart, place) {
  const at = chart.times?.[place];
  for (const one of shown) {
    if (one === chart) point(one, place);
    else if (at && one.times) point(one, lastUpTo(one.times, at));
  }
}

function point(chart, place) {
  if (place < 0) return;
  const { xaxis, _size: { t: top, h: height } } = chart.box._fullLayout;
  const pixel = pixelOf(xaxis, chart.x[place]);
  chart.place = place;
  chart.hair.hidden = pixel < 0 || pixel > xaxis._length;
  const left = xaxis._offset + pixel;
  Object.assign(chart.hair.style, { left: `${left}px`, top: `${top}px`, height: `${height}px` });
  chart.tooltip.replaceChildren(...read(chart, place));
  // The tooltip is on the side with more room.
  const right = chart.box.clientWidth - left;
  const side = left < right ? { left: `${left}px`, right: "" } : { left: "", right: `${right}px` };
  Object.assign(chart.tooltip.style, { ...side, maxWidth: `${Math.max(left, right)}px` });
}

/** The pixel of a value on an axis. Names of categories may look like numbers. */
function pixelOf(axis, value) {
  return axis.l2p(axis.d2l(value));
}

/** The contents of the tooltip for a place. */
function read({ spec }, place) {
  const { title, rows } = (spec.read ?? rowOf(spec))(place);
  const isNew = !hasZoomed && isBrushable(spec) && !isZoomed();
  return [h("strong", {}, title),
    h("dl", {}, rows.map(({ name, value }) => [h("dt", {}, colored(spec, name), name), h("dd", { class: "number" }, value)])),
    ...(isNew ? [h("p", { class: "soft" }, "Drag to zoom")] : [])];
}

function colored(spec, name) {
  const color = colorIn(spec, name);
  return color ? swatch(color) : null;
}

/** A row of the table, whose first cell is the title. */
function rowOf({ table: { columns: [first, ...columns], rows } }) {
  return (place) => ({ title: [first.title, " ", first.cell(rows[place])],
    rows: columns.map(({ title, cell, read: short = cell }) => ({ name: title, value: short(rows[place]) })) });
}

/** The place nearest to the pointer along the axis. */
function nearest({ box, x }, { clientX }) {
  const { xaxis } = box._fullLayout;
  const across = clientX - box.getBoundingClientRect().left - xaxis._offset;
  const distances = x.map((value) => Math.abs(pixelOf(xaxis, value) - across));
  return distances.indexOf(Math.min(...distances));
}

/** The place of the last of ascending times up to a time; -1 before the first. Times of one format compare as text. */
function lastUpTo(times, time) {
  const after = times.findIndex((one) => one > time);
  return (after < 0 ? times.length : after) - 1;
}

/** A colour in the present theme: a variable of the style sheet, or any CSS colour. */
export function colorOf(color) {
  const probe = h("span");
  probe.style.color = color.startsWith("--") ? `var(${color})` : color;
  document.body.append(probe);
  const computed = getComputedStyle(probe).color;
  probe.remove();
  return computed;
}

const LIBRARY = document.documentElement.dataset.charts;
let fetched = null;
let loading = null;

/** Fetches the library while a chart waits for its numbers. The browser caches it; `draw` reports failures. */
export function ahead() {
  fetched ??= fetch(LIBRARY, { priority: "low" }).then((answer) => answer.blob()).catch(() => null);
}

/** plotly.js. It takes a second to start on a slow machine, so the rest of the page comes first. */
function library() {
  loading ??= new Promise((loaded, failed) => {
    const script = h("script", { src: LIBRARY });
    script.addEventListener("load", () => loaded(globalThis.Plotly));
    script.addEventListener("error", () => {
      // Let the next attempt load it again.
      loading = null;
      script.remove();
      failed(new Error("The charting library could not be loaded."));
    });
    // Safari has no idle callbacks.
    const idle = globalThis.requestIdleCallback ?? setTimeout;
    setTimeout(() => idle(() => document.head.append(script), { timeout: PAUSE }), PAUSE);
  });
  return loading;
}

/** A preview until the library draws the chart: its first line, or all areas as one. */
function preview({ traces }) {
  const lines = traces.map((trace) => trace.y ?? trace.close);
  const values = traces[0].stackgroup ? lines[0].map((_, place) => lines.reduce((sum, y) => sum + (y[place] ?? 0), 0)) : lines[0];
  return h("div", { class: "preview", "aria-hidden": "true" }, spark(values, ""));
}
