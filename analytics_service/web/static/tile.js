// A number in a box of its own.
import { h } from "./dom.js";
import { change } from "./format.js";
import { ends } from "./series.js";
import { spark } from "./spark.js";

/** A tile with a value, and how much it has changed: up to `end`, or up to the last of the values without one. */
export function tile(name, value, span, { values, end, compared = change }) {
  const [first, last] = ends(values);
  const { text, class: color } = compared(values[first], end ?? values[last]);
  return h("section", { class: "tile" }, h("h2", {}, name), h("div", { class: "value" }, value),
    h("div", {}, h("span", { class: color }, text), h("span", { class: "soft" }, ` ${span(first)}`)),
    spark(values, `${name} ${span(first)}`));
}

/** A tile with a value and what is said of it. */
export function fact(name, value, ...below) {
  return h("section", { class: "tile" }, h("h2", {}, name), h("div", { class: "value" }, value), h("div", { class: "soft" }, below));
}
