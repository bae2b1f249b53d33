// The page: a header, and a view below it.
import { address } from "./address.js";
import { ApiError, apiKey, asksForKeys, useKey } from "./api.js";
import { asset } from "./asset.js";
import { clear } from "./charts.js";
import { failed, h, loading, notice } from "./dom.js";
import { short } from "./format.js";
import { header } from "./header.js";
import { markets } from "./markets.js";
import { overview } from "./overview.js";
import { renewing } from "./renewing.js";
import { risk } from "./risk.js";
import { current, onChange, scrolled } from "./route.js";
import { forget } from "./series.js";
import { systemIsDark } from "./theme.js";

// Each view fills an element for a route, and stops when its signal is aborted.
const VIEWS = { overview, markets, risk, asset, address };
const main = document.getElementById("main");
let running = new AbortController();
const renewal = renewing(main, (place) => VIEWS[current().view](place, current(), running.signal));
const { update, look } = header(document.getElementById("header"), () => show(), renewal.looked);

/** Draws the view of the URL, scrolled to where it was, to the top for another `view`, or to the section with an id. */
async function show({ view, scroll = view ? 0 : scrollY, section = "" } = {}) {
  running.abort();
  running = new AbortController();
  const { signal } = running;
  const route = current();
  update();
  renewal.begin(route);
  clear();
  forget();
  entitle(title(route), { address: route.address, asset: route.asset }[route.view]);
  if (asksForKeys() && !apiKey()) return askForKey();
  if (route.isReversed) return main.replaceChildren(h("h1", {}, title(route)), notice("The range ends before it begins. Choose another range.", true));
  const place = h("div", {}, loading());
  // If the focused element is replaced, focus would go back to the top of the document.
  const hadFocus = main.contains(document.activeElement);
  main.replaceChildren(place);
  if (view || hadFocus) main.focus({ preventScroll: !view });
  const settle = scrollOnceThere(scroll, scroll ? "" : section, signal);
  try {
    await VIEWS[route.view](place, route, signal);
    settle();
    // Only now the view knows the name of its asset.
    entitle(place.querySelector("h1").textContent, route.view === "address" ? route.address : null);
  } catch (error) {
    if (signal.aborted) return;
    if (error.kind === "unauthorized") askForKey(error.message);
    else showError(error);
  }
}

/** Scrolls to a position once the page is high enough, or to a section, which moves until everything above it is drawn;
 * unless the viewer acts meanwhile. Call the returned function when the view is drawn. */
function scrollOnceThere(top, section, signal) {
  const stop = () => watcher.disconnect();
  const watcher = new ResizeObserver(() => {
    if (section) return document.getElementById(section)?.scrollIntoView({ behavior: "instant" });
    if (document.documentElement.scrollHeight - innerHeight < top) return;
    scrollTo({ top, behavior: "instant" });
    stop();
  });
  watcher.observe(document.body);
  for (const kind of ["wheel", "touchmove", "pointerdown", "keydown"]) addEventListener(kind, stop, { once: true, passive: true, signal });
  signal.addEventListener("abort", stop);
  return () => section && stop();
}

function entitle(name, id) {
  document.title = [name, ...(id ? [short(id)] : []), "Lending market data"].join(" · ");
}

function title({ view }) {
  return view[0].toUpperCase() + view.slice(1);
}

function showError(error) {
  main.replaceChildren(h("h1", {}, title(current())), ...failed(error.message, () => show()));
  if (!(error instanceof ApiError)) throw error;
}

/** The form for an API key. */
function askForKey(why = "This service requires an API key.") {
  const key = h("input", { name: "key", type: "password", required: true, autocomplete: "off" });
  const submit = (event) => {
    event.preventDefault();
    useKey(key.value.trim());
    look();
    show();
  };
  const form = h("form", { onsubmit: submit },
    h("label", {}, "API key", key), h("button", {}, "Use it"));
  main.replaceChildren(h("h1", {}, "API key"), notice(why), form,
    h("p", { class: "soft" }, "The key stays in this tab, and is sent to this service only."));
  key.focus();
}

onChange(show);
systemIsDark.addEventListener("change", () => show());
show({ scroll: scrolled(), section: location.hash.slice(1) });
