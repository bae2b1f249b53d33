// The page of operators: asks for the document every ten seconds, and shows what it has while there is no answer.

import { h, notice, patch } from "./dom.js";
import { age } from "./format.js";
import { read } from "./operations_document.js";
import { headline, sections, time } from "./operations_sections.js";
import { systemIsDark, themeButton } from "./theme.js";

const EVERY = 10_000;
const theme = themeButton();

let shown = null;
let shownAt = 0;
let failure = null;

async function refresh() {
  try {
    shown = await read();
    shownAt = Date.now();
    failure = null;
  } catch (error) {
    failure = error.message;
  }
  draw();
  setTimeout(refresh, EVERY);
}

function draw() {
  const seconds = (Date.now() - shownAt) / 1000;
  patchChildren("headline", headline(shown, seconds));
  patchChildren("main", [h("h1", {}, "Operations"), trouble(seconds), h("div", {}, shown ? sections(shown) : null)]);
}

/** What is wrong with the service's answers, and how old the data below is; screen readers do not repeat the age. */
function trouble(seconds) {
  if (!failure) return h("div");
  const old = ["The data below is from ", h("b", {}, `${age(seconds)} ago`), ", at ", time(shown?.at), "."];
  const tells = notice(`${failure} The page tries again every ten seconds.`, true);
  return h("div", { class: "trouble" }, tells, shown ? h("p", {}, old) : null);
}

function patchChildren(id, children) {
  const node = document.getElementById(id);
  const fresh = node.cloneNode(false);
  fresh.append(...children.filter((child) => child !== null));
  patch(node, fresh);
}

systemIsDark.addEventListener("change", theme.update);
document.getElementById("headline").after(theme.button);
theme.update();
refresh();
