// A number in a box.
import { h } from "./dom.js";
import { change, time, withSign } from "./format.js";
import { follow, link, moment, rangeName } from "./route.js";
import { ends } from "./series.js";
import { spark } from "./spark.js";

/** The date above numbers from the end of a past range; null for present numbers. */
export function dateOf(route) {
  const { at } = moment(route);
  const now = h("a", { href: link({ start: null, end: null }), onclick: follow }, "Show now");
  return at ? h("p", { class: "soft" }, `As of ${at.replace("T", " ")}, the end of the chosen range. `, now) : null;
}

/** The change of a price, a fraction: up is green, down is red. Only prices have these colours. */
export function priceChange(fraction) {
  const text = withSign(fraction);
  return h("span", { class: { "+": "good", "−": "bad" }[text[0]] ?? "soft" }, text);
}

/** Placeholders for tiles whose values are still loading. */
export function skeleton(names) {
  return names.map((name) => h("section", { class: "tile" }, h("h2", {}, name), "Loading…"));
}

/** A tile with a value, and its change up to `end`, or without it up to the last of `values`. */
export function tile(name, value, span, { values, end, compared = change }, below = null) {
  const [first, last] = ends(values);
  return h("section", { class: "tile" }, h("h2", {}, name), h("div", { class: "value" }, value),
    h("div", {}, compared(values[first], end ?? values[last]), h("span", { class: "soft" }, ` ${span(first)}`)),
    below && h("div", { class: "soft" }, below), spark(values, `${name} ${span(first)}`));
}

/** A function that names the span of a change from the place of its first value: place 0 is the value of `beginning` of
 * series.js, the others are the buckets of a history. */
export function spanOf({ since = null }, { t, range }, route) {
  const from = (first) => (first > 0 ? t[first] ?? range.end : since);
  return (first) => (from(first) === null ? `over ${rangeName(route)}` : `since ${today(time(from(first), route.tz), route.tz)}`);
}

/** A time without its date, if that is today's: one line of a tile has no more room. */
function today(at, tz) {
  return at.startsWith(time(Date.now() / 1000, tz).slice(0, 10)) ? at.slice(11) : at;
}

/** A tile with a value and notes. */
export function fact(name, value, ...below) {
  return h("section", { class: "tile" }, h("h2", {}, name), h("div", { class: "value" }, value), h("div", { class: "soft" }, below));
}
