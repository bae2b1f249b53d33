// Numbers and times for people.

const large = new Intl.NumberFormat("en", { notation: "compact", minimumFractionDigits: 2, maximumFractionDigits: 2 });
const cents = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const small = new Intl.NumberFormat("en", { minimumSignificantDigits: 4, maximumSignificantDigits: 4 });
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

/** A decimal string as USD, like the API's texts (rule 4.3), but compact from ten thousand on: `$1.23M`, `$4.10`. */
export function usd(value) {
  if (value === null || value === undefined) return "–";
  const [number, sign] = [Math.abs(Number(value)), Number(value) < 0 ? "−" : ""];
  // Such caps mean no cap.
  if (number >= 1e15) return `${sign ? "<" : ">"}${sign}$1,000T`;
  if (number && number < 0.01) return `${sign ? ">" : "<"}${sign}$0.01`;
  // Axes write thousands as k.
  return `${sign}$${(number >= 10_000 ? large : cents).format(number).replace("K", "k")}`;
}

/** A decimal string as a price in USD, like the API's texts: `$64,123.40`, `$0.04105`. */
export function price(value) {
  if (value === null || value === undefined) return "–";
  const number = Number(value);
  const isSmall = number && Number(number.toPrecision(4)) < 1;
  return `$${(isSmall ? small : cents).format(number)}`;
}

/** A fraction as a percentage: `12.34%`. A change has its sign: see `withSign`. */
export function percent(fraction) {
  return withSign(fraction).replace(/^\+/, "");
}

/** A decimal string with three decimals, or as a power of ten. It is cut off, because rounding would show an account just
 * below 1 as 1. */
export function cut(value) {
  if (value === null) return "N/A";
  const [whole, decimals = ""] = value.split(".");
  if (whole.length > 9) return Number(value).toExponential(2);
  return `${whole}.${decimals.padEnd(3, "0").slice(0, 3)}`;
}

/** A change as a signed percentage. A change that rounds to zero has no sign. */
export function change(before, after) {
  const isKnown = (before ?? null) !== null && (after ?? null) !== null && Number(before);
  return isKnown ? withSign(Number(after) / Number(before) - 1) : "–";
}

/** A change that is a fraction, as a signed percentage: `+0.20%`. */
export function withSign(fraction) {
  return (fraction ?? null) === null ? "–" : signed(100 * fraction, "%");
}

/** A change of a fraction in percentage points: `+0.20 pp`. */
export function changeInPoints(before, after) {
  const isKnown = (before ?? null) !== null && (after ?? null) !== null;
  return isKnown ? signed(100 * (after - before), " pp") : "–";
}

function signed(value, unit) {
  const digits = Math.abs(value).toFixed(2);
  const sign = Number(digits) ? (value < 0 ? "−" : "+") : "";
  return `${sign}${digits}${unit}`;
}

/** How long ago something was, from seconds: `42 s`, `3 min`, `5 h`, `2 d`. */
export function age(seconds) {
  if (seconds < 90) return `${Math.max(Math.round(seconds), 0)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} d`;
}

/** Bytes in the units of the command `status`: `840 B`, `12.4 KiB`, `1.5 GiB`. */
export function bytes(count) {
  const power = Math.min(Math.floor(Math.log2(Math.max(count, 1)) / 10), UNITS.length - 1);
  return `${(count / 1024 ** power).toFixed(power ? 1 : 0)} ${UNITS[power]}`;
}

/** An instant (unix seconds) on the clocks of a zone: `2026-11-22 14:05`. */
export function time(second, zone) {
  return wall(second, zone).slice(0, 16);
}

const clocks = new Map();

/** An instant on the clocks of a zone, with seconds: `2026-11-22 14:05:00`. */
export function wall(second, zone) {
  // Swedish dates follow ISO 8601. Creating a formatter takes a hundred times as long as using it.
  if (!clocks.has(zone)) {
    clocks.set(zone, new Intl.DateTimeFormat("sv-SE", { timeZone: zone, dateStyle: "short", timeStyle: "medium" }));
  }
  return clocks.get(zone).format(1000 * second);
}

/** An identifier that is too long for a table: its first and last characters. */
export function short(id) {
  return id.length > 20 ? `${id.slice(0, 10)}…${id.slice(-6)}` : id;
}
