// Requests to the API of this service.

const PATIENCE = 15_000;
// How often a request is repeated when the service is busy.
const RETRIES = 2;
// Deployments below other paths of the host have other keys.
const KEY = `api-key ${new URL(document.baseURI).pathname}`;
// Messages for visitors, where the API's messages address its callers or operators.
const WORDS = {
  unavailable: "The service cannot answer right now. Try again in a minute.",
  rate_limited: "The service received too many requests. Try again in a minute.",
  internal: "The service failed. Try again; if that does not help, contact its operator.",
};

/** An error that the API answered, or a missing answer. */
export class ApiError extends Error {
  constructor(kind, message) {
    super(message);
    this.kind = kind;
  }
}

/** The URL of a path below /api/v1 with a query, without parameters that are null. */
export function address(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const text = new URLSearchParams(given).toString();
  return new URL(`api/v1${path}${text ? `?${text}` : ""}`, document.baseURI).href;
}

/** The `data` of a path, with its `url`, the `bytes` of the body, the milliseconds that it took (`ms`), the unix seconds
 * of the snapshots in it by dataset (`dates`), the oldest of these (`asOf`; null without any), and for a history the first
 * instant of its series (`begins`; null without one). */
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

/** The awaited `answer`, or the API's reason `why` nothing was found. */
export async function unlessUnknown(asked) {
  try {
    return { answer: await asked };
  } catch (error) {
    if (error.kind !== "entity_not_found") throw error;
    return { why: error.message };
  }
}

/** The error of an answer without data, from its envelope if there is one. */
export function failure(response, envelope) {
  const { kind = "internal", message } = envelope?.error ?? {};
  return new ApiError(kind, WORDS[kind] ?? forVisitors(message));
}

/** A message of the API without names of parameters, which visitors do not see. */
function forVisitors(message) {
  return message.replace(/^(Query parameter )?\w+='(.*?)': must be/, "“$2” cannot be used. It must be")
    .replace(/^\w+: (\w)/, (_, first) => first.toUpperCase());
}

/** The milliseconds of a request that began at `begun` on the page's clock, without waiting for other scripts. */
function took(url, begun) {
  const request = performance.getEntriesByName(url, "resource").findLast(({ startTime }) => startTime >= begun);
  return request?.duration ?? performance.now() - begun;
}

/** The answer; while the service is busy, the request is repeated after `Retry-After`. */
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
    if (patience.signal.aborted) throw new ApiError("hangs", "The service did not answer within 15 seconds.");
    throw new ApiError("down", "The service cannot be reached. It may be stopped, or the network may be down.");
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

/** The viewer's key, which the tab forgets when it is closed. */
export function apiKey() {
  return sessionStorage.getItem(KEY);
}

/** Uses a key from now on. */
export function useKey(key) {
  sessionStorage.setItem(KEY, key);
}

/** Whether the service requires keys. */
export function asksForKeys() {
  return document.documentElement.dataset.keys === "true";
}
