// Requests to the API of this service.

const PATIENCE = 15_000;
// How often a request is made again that the service was too busy for.
const RETRIES = 2;
// Deployments below other paths of the host have other keys.
const KEY = `api-key ${new URL(document.baseURI).pathname}`;
// What a visitor is told, and can do, where the API's own words are for those who call it or run it.
const WORDS = {
  unavailable: "The service cannot answer at the moment. Try again in a minute.",
  rate_limited: "That was more than the service allows at a time. Try again in a minute.",
  internal: "The service has failed. Try again; if that does not help, tell those who run it.",
};

/** What the API answered instead of data, or that it did not answer. */
export class ApiError extends Error {
  constructor(kind, message) {
    super(message);
    this.kind = kind;
  }
}

/** The address of a path below /api/v1 with a query; parameters that are null are left out. */
export function address(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const text = new URLSearchParams(given).toString();
  return new URL(`api/v1${path}${text ? `?${text}` : ""}`, document.baseURI).href;
}

/** The `data` of a path, with its `url`, the `bytes` of the body, how many milliseconds it took (`ms`), the instants of
 * the snapshots in it by dataset (`dates`, unix seconds), the oldest of them (`asOf`; null without one), and of a history
 * the first instant of its series (`begins`; null without one). */
export async function get(path, query = {}, signal = null) {
  const url = address(path, query);
  const begun = performance.now();
  const { response, body } = await answered(url, signal);
  const envelope = parsed(body);
  if (!response.ok || !envelope) throw failure(response, envelope);
  const named = [...(response.headers.get("As-Of") ?? "").matchAll(/(\w+)=@(\d+)/g)];
  const dates = Object.fromEntries(named.map(([, dataset, second]) => [dataset, Number(second)]));
  const asOf = named.length ? Math.min(...Object.values(dates)) : null;
  const begins = Number(response.headers.get("History-Begins")?.slice(1)) || null;
  return { data: envelope.data, url, bytes: body.length, ms: took(url, begun), dates, asOf, begins };
}

/** The `answer` that is awaited, or `why` the service says that there is none. */
export async function unlessUnknown(asked) {
  try {
    return { answer: await asked };
  } catch (error) {
    if (error.kind !== "entity_not_found") throw error;
    return { why: error.message };
  }
}

/** The error of an answer without data, from its envelope if it has one. */
export function failure(response, envelope) {
  const { kind = "internal", message } = envelope?.error ?? {};
  return new ApiError(kind, WORDS[kind] ?? forVisitors(message));
}

/** A message of the API without the names of parameters: a visitor has given none. */
function forVisitors(message) {
  return message.replace(/^(Query parameter )?\w+='(.*?)': must be/, "“$2” cannot be used. It must be")
    .replace(/^\w+: (\w)/, (_, first) => first.toUpperCase());
}

/** The milliseconds of a request that began at an instant of the page's clock, without those that its answer waited for
 * other scripts. */
function took(url, begun) {
  const request = performance.getEntriesByName(url, "resource").findLast(({ startTime }) => startTime >= begun);
  return request?.duration ?? performance.now() - begun;
}

/** The answer; while the service cannot give one yet, the request is made again when it says. */
async function answered(url, signal) {
  for (let left = RETRIES; ; left -= 1) {
    const answer = await fetched(url, signal);
    const wait = answer.response.status === 503 ? 1000 * answer.response.headers.get("Retry-After") : 0;
    if (!left || !(wait > 0 && wait <= PATIENCE)) return answer;
    await new Promise((over) => setTimeout(over, wait));
  }
}

async function fetched(url, signal) {
  const headers = apiKey() ? { Authorization: `Bearer ${apiKey()}` } : {};
  const patience = new AbortController();
  const timer = setTimeout(() => patience.abort(), PATIENCE);
  const signals = [patience.signal, ...(signal ? [signal] : [])];
  try {
    const response = await fetch(url, { headers, signal: AbortSignal.any(signals) });
    return { response, body: await response.text() };
  } catch (error) {
    if (signal?.aborted) throw error;
    if (patience.signal.aborted) throw new ApiError("hangs", "The service has not answered within 15 seconds.");
    throw new ApiError("down", "The service cannot be reached. It may be stopped, or the network is down.");
  } finally {
    clearTimeout(timer);
  }
}

function parsed(body) {
  try {
    return JSON.parse(body);
  } catch {
    return null;
  }
}

/** The key that the viewer gave, which this tab forgets when it is closed. */
export function apiKey() {
  return sessionStorage.getItem(KEY);
}

/** Uses a key from now on. */
export function useKey(key) {
  sessionStorage.setItem(KEY, key);
}

/** Whether the service asks for keys. */
export function asksForKeys() {
  return document.documentElement.dataset.keys === "true";
}
