// The header: the origin and age of the data, and the settings of all charts.
import { ApiError } from "./api.js";
import { h } from "./dom.js";
import { age, time } from "./format.js";
import { current, follow, go, link, RANGES, useZone } from "./route.js";
import { status } from "./status.js";
import { themeButton } from "./theme.js";

const VIEWS = { overview: "Overview", markets: "Markets", risk: "Risk", address: "Address" };
const REFRESH = 15_000;
// The range of times that the API accepts.
const YEARS = { min: "1970-01-02T00:00:00", max: "2106-02-06T00:00:00" };

// Names of datasets for visitors, where the API's names are unclear.
const NAMES = { ptoken: "protocol token", routes: "swap routes", config: "market settings" };
// Renamed zones: browsers list their old names.
const RENAMED = { "America/Buenos_Aires": "America/Argentina/Buenos_Aires", "America/Godthab": "America/Nuuk",
  "Asia/Calcutta": "Asia/Kolkata", "Asia/Katmandu": "Asia/Kathmandu", "Asia/Rangoon": "Asia/Yangon",
  "Asia/Saigon": "Asia/Ho_Chi_Minh", "Atlantic/Faeroe": "Atlantic/Faroe", "Europe/Kiev": "Europe/Kyiv" };
// A view of one moment, without a range.
const WITHOUT_RANGE = "markets";

/** Fills the header, and returns two functions: `update` to the page's URL, and `look`, which checks the service at
 * once. `looked` is called after each check, with what it showed. */
export function header(element, reload, looked) {
  const data = ages();
  const simulated = h("strong", { class: "simulated", hidden: true, title: "Made up, not observed on any protocol" },
    "SIMULATED");
  const sources = h("span", { class: "soft" });
  const links = Object.entries(VIEWS).map(([view, name]) => [view, h("a", { href: link({ view }), onclick: follow }, name)]);
  const nav = h("nav", { "aria-label": "Views" }, h("ul", {}, links.map(([, anchor]) => h("li", {}, anchor))));
  const ranges = Object.keys(RANGES).map((range) => [range, h("button", { type: "button",
    onclick: () => go({ range, start: null, end: null }) }, named(range))]);
  const custom = customRange();
  const zone = zonePicker();
  const theme = themeButton(reload);
  const refresh = h("button", { type: "button", onclick: reload }, "Refresh");
  const buttons = h("fieldset", {}, h("legend", { class: "hidden" }, "Range"), ranges.map(([, button]) => button));
  // On a phone the settings are folded away, so that the header is one line.
  const shown = h("summary", {});
  const settings = h("details", { class: "settings", onkeydown: ({ key }) => key === "Escape" && (settings.open = false) },
    shown, h("div", {}, buttons, custom.details, h("label", {}, "Zone", zone), theme.button, refresh, sources, data.parts));
  element.replaceChildren(h("div", {},
    h("a", { class: "name", href: "./", onclick: follow }, "Lending market data"), nav, simulated, settings));
  const look = watching(data, simulated, sources, looked);
  look();
  return { update, look };
  function update() {
    const route = current();
    theme.update();
    for (const [view, anchor] of links) {
      anchor.href = link({ view });
      if (view === route.view) anchor.setAttribute("aria-current", "page");
      else if (view === "markets" && route.view === "asset") anchor.setAttribute("aria-current", "true");
      else anchor.removeAttribute("aria-current");
    }
    for (const [range, button] of ranges) button.setAttribute("aria-pressed", !route.custom && range === route.range);
    buttons.hidden = custom.details.hidden = route.view === WITHOUT_RANGE;
    settings.open = false;
    // A longer word has no room.
    shown.textContent = buttons.hidden || route.custom ? "More" : named(route.range);
    shown.setAttribute("aria-label", `Settings: ${shown.textContent}`);
    custom.update(route);
    if (![...zone.options].some((option) => option.value === route.tz)) zone.append(h("option", {}, route.tz));
    zone.value = route.tz;
  }
}

/** The label of a range's button. */
function named(range) {
  return range.replace(/(\d+)(\D)/, "$1 $2");
}

function zonePicker() {
  const zones = new Set([current().tz, "UTC", ...Intl.supportedValuesOf("timeZone")].map((zone) => RENAMED[zone] ?? zone));
  return h("select", { onchange: (event) => useZone(event.target.value) },
    [...zones].map((zone) => h("option", { value: zone }, zone.replaceAll("_", " "))));
}

/** The form for a custom range, on the zone's clocks. */
function customRange() {
  const field = (name) => h("input", { type: "datetime-local", name, required: true, step: "1", ...YEARS });
  const [start, end, fault] = [field("start"), field("end"), h("span", { class: "bad", role: "alert" })];
  const form = h("form", { onsubmit: submit }, h("label", {}, "From", start), h("label", {}, "to", end),
    h("button", {}, "Show"), fault);
  const summary = h("summary", {}, "Custom");
  const details = h("details", {}, summary, form);
  function submit(event) {
    event.preventDefault();
    fault.textContent = start.value > end.value ? "The range ends before it begins." : "";
    if (!fault.textContent) go({ range: null, start: start.value, end: end.value });
  }
  function update(route) {
    summary.textContent = route.custom ? `${route.start} to ${route.end}`.replaceAll("T", " ").replaceAll(/(:\d\d):00/g, "$1") : "Custom";
    if (route.custom) [start.value, end.value] = [route.start, route.end];
  }
  return { details, update };
}

/** The age of the data: late datasets, and the others folded. Says so while the past is still being filled in. */
function ages() {
  const [late, others] = ["Late data", "Age of the data"].map((name) => h("ul", { class: "chips", "aria-label": name }));
  const summary = h("summary", {});
  const details = h("details", { class: "ages", hidden: true }, summary, others);
  function show(snapshots, fault = null, isFilling = false) {
    const [isLate, isFresh] = [({ fresh }) => !fresh, ({ fresh }) => fresh];
    late.replaceChildren(...(fault ? [h("li", { class: "chip late" }, fault)] : []),
      ...(isFilling ? [h("li", { class: "chip still" }, "the past is being filled in")] : []), ...snapshots.filter(isLate).map(chip));
    const fresh = snapshots.filter(isFresh);
    others.replaceChildren(...fresh.map(chip));
    details.hidden = !fresh.length;
    if (fresh.length) summary.textContent = `Updated ${age(Math.min(...fresh.map(({ age_seconds: seconds }) => seconds)))} ago`;
  }
  return { parts: [late, details], show };
}

/** A function that checks the age of the data, and repeats that while the page is visible. */
function watching(data, simulated, sources, looked) {
  let timer = null;
  document.addEventListener("visibilitychange", () => document.hidden || look());
  async function look() {
    if (document.hidden) return;
    try {
      const { simulated: isSimulated, sources: names, snapshots, store, filling } = await status();
      simulated.hidden = !isSimulated;
      sources.textContent = isSimulated ? "" : names.join(", ");
      data.show(snapshots, store.reachable ? null : "store cannot be reached", filling);
      if (store.reachable) looked([filling, ...snapshots.map(({ newest }) => newest)].join());
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      data.show([], error.kind === "unauthorized" ? "needs a key" : "no answer");
    } finally {
      // Two looks may be under way.
      clearTimeout(timer);
      timer = setTimeout(look, REFRESH);
    }
  }
  return look;
}

function chip({ dataset, newest, age_seconds: seconds, fresh, interval_seconds: interval }) {
  const text = newest === null ? "none yet" : age(seconds);
  const [look, state] = !fresh ? ["chip late", ", late"]
    : interval === null ? ["chip still", ", not scheduled"] : ["chip", ", fresh"];
  return h("li", { class: look, title: newest ? time(Date.parse(newest) / 1000, current().tz) : "" }, `${NAMES[dataset] ?? dataset} ${text}`, h("span", { class: "hidden" }, state));
}
