"""How the service is, in responses of its operational routes and in `status --json` (rules 1.3 and 1.6)."""

from analytics_service.present.renderings import BOOLEAN, NUMBER, STRING, TIME, word
from analytics_service.present.shapes import Field, Many, Shape

ALIVE = Shape("Alive", "The process is up.", (Field("status", word("up"), "Always `up`.", lambda record: "up"),))
READY = Shape(
    "Ready", "Requests can be answered.", (Field("status", word("ready"), "Always `ready`.", lambda record: "ready"),)
)
SNAPSHOT_STATUS = Shape(
    "SnapshotStatus",
    "The newest snapshot of a family of data.",
    (
        Field("family", STRING, "Name of the family."),
        Field("newest", TIME.bare, "Instant of the snapshot, if there is one.", optional=True),
        Field("age_seconds", NUMBER, "Age of the snapshot.", optional=True),
        Field("fresh", BOOLEAN, "Whether the snapshot is as new as it should be."),
        Field(
            "interval_seconds",
            NUMBER,
            "Seconds between scheduled snapshots; null if none are scheduled.",
            source="interval",
            optional=True,
        ),
    ),
)
STORE_STATUS = Shape(
    "StoreStatus",
    "The state of the store.",
    (
        Field("reachable", BOOLEAN, "Whether the store answers."),
        Field("schema_current", BOOLEAN, "Whether its schema is that of this version."),
    ),
)
STATUS = Shape(
    "Status",
    "The state of everything that the service depends on.",
    (
        Field("healthy", BOOLEAN, "Whether nothing is wrong."),
        Field("faults", Many(STRING), "What is wrong, in plain words."),
        Field("at", TIME.bare, "When the state was checked."),
        Field("simulated", BOOLEAN, "Whether the store has simulated data: made up, not observed."),
        Field("sources", Many(STRING), "Names of the sources that the data is from, or `imported history`."),
        Field("store", STORE_STATUS, "The store.", source=""),
        Field("snapshots", Many(SNAPSHOT_STATUS), "The newest snapshots, by family.", source="families"),
    ),
)

_SERVICE = Shape(
    "OperationsService",
    "This service.",
    (Field("version", STRING, "Its version; empty where it is not installed.", source="service"),),
)
_CLICKHOUSE = Shape(
    "OperationsClickHouse",
    "ClickHouse.",
    (
        Field("alive", BOOLEAN, "Whether it answers.", source="reachable"),
        Field("read_at", TIME.bare, "When its data here was read, if it ever was.", optional=True),
        Field("url", STRING, "Where it is, if it is known.", optional=True),
        Field("database", STRING, "Database of the service's tables."),
        Field("version", STRING, "Its version.", source="clickhouse", optional=True),
        Field("memory_bytes", NUMBER, "Memory that it has allocated.", source="memory", optional=True),
        Field("disk_bytes", NUMBER, "Bytes of all tables on its disk.", source="disk"),
    ),
)
_SCHEMA = Shape(
    "OperationsSchema",
    "The schema of the database.",
    (
        Field("pending", Many(STRING), "Migrations that are to be applied.", optional=True, source="schema_pending"),
        Field("missing", Many(STRING), "Tables and views that are gone.", optional=True, source="schema_missing"),
    ),
)
_HTTP = Shape(
    "OperationsHttp",
    "The HTTP service.",
    (
        Field("bind", STRING, "Its address."),
        Field("alive", BOOLEAN, "Whether it answers."),
        Field("ready", BOOLEAN, "Whether it is ready (rule 1.3)."),
        Field("expected", BOOLEAN, "Whether it should run there."),
    ),
)
_WORKER = Shape(
    "OperationsWorker",
    "A process that answers requests.",
    (
        Field("pid", NUMBER, "Its process id."),
        Field("began", TIME.bare, "When it began."),
        Field("requests", NUMBER, "Requests of the main bind that it has answered."),
        Field("history_bytes", NUMBER, "Memory of history.", source="history"),
        Field("answers_bytes", NUMBER, "Memory of rendered answers.", source="answers"),
        Field("resident_bytes", NUMBER, "All its memory, if it is known.", source="resident", optional=True),
    ),
)
_SCHEDULER = Shape(
    "OperationsScheduler",
    "A scheduler of the last week.",
    (
        Field("name", STRING, "Its host and process id."),
        Field("alive", BOOLEAN, "Whether it runs."),
        Field("heard_seconds_ago", NUMBER, "Seconds since its last report."),
    ),
)
_SOURCE = Shape(
    "OperationsSource",
    "Where data is from.",
    (
        Field("name", STRING, "The spec of a source, or `imported history`.", source=""),
        Field("simulated", BOOLEAN, "Whether it is made up."),
    ),
)
_LAST_RUN = Shape(
    "OperationsLastRun",
    "The last run of a job.",
    (
        Field("at", TIME.bare, "Instant of the snapshot that it was for."),
        Field("outcome", word("done", "already_done", "superseded", "failed"), "What came of it."),
        Field("ms", NUMBER, "Milliseconds that it took, retries included.", source="took_ms"),
        Field("rows", NUMBER, "Rows of the snapshot, if there is one.", optional=True),
    ),
)
_FAMILY = Shape(
    "OperationsFamily",
    "A family of data, and the job that takes its snapshots.",
    (
        Field("family", STRING, "Its name."),
        Field("newest", TIME.bare, "Instant of the newest snapshot.", optional=True),
        Field("age_seconds", NUMBER, "Age of that snapshot.", optional=True),
        Field("fresh", BOOLEAN, "Whether it is as new as it should be."),
        Field("rows", NUMBER, "Rows of its tables, as stored."),
        Field("interval_seconds", NUMBER, "Seconds between snapshots.", source="interval", optional=True),
        Field("gaps_last_day", NUMBER, "Scheduled instants without a snapshot.", source="gaps", optional=True),
        Field("next_run", TIME.bare, "When the next snapshot is due.", optional=True),
        Field("last_run", _LAST_RUN, "The last run of its job.", optional=True),
        Field("last_error_at", TIME.bare, "Instant of the last snapshot that failed.", "failed_at", optional=True),
        Field("last_error", STRING, "Why it failed.", source=lambda family: family.error or None, optional=True),
    ),
)
_IMPORT = Shape(
    "OperationsImport",
    "A completed run of an import or a backfill.",
    (
        Field("family", STRING, "The family that it wrote."),
        Field("kind", word("import", "backfill"), "Which of the two it was."),
        Field("began", TIME.bare, "When it began to write."),
        Field("snapshots", NUMBER, "How many snapshots it brought; an import counts as one."),
        Field("rows", NUMBER, "How many observations it brought; a row of a file of rates has up to two."),
        Field("first", TIME.bare, "Instant of the oldest of them."),
        Field("last", TIME.bare, "Instant of the newest of them."),
        Field("source", STRING, "The spec of a source, or the names of files."),
    ),
)
_TABLE = Shape(
    "OperationsTable",
    "A table on ClickHouse's disk.",
    (
        Field("table", STRING, "Its name."),
        Field("rows", NUMBER, "Its rows, as stored."),
        Field("bytes", NUMBER, "Its bytes on disk."),
    ),
)
OPERATIONS = Shape(
    "Operations",
    "How every part of the service is. What is unknown is null.",
    (
        Field("at", TIME.bare, "When this was found out."),
        Field("healthy", BOOLEAN, "Whether nothing is wrong."),
        Field("faults", Many(STRING), "What is wrong, in plain words."),
        Field("simulated", BOOLEAN, "Whether the store has simulated data."),
        Field("service", _SERVICE, "This service.", source=""),
        Field("clickhouse", _CLICKHOUSE, "The store.", source=""),
        Field("schema", _SCHEMA, "Its schema.", source=""),
        Field("http", _HTTP, "The HTTP service.", optional=True),
        Field("workers", Many(_WORKER), "Its processes, where they can be seen.", optional=True),
        Field("schedulers", Many(_SCHEDULER), "Schedulers of the last week."),
        Field("sources", Many(_SOURCE), "Where the data is from.", source="origins"),
        Field("families", Many(_FAMILY), "Families of data."),
        Field("imports", Many(_IMPORT), "The newest imports and backfills."),
        Field("tables", Many(_TABLE), "Tables, those with most bytes first."),
    ),
)
