"""The health of the service in responses of its operational routes (rule 1.3)."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from analytics_service.present.kinds import BOOLEAN, NUMBER, STRING, TIME, word
from analytics_service.present.shapes import Field, Many, Shape
from analytics_service.store.ledger import Origin


@dataclass(frozen=True, slots=True)
class Probe:
    """What a probe that succeeds answers."""

    status: Literal["up", "ready"]


ALIVE = Shape("Alive", "The process is up.", (Field("status", word("up"), "Always `up`."),))
READY = Shape("Ready", "Requests are answered from fresh data.", (Field("status", word("ready"), "Always `ready`."),))


@dataclass(frozen=True, slots=True)
class SnapshotStatus:
    """The newest snapshot of a family, if there is one, and whether it is as new as it should be."""

    family: str
    newest: datetime | None
    age_seconds: int | None
    fresh: bool


@dataclass(frozen=True, slots=True)
class Status:
    """The state of everything that the service depends on, at an instant."""

    at: datetime
    reachable: bool
    schema_current: bool
    snapshots: tuple[SnapshotStatus, ...] = ()
    origins: tuple[Origin, ...] = ()

    @property
    def faults(self) -> list[str]:
        """What keeps the service from being ready, in plain words."""
        if not self.reachable:
            return ["the store cannot be reached"]
        if not self.schema_current:
            return ["the schema is not current"]
        if not self.snapshots:
            return ["there is no history yet"]
        missing = [f"there is no snapshot of {one.family} yet" for one in self.snapshots if one.newest is None]
        late = [f"snapshots of {one.family} are not fresh" for one in self.snapshots if one.newest and not one.fresh]
        return missing + late

    @property
    def simulated(self) -> bool:
        """Whether some of the data is made up."""
        return any(origin.simulated for origin in self.origins)

    @property
    def healthy(self) -> bool:
        """Whether there is no fault."""
        return not self.faults


SNAPSHOT_STATUS = Shape(
    "SnapshotStatus",
    "The newest snapshot of a family of data.",
    (
        Field("family", STRING, "Name of the family."),
        Field("newest", TIME.bare, "Instant of the snapshot, if there is one.", optional=True),
        Field("age_seconds", NUMBER, "Age of the snapshot.", optional=True),
        Field("fresh", BOOLEAN, "Whether the snapshot is as new as it should be."),
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
        Field("store", STORE_STATUS, "The store.", source=""),
        Field("snapshots", Many(SNAPSHOT_STATUS), "The newest snapshots, by family."),
    ),
)
