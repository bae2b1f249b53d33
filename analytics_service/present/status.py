"""How the service is, as its operational paths show it (decisions section 1)."""

from analytics_service.present.kinds import BOOLEAN, NUMBER, STRING, TIME, word
from analytics_service.present.shapes import Field, Many, Shape

ALIVE = Shape("Alive", "The process is up.", (Field("status", word("up"), "It is."),))
READY = Shape("Ready", "Requests can be answered from fresh data.", (Field("status", word("ready"), "They can."),))
SNAPSHOT_STATUS = Shape(
    "SnapshotStatus",
    "The newest snapshot of a family of data.",
    (
        Field("family", STRING, "Name of the family."),
        Field("newest", TIME.bare, "Instant of the snapshot, if there is one.", optional=True),
        Field("age_seconds", NUMBER, "How long ago that was.", optional=True),
        Field("fresh", BOOLEAN, "Whether it is as new as it should be."),
    ),
)
STATUS = Shape(
    "Status",
    "The state of what the service stands on.",
    (
        Field("healthy", BOOLEAN, "Whether there is no fault."),
        Field("faults", Many(STRING), "What is wrong, in plain words."),
        Field("at", TIME.bare, "When this was looked at."),
        Field(
            "store",
            Shape(
                "StoreStatus",
                "The store.",
                (
                    Field("reachable", BOOLEAN, "Whether it answers."),
                    Field("schema_current", BOOLEAN, "Whether its schema is that of this version."),
                ),
            ),
            "The store.",
        ),
        Field("snapshots", Many(SNAPSHOT_STATUS), "By family."),
    ),
)
