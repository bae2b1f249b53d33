// Charts by plotly.js. A crosshair is shared by all charts of a view.
import { h } from "./dom.js";
import { go } from "./route.js";
import { spark } from "./spark.js";

const MARGIN = { l: 64, r: 12, t: 8, b: 36 };
const CONFIG = { displayModeBar: false, responsive: true, doubleClick: false };
// Milliseconds to wait before the library is started, so that everything else is drawn first.
const PAUSE = 150;
const shown = new Set();

/** Forgets the charts in an element, by default all. */
export function clear(element = document) {
  for (const chart of shown) {
    if (!element.contains(chart.box)) continue;
    globalThis.Plotly?.purge(chart.box);
    shown.delete(chart);
  }
}

/** A line through what a series has observed. With counts of observations (`n`), buckets that only repeat the value
 * before are a dotted line beside it. */
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
    { ...base, y: carried, line: { ...stroke, dash: "dot" }, opacity: 0.7, showlegend: false },
  ];
}

/** Candles of a series; buckets without observations have none. */
export function candles(name, x, series) {
  const there = (column) => column.map((value, place) => (series.n[place] ? Number(value) : null));
  const side = (color) => ({ line: { color: colorOf(color), width: 1 }, fillcolor: colorOf(color) });
  const [open, high, low, close] = [series.o, series.h, series.l, series.c].map(there);
  const sides = { increasing: side("--good"), decreasing: side("--bad") };
  return [{ x, open, high, low, close, name, type: "candlestick", hoverinfo: "skip", ...sides }];
}

/** Draws traces into a box. `spec` has `traces`. Charts over time also have `x`, and `read(place)`, the crosshair's
 * text for a bucket. Optional are `place` (the bucket shown first), `zoomable` (false if the chart's range is not that
 * of the page), `openFrom` and `openTo` (the bucket that has not ended), `log`, and settings of `xaxis` and `yaxis`. */
export async function draw(box, readout, spec) {
  if (!globalThis.Plotly) box.replaceChildren(preview(spec));
  const Plotly = await library();
  if (!box.isConnected) return;
  box.replaceChildren();
  await Plotly.newPlot(box, literal(spec.traces), literal(layout(spec)), CONFIG);
  // The view may have been left by now. A chart that is not purged stays in memory.
  if (!box.isConnected) return Plotly.purge(box);
  const hair = h("div", { class: "hair", hidden: true });
  const chart = { box, hair, readout, spec, place: null, anchor: null };
  shown.add(chart);
  if (!spec.x) return;
  box.append(hair);
  follow(chart);
  readout.textContent = spec.read(Math.max(spec.place ?? spec.x.length - 1, 0));
  // A brush over a chart is a range for the whole page.
  box.on("plotly_relayout", (change) => {
    const [start, end] = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
    if (start !== undefined) zoom(start, end);
  });
}

/** A copy in which every text stands for itself: the library reads HTML in texts, and symbols may be anything. */
function literal(parts) {
  const escaped = (_, part) => (typeof part === "string" ? part.replaceAll("&", "&amp;").replaceAll("<", "&lt;") : part);
  return JSON.parse(JSON.stringify(parts), escaped);
}

function zoom(start, end) {
  // The library writes midnight as a date, which would mean the end of that day to the API.
  const second = (wall) => (wall.length > 10 ? wall : `${wall} 00:00:00`).replace(" ", "T").slice(0, 19);
  go({ range: null, start: second(start), end: second(end) });
}

/** A range is chosen on charts of the page's own range only. */
function isZoomable(spec) {
  return Boolean(spec.x) && spec.zoomable !== false;
}

/** A finger that moves over a chart scrolls the page. */
function isBrushable(spec) {
  return isZoomable(spec) && !matchMedia("(pointer: coarse)").matches;
}

function layout(spec) {
  const [ink, line, paper] = ["--ink", "--line", "--paper"].map(colorOf);
  const axis = { gridcolor: line, zerolinecolor: line, linecolor: line, color: ink };
  const band = { type: "rect", yref: "paper", y0: 0, y1: 1, fillcolor: colorOf("--warn"), opacity: 0.16, line: { width: 0 } };
  return {
    autosize: true,
    margin: MARGIN,
    paper_bgcolor: paper,
    plot_bgcolor: paper,
    font: { family: "system-ui, sans-serif", size: 12, color: ink },
    dragmode: isBrushable(spec) ? "zoom" : false,
    hovermode: false,
    barmode: "stack",
    showlegend: spec.traces.filter((trace) => trace.showlegend !== false).length > 1,
    legend: { orientation: "h", y: 1, yanchor: "bottom", x: 0 },
    xaxis: { ...axis, rangeslider: { visible: false }, fixedrange: !isBrushable(spec), ...(spec.xaxis ?? {}) },
    // Labels of values that hardly differ are long.
    yaxis: { ...axis, type: spec.log ? "log" : "linear", fixedrange: true, automargin: true, ...(spec.yaxis ?? {}) },
    shapes: spec.openFrom === undefined ? [] : [{ ...band, x0: spec.openFrom, x1: spec.openTo }],
  };
}

// The crosshair: by pointer, by touch and by the arrow keys.
function follow(chart) {
  const { box } = chart;
  box.addEventListener("pointermove", (event) => pointAll(chart, nearest(chart, event.clientX)));
  box.addEventListener("pointerdown", (event) => pointAll(chart, nearest(chart, event.clientX)));
  box.addEventListener("keydown", (event) => {
    const last = chart.spec.x.length - 1;
    const place = chart.place ?? last;
    const to = { ArrowLeft: place - 1, ArrowRight: place + 1, Home: 0, End: last }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      pointAll(chart, Math.min(Math.max(to, 0), last));
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      choose(chart, place);
    } else if (event.key === "Escape") chart.anchor = null;
  });
}

/** Zooming without a pointer: Enter begins a range at the crosshair, and a second Enter ends it. */
function choose(chart, place) {
  if (!isZoomable(chart.spec)) return;
  const { x } = chart.spec;
  if (chart.anchor === null || chart.anchor === place) {
    chart.anchor = place;
    chart.readout.textContent = `${x[place]}: start of the range. Move on and press Enter to zoom, Escape to leave it.`;
  } else zoom(x[Math.min(chart.anchor, place)], x[Math.max(chart.anchor, place)]);
}

function pointAll(chart, place) {
  const at = chart.spec.x[place];
  for (const one of shown) if (one.spec.x) point(one, one === chart ? place : lastUpTo(one.spec.x, at));
}

function point(chart, place) {
  if (place < 0) return;
  const { left, width, begin, end } = plotArea(chart);
  const part = (moment(chart.spec.x[place]) - begin) / (end - begin);
  chart.place = place;
  chart.hair.hidden = part < 0 || part > 1;
  chart.hair.style.left = `${left + part * width}px`;
  chart.readout.textContent = chart.spec.read(place);
}

function nearest(chart, clientX) {
  const { left, width, begin, end } = plotArea(chart);
  const wanted = begin + ((clientX - chart.box.getBoundingClientRect().left - left) / width) * (end - begin);
  const { x } = chart.spec;
  const before = Math.max(lastUpTo(x, new Date(wanted).toISOString().slice(0, 19).replace("T", " ")), 0);
  const isLaterNearer = before + 1 < x.length && moment(x[before + 1]) - wanted < wanted - moment(x[before]);
  return before + (isLaterNearer ? 1 : 0);
}

function plotArea({ box }) {
  const [begin, end] = box.layout.xaxis.range.map((bound) => moment(String(bound)));
  // The margins are as wide as the labels need.
  const { l: left, w: width } = box._fullLayout._size;
  return { left, width, begin, end };
}

/** The place of the last one of ascending times up to a time; -1 before the first. Times of one format compare as
 * text. */
function lastUpTo(times, time) {
  const after = times.findIndex((one) => one > time);
  return (after < 0 ? times.length : after) - 1;
}

/** Milliseconds of what a clock shows, counted as if it were UTC: only differences matter. */
function moment(wall) {
  return Date.parse(`${wall.replace(" ", "T")}${wall.length > 10 ? "" : "T00:00"}Z`);
}

/** A colour of the style sheet as it is in the present theme. */
export function colorOf(variable) {
  const probe = h("span");
  probe.style.color = `var(${variable})`;
  document.body.append(probe);
  const color = getComputedStyle(probe).color;
  probe.remove();
  return color;
}

const LIBRARY = document.documentElement.dataset.charts;
let fetched = null;
let loading = null;

/** Fetches the library while a chart waits for its numbers. The browser keeps it; if it cannot be had, `draw` says so. */
export function ahead() {
  fetched ??= fetch(LIBRARY, { priority: "low" }).then((answer) => answer.blob()).catch(() => null);
}

/** plotly.js, which takes a second to begin on a slow machine: it is started when the rest of the page is there. */
function library() {
  loading ??= new Promise((loaded, failed) => {
    const script = h("script", { src: LIBRARY });
    script.addEventListener("load", () => loaded(globalThis.Plotly));
    script.addEventListener("error", () => {
      // The next attempt begins anew.
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

/** What a chart looks like until the library draws it: its first line, or all areas as one. */
function preview({ traces }) {
  const lines = traces.map((trace) => trace.y ?? trace.close);
  const values = traces[0].stackgroup ? lines[0].map((_, place) => lines.reduce((sum, y) => sum + (y[place] ?? 0), 0)) : lines[0];
  return h("div", { class: "preview", "aria-hidden": "true" }, spark(values, ""));
}
