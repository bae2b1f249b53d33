// What the page of operators consists of, each part made from the document.

import { h, table } from "./dom.js";
import { age, bytes, wall } from "./format.js";

const OUTCOMES = {
  done: "done",
  already_done: "was there already",
  failed: "failed",
};
// A price is late from so many intervals on; so many are listed.
const LATE_INTERVALS = 5;
const MOST_PRICES = 20;
const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;
const whole = new Intl.NumberFormat("en");

/** What the header shows: the name, whether data is made up, the version, and how new each family is, if the document
 * is some seconds old. */
export function headline(document, seconds) {
  const { simulated = false, service = { version: "" }, families = [] } = document ?? {};
  const chips = families.map((one) => chip(one, seconds));
  return [
    h("span", { class: "name" }, "Lending market data: operations"),
    simulated ? h("span", { class: "simulated" }, "SIMULATED") : null,
    service.version ? h("span", { class: "soft" }, `version ${service.version}`) : null,
    chips.length ? h("ul", { class: "chips", "aria-label": "Age of the data" }, chips) : null,
  ];
}

function chip(family, seconds) {
  const old = family.newest === null ? "none yet" : age(family.age_seconds + seconds);
  const isScheduled = family.interval_seconds !== null;
  const [look, late] = family.fresh ? [isScheduled ? "chip" : "chip still", ""] : ["chip late", ", late"];
  return h("li", { class: look }, `${family.family} ${old}${late}`);
}

/** All sections of the page. */
export function sections(document) {
  return [
    section("Problems", problems(document)),
    section("Doubts", told(document, doubts)),
    section("Jobs", told(document, jobs)),
    section("Prices", told(document, prices)),
    section("Workers", workers(document)),
    section("Imports and backfills", told(document, imports)),
    section("Disk by table", told(document, disk)),
    h("p", { class: "soft" }, `Times are those of ${ZONE}. The page refreshes itself every ten seconds.`),
  ];
}

/** A section with ClickHouse's data, or a note that there is none yet. */
function told(document, show) {
  return document.clickhouse.read_at ? show(document) : h("p", {}, "Not known yet: ClickHouse has not answered.");
}

function section(title, contents) {
  const id = title.toLowerCase().replaceAll(" ", "-");
  return h("section", { class: "panel", "aria-labelledby": id }, h("h2", { id }, title), contents);
}

function problems({ faults, clickhouse }) {
  const since = clickhouse.alive ? null : time(clickhouse.read_at);
  const count = faults.length === 1 ? "1 problem" : `${faults.length} problems`;
  return [
    h("p", { role: "status", class: faults.length ? "bad" : "good" }, faults.length ? count : "None: all is well."),
    faults.length ? h("ul", { class: "problems" }, faults.map((fault) => h("li", {}, fault))) : null,
    since ? h("p", {}, "ClickHouse cannot be read now. Its data here is from ", since, ".") : null,
  ];
}

function doubts({ doubts: newest, doubts_last_day: all }) {
  if (!all) return h("p", {}, "None within the last day.");
  const more = all > newest.length ? ` The newest ${newest.length}:` : "";
  const says = `${all} within the last day.${more}`;
  const columns = [
    { title: "At", cell: (one) => time(one.observed_at) },
    { title: "Doubt", cell: (one) => one.what },
    { title: "History", cell: (one) => one.history },
    { title: "Asset", cell: (one) => one.symbol || one.asset_id },
    { title: "Value", number: true, cell: (one) => one.value },
    { title: "Before", number: true, cell: (one) => one.before },
    { title: "Before, at", cell: (one) => time(one.before_at) },
  ];
  const command = h("code", {}, "analytics-service remove");
  const hint = ["Right values need nothing; ", command, " takes wrong ones out. The view ", h("code", {}, "anomalies"), " lists all."];
  return [h("p", {}, says), table("The newest values that may be wrong", columns, newest), h("p", { class: "soft" }, hint)];
}

function prices({ prices: every, families }) {
  const interval = families.find((one) => one.family === "prices")?.interval_seconds;
  const oldest = every.toSorted((one, other) => other.age_seconds - one.age_seconds);
  const late = oldest.filter((one) => interval && one.age_seconds > LATE_INTERVALS * interval);
  const columns = [
    { title: "Asset", cell: (one) => one.symbol },
    { title: "Newest price", cell: (one) => time(one.newest) },
    { title: "Age", number: true, cell: (one) => age(one.age_seconds) },
    { title: "Known", cell: (one) => (one.known ? "yes" : h("span", { class: "bad" }, "no, it is too old")) },
  ];
  if (!oldest.length) return h("p", {}, "There are none of a source.");
  const says = late.length ? `Late: ${late.length} of ${oldest.length}.` : `None of ${oldest.length} is late. The oldest:`;
  const shown = (late.length ? late : oldest.slice(0, 1)).slice(0, MOST_PRICES);
  return [h("p", { class: late.length ? "bad" : "good" }, says), table("The oldest prices", columns, shown)];
}

function jobs({ families, schedulers }) {
  const alive = schedulers.filter((one) => one.alive);
  const heard = alive.map((one) => h("li", {}, `Scheduler ${one.name}, last heard from ${age(one.heard_seconds_ago)} ago`));
  const columns = [
    { title: "Family", cell: (one) => one.family },
    { title: "Newest snapshot", cell: (one) => time(one.newest) },
    { title: "Last run", cell: (one) => time(one.last_run?.at) },
    { title: "Outcome", cell: (one) => outcome(one.last_run) },
    { title: "Took", number: true, cell: (one) => duration(one.last_run?.ms) },
    { title: "Rows", number: true, cell: (one) => count(one.last_run?.rows) },
    { title: "Next run", cell: (one) => time(one.next_run) },
    { title: "Gaps, 24 h", number: true, cell: (one) => count(one.gaps_last_day) },
    { title: "Last error", cell: (one) => one.last_error_at && [time(one.last_error_at), `: ${one.last_error}`] },
  ];
  if (!families.length) return h("p", {}, "There is no snapshot yet.");
  const shown = table("Jobs: last run, next run and gaps of each family", columns, families);
  const complete = families.filter((one) => one.complete_until);
  heard.push(...complete.map((one) => h("li", {}, `Source: events of ${one.family} are complete until `, time(one.complete_until))));
  return [shown, heard.length ? h("ul", { class: "plain" }, heard) : null];
}

function outcome(run) {
  return run && h("span", { class: run.outcome === "failed" ? "bad" : null }, OUTCOMES[run.outcome]);
}

function imports({ imports: runs }) {
  const columns = [
    { title: "Began", cell: (run) => time(run.began) },
    { title: "Kind", cell: (run) => run.kind },
    { title: "Family", cell: (run) => run.family },
    { title: "Snapshots", number: true, cell: (run) => (run.kind === "import" ? null : count(run.snapshots)) },
    { title: "Rows", number: true, cell: (run) => count(run.rows) },
    { title: "From", cell: (run) => time(run.first) },
    { title: "To", cell: (run) => time(run.last) },
    { title: "Source", cell: (run) => run.source },
  ];
  if (!runs.length) return h("p", {}, "None yet.");
  return table("The newest imports and backfills", columns, runs);
}

function disk({ tables, clickhouse }) {
  const { replicas } = clickhouse;
  const sorted = tables.toSorted((one, other) => other.bytes - one.bytes);
  const most = sorted[0]?.bytes ?? 0;
  const bar = (one) => h("meter", { max: most, value: one.bytes, "aria-label": `${one.table}, share of the largest table` });
  const columns = [
    { title: "Table", cell: (one) => one.table },
    { title: "Rows", number: true, cell: (one) => count(one.rows) },
    { title: "Disk", number: true, cell: (one) => bytes(one.bytes) },
    { title: "Share of the largest table", cell: bar },
  ];
  return [
    facts({
      "All tables": bytes(clickhouse.disk_bytes),
      "Left on the disk": clickhouse.disk && `${bytes(clickhouse.disk.free_bytes)} of ${bytes(clickhouse.disk.total_bytes)}`,
      ClickHouse: clickhouse.version && `${clickhouse.version}${clickhouse.alive ? "" : ", does not answer"}`,
      "ClickHouse's memory": clickhouse.memory_bytes && bytes(clickhouse.memory_bytes),
      Servers: replicas.length && `${replicas.filter((one) => one.up).length} of ${replicas.length} answer`,
      Database: clickhouse.database,
    }),
    sorted.length ? table("Tables by bytes on disk", columns, sorted) : null,
  ];
}

function workers({ workers: processes }) {
  const columns = [
    { title: "Process", cell: (one) => String(one.pid) },
    { title: "Since", cell: (one) => time(one.began) },
    { title: "Requests", number: true, cell: (one) => count(one.requests) },
    { title: "History", number: true, cell: (one) => bytes(one.history_bytes) },
    { title: "Answers", number: true, cell: (one) => bytes(one.answers_bytes) },
    { title: "All memory", number: true, cell: (one) => one.resident_bytes && bytes(one.resident_bytes) },
  ];
  if (!processes?.length) return h("p", {}, "Not known.");
  return table("Workers: requests answered, and memory", columns, processes);
}

function facts(named) {
  const known = Object.entries(named).filter(([, value]) => value);
  return h("dl", {}, known.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

/** An instant of the document on the clocks of the viewer, with seconds; null for none. */
export function time(instant) {
  return instant ? h("time", { datetime: instant, title: instant }, wall(Date.parse(instant) / 1000, ZONE)) : null;
}

function duration(ms) {
  if (ms === null || ms === undefined) return null;
  return ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`;
}

function count(number) {
  return number === null || number === undefined ? null : whole.format(number);
}
