"""The health of the service in responses of its operational routes (rule 1.3)."""

from dataclasses import dataclass
from typing import Literal

from analytics_service.present.kinds import BOOLEAN, NUMBER, STRING, TIME, word
from analytics_service.present.shapes import Field, Many, Shape


@dataclass(frozen=True, slots=True)
class Probe:
    """The answer of a probe that succeeds."""

    status: Literal["up", "ready"]


ALIVE = Shape("Alive", "The process is up.", (Field("status", word("up"), "Always `up`."),))
READY = Shape("Ready", "Requests can be answered.", (Field("status", word("ready"), "Always `ready`."),))


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
        Field("healthy", BOOLEAN, "Whether there is no fault."),
        Field("faults", Many(STRING), "What is wrong, in plain words."),
        Field("at", TIME.bare, "When the state was checked."),
        Field("simulated", BOOLEAN, "Whether the store has simulated data: made up, not observed."),
        Field("sources", Many(STRING), "Names of the sources that the data is from, or `imported history`."),
        Field("store", STORE_STATUS, "The store.", source=""),
        Field("snapshots", Many(SNAPSHOT_STATUS), "The newest snapshots, by family."),
    ),
)
