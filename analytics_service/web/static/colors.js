// One colour for each asset in all charts, by its number among those that were drawn.
const HUES = [210, 25, 150, 265, 55, 335, 180, 95, 300, 0, 122, 237];
// Hues that are nearer to each other look alike beside each other.
const NEAR = 29;
// Lightness in light and dark colours, for each round of the hues; contrasts with the paper are at least 3.
const ROUNDS = [[37, 72], [22, 58], [30, 86]];
const numbers = new Map();

/** The colours of the assets of a chart, in its order, for `colorOf` of charts.js. An asset has its own in all charts, but
 * beside one that looks alike it has the hue that is farthest from all before it. */
export function assetColors(ids) {
  const taken = [];
  const room = (hue) => Math.min(...taken.map((other) => Math.min(Math.abs(hue - other), 360 - Math.abs(hue - other))));
  return ids.map((id) => {
    const number = numberOf(id);
    const own = HUES[number % HUES.length];
    const hue = room(own) >= NEAR ? own : HUES.reduce((best, other) => (room(other) > room(best) ? other : best));
    taken.push(hue);
    const [light, dark] = ROUNDS[Math.floor(number / HUES.length) % ROUNDS.length];
    return `light-dark(hsl(${hue} 65% ${light}%), hsl(${hue} 65% ${dark}%))`;
  });
}

function numberOf(id) {
  if (!numbers.has(id)) numbers.set(id, numbers.size);
  return numbers.get(id);
}
