// One colour for each asset in all charts, in the order in which assets are first drawn. Prices use plain red and green.
const HUES = [210, 25, 265, 55, 335, 180, 95, 300, 150, 237];
// Lightness in light and dark colours, for each round of the hues; contrasts with the paper are at least 3.
const ROUNDS = [[37, 72], [22, 58], [30, 86]];
const numbers = new Map();

/** The colours of assets, in their order, for `colorOf` of charts.js. */
export function assetColors(ids) {
  return ids.map((id) => {
    const number = numberOf(id);
    const hue = HUES[number % HUES.length];
    const [light, dark] = ROUNDS[Math.floor(number / HUES.length) % ROUNDS.length];
    return `light-dark(hsl(${hue} 65% ${light}%), hsl(${hue} 65% ${dark}%))`;
  });
}

function numberOf(id) {
  if (!numbers.has(id)) numbers.set(id, numbers.size);
  return numbers.get(id);
}
