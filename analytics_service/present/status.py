"""Status of the service in responses and in `status --json` (rules 1.3, readiness, and 1.6, status record)."""

from analytics_service.present.renderings import BOOLEAN, NUMBER, STRING, TIME, declared, word
from analytics_service.present.shapes import Field, Many, Shape
from analytics_service.state.facts import DiskSpace, LostPrice
from analytics_service.state.health import Dataset
from analytics_service.store.write_lock import LockHolder

ALIVE = Shape.of("Alive", "The process is up.", Field("status", word("up"), "Always `up`.", lambda record: "up"))
READY = Shape.of(
    "Ready", "Requests can be answered.", Field("status", word("ready"), "Always `ready`.", lambda record: "ready")
)
_SNAPSHOT = "dataset newest age_seconds fresh interval_seconds=interval complete_until"
SNAPSHOT_STATUS = Shape.of(
    "SnapshotStatus", "The newest snapshot of a dataset.", *declared(Dataset, _SNAPSHOT, bare=True)
)
_STORE = (
    Field("reachable", BOOLEAN, "Whether the store answers."),
    Field("schema_current", BOOLEAN, "Whether its schema matches this version."),
)
_VERDICT = (
    Field("healthy", BOOLEAN, "Whether nothing is wrong."),
    Field("faults", Many(STRING), "What is wrong, in plain words."),
    Field("at", TIME.bare, "Time of this status."),
    Field("simulated", BOOLEAN, "Whether the store has simulated data: made up, not observed."),
)
_DATA = (
    Field(
        "lost_prices",
        Many(
            Shape.of(
                "LostPrice",
                "The last price of an asset that its source still lists. It is too old to be used.",
                *declared(LostPrice, "asset_id symbol newest age_seconds", bare=True),
            )
        ),
        "Assets whose last price is too old to be used.",
    ),
    Field(
        "anomalies_last_day",
        NUMBER,
        "Suspicious values of the last day. They are not faults; the view `anomalies` lists them.",
        "facts.anomalies",
    ),
)
STATUS = Shape.of(
    "Status",
    "The state of everything that the service depends on.",
    *_VERDICT,
    Field("sources", Many(STRING), "Names of the data's sources, or `imported history`."),
    Field("store", Shape.of("StoreStatus", "The state of the store.", *_STORE), "The store.", ""),
    Field("snapshots", Many(SNAPSHOT_STATUS), "The newest snapshots, by dataset.", "datasets"),
    Field(
        "filling",
        BOOLEAN,
        "Whether `up` still fills in the past. Meanwhile histories lack values, and sums of interest are too small.",
    ),
    *_DATA,
)

_DISK = Shape.of("OperationsDisk", "A disk.", *declared(DiskSpace, "free_bytes=free total_bytes=total", bare=True))
_OPERATIONS_STORE = Shape.of(
    "OperationsStore",
    "The state of the store.",
    *_STORE,
    Field("error", STRING, "Why it does not answer, or cannot be read in full; else empty."),
    Field("disk", _DISK, "The fullest disk of its servers, if known.", "facts.disk", optional=True),
)
_OPERATIONS_SNAPSHOT = Shape.of(
    "OperationsSnapshot",
    "The newest snapshot of a dataset, and failures of its job.",
    *declared(Dataset, f"{_SNAPSHOT} gaps_last_day=gaps last_error_at=failed_at last_error=error", bare=True),
)
_SOURCE = Shape.of(
    "OperationsSource",
    "Origin of data.",
    Field("name", STRING, "The spec of a source, or `imported history`.", ""),
    Field("simulated", BOOLEAN, "Whether it is made up."),
)
_SCHEDULER = Shape.of(
    "OperationsScheduler",
    "A scheduler that reported within the last week.",
    Field("name", STRING, "Its host and process id."),
    Field("alive", BOOLEAN, "Whether it is running."),
    Field("heard_seconds_ago", NUMBER, "Seconds since its last report."),
)
_CORRECTION = Shape.of(
    "OperationsCorrection",
    "A correction of history in progress.",
    *declared(LockHolder, "what=operation dataset began command", bare=True),
)
OPERATIONS = Shape.of(
    "Operations",
    "State of every part of the service. Unknown values are null.",
    *_VERDICT,
    Field("version", STRING, "Version of this service; empty where it is not installed."),
    Field("sources", Many(_SOURCE), "Origins of the data.", "origins"),
    Field("store", _OPERATIONS_STORE, "The store.", ""),
    Field("snapshots", Many(_OPERATIONS_SNAPSHOT), "The newest snapshots, by dataset.", "datasets"),
    *_DATA,
    Field("schedulers", Many(_SCHEDULER), "Recent schedulers.", lambda status: status.facts.schedulers or ()),
    Field("corrections", Many(_CORRECTION), "Corrections of history in progress.", "facts.corrections"),
)
