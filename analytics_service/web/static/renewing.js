// Redraws a view of the present when there are newer snapshots, unless the viewer is active.
import { clear } from "./charts.js";
import { h } from "./dom.js";

// Milliseconds without input after which the viewer counts as inactive.
const IDLE = 30_000;
const INPUT = ["pointermove", "pointerdown", "keydown", "wheel", "scroll"];

/** Redraws the view in `main`. `fill` draws it into an element, which replaces the old view once it is complete, so that
 * nothing flickers. Call `begin` with the route of each view, and `looked` with the newest snapshots. */
export function renewing(main, fill) {
  let [usedAt, isMoving, known, newest, isBusy] = [0, false, null, null, false];
  for (const kind of INPUT) addEventListener(kind, () => (usedAt = performance.now()), { capture: true, passive: true });
  function begin(route) {
    // If the view already shows a snapshot newer than the last look, it is redrawn once in vain.
    [usedAt, known] = [performance.now(), newest];
    // An address is shown as of now for any range, unless the route has a moment.
    isMoving = route.view === "address" ? Boolean(route.address) && !route.at : !route.custom;
  }
  function isWatched() {
    const isUsed = main.querySelector("input:focus, button:focus, :focus-visible, details:not(.panel)[open], details.panel:not([open]), [data-used]")
      || [...main.querySelectorAll("form input")].some((input) => input.value !== input.defaultValue);
    return document.visibilityState === "visible" && !isUsed && performance.now() - usedAt >= IDLE;
  }
  async function looked(found) {
    newest = found;
    known ??= found;
    if (found === known || !isMoving || isBusy || !isWatched()) return;
    isBusy = true;
    try {
      if (await renewed(main, fill, isWatched)) known = found;
    } finally {
      isBusy = false;
    }
  }
  return { begin, looked };
}

/** Redraws the view, unless its data cannot be loaded, or the viewer becomes active meanwhile. Returns whether it did. */
async function renewed(main, fill, isWatched) {
  const before = [...main.children];
  // Charts need their final size.
  const place = h("div", { class: "next", inert: true, "aria-hidden": "true" });
  main.append(place);
  const isWhole = await fill(place).then(() => !place.querySelector(".notice.bad"), () => false);
  // Another view may have been opened meanwhile.
  if (!isWhole || !place.isConnected || !isWatched()) {
    clear(place);
    place.remove();
    return false;
  }
  for (const element of before) {
    clear(element);
    element.remove();
  }
  place.removeAttribute("class");
  place.removeAttribute("inert");
  place.removeAttribute("aria-hidden");
  return true;
}
