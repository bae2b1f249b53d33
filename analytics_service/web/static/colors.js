// One colour for each asset in all charts, by its number among all assets.
import { assetsOf, familyOf, PRICES, shared } from "./series.js";
import { families } from "./status.js";

// Histories that name the assets, those first that charts of many assets are about.
const PATHS = ["/markets/history/deposits", PRICES];
const HUES = [212, 20, 155, 262, 42, 336, 178, 85, 300, 0, 120, 235];
// Lightness in light and dark colours, for each round of the hues; contrasts with the paper are at least 3.
const ROUNDS = [[37, 72], [22, 58], [30, 86]];
const numbers = new Map();

/** Numbers the assets that there are. Later ones are numbered when they are drawn. */
export const numbered = shared(async () => {
  const there = await families();
  for (const path of PATHS) if (there.has(familyOf(path))) (await assetsOf(path)).forEach(({ id }) => assetColor(id));
});

/** The colour of an asset, for `colorOf` of charts.js. */
export function assetColor(id) {
  if (!numbers.has(id)) numbers.set(id, numbers.size);
  const number = numbers.get(id);
  const hue = HUES[number % HUES.length];
  const [light, dark] = ROUNDS[Math.floor(number / HUES.length) % ROUNDS.length];
  return `light-dark(hsl(${hue} 65% ${light}%), hsl(${hue} 65% ${dark}%))`;
}
