"""How the service is, in responses of its operational routes and in `status --json` (rules 1.3 and 1.6)."""

from analytics_service.market.doubts import Doubt, Doubtful
from analytics_service.present.renderings import BOOLEAN, NUMBER, STRING, TIME, declared, word
from analytics_service.present.shapes import Field, Many, Shape
from analytics_service.state.figures import AssetPrice
from analytics_service.state.health import Family, Http, Imported, LastRun, Rewriting, Table, Worker
from analytics_service.store.disk import Disk
from analytics_service.store.shards import Replica

# Doubts that are listed, and not only counted.
MOST_DOUBTS = 10
ALIVE = Shape.of("Alive", "The process is up.", Field("status", word("up"), "Always `up`.", lambda record: "up"))
READY = Shape.of(
    "Ready", "Requests can be answered.", Field("status", word("ready"), "Always `ready`.", lambda record: "ready")
)
SNAPSHOT_STATUS = Shape.of(
    "SnapshotStatus",
    "The newest snapshot of a family of data.",
    *declared(Family, "family newest age_seconds fresh interval_seconds=interval complete_until", bare=True),
)
STORE_STATUS = Shape.of(
    "StoreStatus",
    "The state of the store.",
    Field("reachable", BOOLEAN, "Whether the store answers."),
    Field("schema_current", BOOLEAN, "Whether its schema is that of this version."),
)
_HEALTHY = (
    Field("healthy", BOOLEAN, "Whether nothing is wrong."),
    Field("faults", Many(STRING), "What is wrong, in plain words."),
)
_SIMULATED = Field("simulated", BOOLEAN, "Whether the store has simulated data: made up, not observed.")
_PRICES = Field(
    "prices",
    Many(
        Shape.of(
            "PriceStatus",
            "The newest price of an asset that its source lists.",
            *declared(AssetPrice, "asset_id symbol newest age_seconds known", bare=True),
        )
    ),
    "The newest price of each asset.",
)
_DOUBTS_LAST_DAY = Field(
    "doubts_last_day",
    NUMBER,
    "Values of the last day that are in doubt. They are no faults; the view `anomalies` lists them.",
    lambda status: len(status.doubts),
)
STATUS = Shape.of(
    "Status",
    "The state of everything that the service depends on.",
    *_HEALTHY,
    Field("at", TIME.bare, "When the state was checked."),
    _SIMULATED,
    Field("sources", Many(STRING), "Names of the sources that the data is from, or `imported history`."),
    Field("store", STORE_STATUS, "The store.", ""),
    Field("snapshots", Many(SNAPSHOT_STATUS), "The newest snapshots, by family.", "families"),
    _PRICES,
    _DOUBTS_LAST_DAY,
)

_SERVICE = Shape.of(
    "OperationsService",
    "This service.",
    Field("version", STRING, "Its version; empty where it is not installed.", "service"),
)
_REPLICA = Shape.of("OperationsReplica", "A server of the cluster.", *declared(Replica, "shard address up", bare=True))
_DISK = Shape.of("OperationsDisk", "A disk.", *declared(Disk, "free_bytes=free total_bytes=total", bare=True))
_CLICKHOUSE = Shape.of(
    "OperationsClickHouse",
    "ClickHouse.",
    Field("alive", BOOLEAN, "Whether it answers.", "reachable"),
    Field("read_at", TIME.bare, "When its data here was read, if it ever was.", optional=True),
    Field("url", STRING, "Where it is, if it is known.", optional=True),
    Field("database", STRING, "Database of the service's tables."),
    Field("version", STRING, "Version of the server that was asked.", "clickhouse", optional=True),
    Field("memory_bytes", NUMBER, "Memory that its servers have allocated.", "memory", optional=True),
    Field("disk_bytes", NUMBER, "Bytes of all tables on their disks.", "stored_bytes"),
    Field("disk", _DISK, "Their fullest disk, if it is known.", optional=True),
    Field(
        "replicas",
        Many(_REPLICA),
        "The servers of its cluster, or several with the same data; none while all are away.",
    ),
)
_SCHEMA = Shape.of(
    "OperationsSchema",
    "The schema of the database.",
    Field("pending", Many(STRING), "Migrations that are to be applied.", "schema_pending", optional=True),
    Field("missing", Many(STRING), "Tables and views that are gone.", "schema_missing", optional=True),
)
_HTTP = Shape.of("OperationsHttp", "The HTTP service.", *declared(Http))
_WORKER = Shape.of(
    "OperationsWorker",
    "A process that answers requests.",
    *declared(
        Worker,
        "pid began requests history_bytes=history answers_bytes=answers resident_bytes=resident",
        bare=True,
    ),
)
_SCHEDULER = Shape.of(
    "OperationsScheduler",
    "A scheduler of the last week.",
    Field("name", STRING, "Its host and process id."),
    Field("alive", BOOLEAN, "Whether it runs."),
    Field("heard_seconds_ago", NUMBER, "Seconds since its last report."),
)
_SOURCE = Shape.of(
    "OperationsSource",
    "Where data is from.",
    Field("name", STRING, "The spec of a source, or `imported history`.", ""),
    Field("simulated", BOOLEAN, "Whether it is made up."),
)
_OUTCOME = word("done", "already_done", "failed")
_LAST_RUN = Shape.of(
    "OperationsLastRun",
    "The last run of a job.",
    *declared(LastRun, "at outcome ms=took_ms rows", bare=True, outcome=_OUTCOME),
)
_FAMILY = Shape.of(
    "OperationsFamily",
    "A family of data, and the job that takes its snapshots.",
    *declared(Family, "family newest age_seconds fresh rows interval_seconds=interval complete_until", bare=True),
    Field("gaps_last_day", NUMBER, "Scheduled instants without a snapshot.", "gaps", optional=True),
    *declared(Family, "next_run", bare=True),
    Field("last_run", _LAST_RUN, "The last run of its job.", optional=True),
    *declared(Family, "last_error_at=failed_at", bare=True),
    Field("last_error", STRING, "Why it failed.", lambda family: family.error or None, optional=True),
)
_IMPORT = Shape.of(
    "OperationsImport",
    "A completed run of an import or a backfill.",
    *declared(Imported, bare=True, kind=word("import", "backfill")),
)
_CORRECTION = Shape.of(
    "OperationsCorrection",
    "A correction of history that is at work, or waits for another.",
    *declared(Rewriting, bare=True),
)
_DOUBT = Shape.of(
    "OperationsDoubt",
    "A value that may be wrong.",
    *declared(Doubt, "observed_at what history asset_id", bare=True, what=word(*Doubtful)),
    Field("symbol", STRING, "Symbol of the asset; empty for the total."),
    *declared(Doubt, "value before_at before", bare=True),
    Field("words", STRING, "The same in words."),
)
_TABLE = Shape.of("OperationsTable", "A table on ClickHouse's disk.", *declared(Table))
OPERATIONS = Shape.of(
    "Operations",
    "How every part of the service is. What is unknown is null.",
    Field("at", TIME.bare, "When this was found out."),
    *_HEALTHY,
    _SIMULATED,
    Field("service", _SERVICE, "This service.", ""),
    Field("clickhouse", _CLICKHOUSE, "The store.", ""),
    Field("schema", _SCHEMA, "Its schema.", ""),
    Field("http", _HTTP, "The HTTP service.", optional=True),
    Field("workers", Many(_WORKER), "Its processes, where they can be seen.", optional=True),
    Field("schedulers", Many(_SCHEDULER), "Schedulers of the last week."),
    Field("sources", Many(_SOURCE), "Where the data is from.", "origins"),
    Field("families", Many(_FAMILY), "Families of data."),
    _PRICES,
    _DOUBTS_LAST_DAY,
    Field(
        "doubts",
        Many(_DOUBT),
        f"The newest of them, at most {MOST_DOUBTS}.",
        lambda status: status.doubts[:MOST_DOUBTS],
    ),
    Field(
        "imports", Many(_IMPORT), "The newest 20 imports and backfills. A backfill counts once for each 500 snapshots."
    ),
    Field("corrections", Many(_CORRECTION), "Corrections of history that are going on."),
    Field("tables", Many(_TABLE), "Tables, those with most bytes first."),
)
