// A number in a box of its own.
import { h } from "./dom.js";
import { change, time, withSign } from "./format.js";
import { follow, link, moment, rangeName } from "./route.js";
import { ends } from "./series.js";
import { spark } from "./spark.js";

/** What numbers of the end of a range that is over have above them; nothing for those of now. */
export function dateOf(route) {
  const { at } = moment(route);
  const now = h("a", { href: link({ start: null, end: null }), onclick: follow }, "Show now");
  return at ? h("p", { class: "soft" }, `As of ${at.replace("T", " ")}, the end of the chosen range. `, now) : null;
}

/** The change of a price, a fraction: up is green, down is red. Nothing else has these colours. */
export function priceChange(fraction) {
  const text = withSign(fraction);
  return h("span", { class: { "+": "good", "−": "bad" }[text[0]] ?? "soft" }, text);
}

/** Tiles of values that are still being loaded, which take the room that they will need. */
export function skeleton(names) {
  return names.map((name) => h("section", { class: "tile" }, h("h2", {}, name), "Loading…"));
}

/** A tile with a value, and how much it has changed: up to `end`, or up to the last of the values without one. */
export function tile(name, value, span, { values, end, compared = change }, below = null) {
  const [first, last] = ends(values);
  return h("section", { class: "tile" }, h("h2", {}, name), h("div", { class: "value" }, value),
    h("div", {}, compared(values[first], end ?? values[last]), h("span", { class: "soft" }, ` ${span(first)}`)),
    below && h("div", { class: "soft" }, below), spark(values, `${name} ${span(first)}`));
}

/** Over what a value has changed, from the place of the first value there is: that of `beginning` of series.js, which
 * is followed by those of the buckets of a history. */
export function spanOf({ since = null }, { t, range }, route) {
  const from = (first) => (first > 0 ? t[first] ?? range.end : since);
  return (first) => (from(first) === null ? `over ${rangeName(route)}` : `since ${time(from(first), route.tz)}`);
}

/** A tile with a value and what is said of it. */
export function fact(name, value, ...below) {
  return h("section", { class: "tile" }, h("h2", {}, name), h("div", { class: "value" }, value), h("div", { class: "soft" }, below));
}
