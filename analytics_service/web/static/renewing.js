// Redraws a view of the present when there are newer snapshots, unless the viewer is using it.
import { clear } from "./charts.js";
import { h } from "./dom.js";

// Milliseconds without input after which the viewer counts as only watching.
const IDLE = 30_000;
const INPUT = ["pointermove", "pointerdown", "keydown", "wheel", "scroll"];

/** Renews the view in `main`. `fill` draws it into an element, which replaces the old view once it is complete, so that
 * nothing flickers. Call `begin` with the route of each view, and `looked` with the newest snapshots. */
export function renewing(main, fill) {
  let [usedAt, isMoving, known, isBusy] = [0, false, null, false];
  for (const kind of INPUT) addEventListener(kind, () => (usedAt = performance.now()), { capture: true, passive: true });
  function begin(route) {
    [usedAt, known] = [performance.now(), null];
    // Markets are those of now whatever the range; so is an address unless it is shown as of a moment.
    isMoving = { markets: true, address: Boolean(route.address) && !route.at }[route.view] ?? !route.custom;
  }
  function isWatched() {
    const isUsed = main.querySelector("input:focus, button:focus, :focus-visible, details[open], [data-used]")
      || [...main.querySelectorAll("form input")].some((input) => input.value !== input.defaultValue);
    return document.visibilityState === "visible" && !isUsed && performance.now() - usedAt >= IDLE;
  }
  async function looked(newest) {
    known ??= newest;
    if (newest === known || !isMoving || isBusy || !isWatched()) return;
    isBusy = true;
    try {
      if (await renewed(main, fill)) known = newest;
    } finally {
      isBusy = false;
    }
  }
  return { begin, looked };
}

/** Whether the view was drawn again. If its data cannot be loaded now, it stays as it is. */
async function renewed(main, fill) {
  const before = [...main.children];
  // Charts need the size that they will have.
  const place = h("div", { class: "next", inert: true, "aria-hidden": "true" });
  main.append(place);
  const isWhole = await fill(place).then(() => !place.querySelector(".notice.bad"), () => false);
  // Another view may have taken the place of all of them meanwhile.
  if (!isWhole || !place.isConnected) {
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
