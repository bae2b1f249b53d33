// A line without axes, for tiles and tables.
const SVG = "http://www.w3.org/2000/svg";

/** A sparkline of numbers, broken where they are null; nothing if there are fewer than two. */
export function spark(values, label) {
  const there = values.filter((value) => value !== null);
  if (there.length < 2) return null;
  const [low, high] = [Math.min(...there), Math.max(...there)];
  const y = (value) => (high === low ? 15 : 28 - (26 * (value - low)) / (high - low));
  const svg = document.createElementNS(SVG, "svg");
  for (const [name, value] of Object.entries({ class: "spark", viewBox: "0 0 100 30", preserveAspectRatio: "none" })) {
    svg.setAttribute(name, value);
  }
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", label);
  const path = document.createElementNS(SVG, "path");
  const point = (value, place) => {
    const pen = place && values[place - 1] !== null ? "L" : "M";
    return value === null ? "" : `${pen}${((100 * place) / (values.length - 1)).toFixed(2)} ${y(value).toFixed(2)}`;
  };
  path.setAttribute("d", values.map(point).join(""));
  svg.append(path);
  return svg;
}
