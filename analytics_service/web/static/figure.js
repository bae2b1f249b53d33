// A chart in its panel, with the source of its numbers.
import { address, ApiError, asksForKeys } from "./api.js";
import { ahead, draw } from "./charts.js";
import { copyButton, failed, h, idOf, loading, notice, table } from "./dom.js";
import { csvLink, fileLink } from "./file.js";
import { bytes, time, wall } from "./format.js";
import { current, go, rangeUpTo } from "./route.js";

/** A panel that loads histories and draws them. `load` returns one or several results of `history` of series.js; `spec`
 * converts them to the argument of `draw` of charts.js, or to null if they have no values. */
export function figure(title, load, spec, tools = null) {
  ahead();
  const id = `chart-${idOf(title)}`;
  const box = h("div", { class: "chart", id, tabindex: "0", role: "application", "aria-label": `${title}: chart`,
    "aria-roledescription": "chart", "aria-describedby": "chart-help" }, loading());
  const [names, data] = [h("div", { class: "legend" }), h("details", { class: "source", hidden: true })];
  const ending = h("span", { class: "soft" });
  const panel = h("section", { class: "panel", "aria-labelledby": `${id}-title` },
    h("h2", { id: `${id}-title` }, title, ending), tools, box, h("div", { class: "below" }, names, data));
  async function fill() {
    try {
      const answers = [await load()].flat();
      const drawn = spec(...answers);
      ending.textContent = endOf(answers);
      data.replaceChildren(h("summary", {}, "Data"), ...answers.map(source), ...(drawn ? [rows(title, drawn, data)] : []));
      data.hidden = false;
      if (drawn) await draw(box, names, drawn);
      else box.replaceChildren(...empty(answers[0]));
    } catch (error) {
      if (error.name === "AbortError") return;
      box.replaceChildren(...failed(error.message, fill));
      if (!(error instanceof ApiError)) throw error;
    }
  }
  return { panel, done: fill() };
}

/** The end of the chart's data, if it was long ago. */
function endOf(answers) {
  const ended = answers.find(({ last }) => (last ?? null) !== null);
  return ended ? ` Data ends ${wall(ended.last, current().tz).slice(0, 10)}` : "";
}

/** The message in place of a chart without values. */
function empty({ asOf, t }) {
  if (asOf === null || t.length === 0) return [notice("There is no data up to the end of this range. Choose a later range.")];
  if (asOf >= t[0]) return [notice("There is no data in this range.")];
  const route = current();
  const show = () => go(rangeUpTo(asOf, route));
  const text = `There is no data in this range. The newest data is from ${time(asOf, route.tz)}.`;
  return [notice(text), h("p", {}, h("button", { type: "button", onclick: show }, "Show the newest data"))];
}

/** The source of the numbers: URL, size and duration of the answer, files, and code. */
function source({ url, path, given, bytes: size, ms, isHistory = true, hasCsv = isHistory }) {
  const file = (format) => address(path, { ...given, format });
  const header = asksForKeys() ? `"Authorization": "Bearer YOUR_KEY"` : null;
  const options = header ? `, storage_options={${header}}` : "";
  const curl = `curl ${header ? '-H "Authorization: Bearer YOUR_KEY" ' : ""}"${url}"`;
  const pandas = `import pandas as pd\n\ndf = pd.read_parquet("${file("parquet")}"${options})`;
  const polars = header
    ? `import io\nimport urllib.request\n\nimport polars as pl\n\nrequest = urllib.request.Request("${file("parquet")}", headers={${header}})\ndf = pl.read_parquet(io.BytesIO(urllib.request.urlopen(request).read()))`
    : `import polars as pl\n\ndf = pl.read_parquet("${file("parquet")}")`;
  const code = isHistory ? [copyButton("Copy as pandas", pandas), copyButton("Copy as Polars", polars)] : [];
  return h("div", {}, h("p", {}, h("code", {}, url), h("span", { class: "soft" }, ` ${bytes(size)} in ${ms.toFixed(0)} ms`)),
    h("div", { class: "tools" }, hasCsv ? csvLink(path, given) : null, isHistory ? fileLink("Parquet", file("parquet")) : null,
      copyButton("Copy as curl", curl), code));
}

/** The numbers of a chart as a table, for those who cannot see the chart. It is made when it is opened. */
function rows(title, spec, data) {
  const place = h("div");
  data.addEventListener("toggle", () => {
    if (data.open && place.isConnected && !place.firstChild) place.append(table(`${title}: numbers`, spec.table.columns, spec.table.rows));
  });
  return place;
}
