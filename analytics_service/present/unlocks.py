"""Unlock arrangements in responses: sums by member class, and the arrangements of an address."""

from dataclasses import dataclass
from datetime import timedelta

from analytics_service.market.ptoken import Arrangement
from analytics_service.market.unlocks import UnlockAmounts, UnlockGroup
from analytics_service.present.renderings import BOOLEAN, DURATION, MEMBER_CLASS, PART, TIME, declared, variant
from analytics_service.present.shapes import Field, Many, OneOf, Shape, within

UNLOCK_GROUP = Shape.of(
    "UnlockGroup",
    "Unlock arrangements with one class of members.",
    *declared(UnlockGroup, "member_class", MEMBER_CLASS),
    *within(
        "amounts",
        (
            *declared(UnlockAmounts, "amount"),
            *declared(UnlockAmounts, "amount_claimed=claimed amount_claimable=claimable", PART),
            *declared(UnlockAmounts, "amount_unlocked=unlocked", PART),
            Field("amount_locked", PART, "Locked by the schedules, whatever is expired or reclaimed.", "time_locked"),
            *declared(UnlockAmounts, "amount_reclaimed=reclaimed amount_expired=expired", PART),
        ),
    ),
    *declared(UnlockGroup, "amount_staked=staked amount_held=held"),
)
UNLOCKS_DISTRIBUTION = Shape.of(
    "UnlocksDistribution",
    "How the protocol token unlocks.",
    Field("groups", Many(UNLOCK_GROUP), "One group for each class of members."),
    asset="asset_id",
)


@dataclass(frozen=True, slots=True)
class UnlocksDistribution:
    """Groups of unlock arrangements. `asset_id` is that of the protocol token."""

    asset_id: str
    groups: tuple[UnlockGroup, ...]


UNLOCK_AMOUNTS = Shape.of(
    "UserUnlockAmounts",
    "Amounts of unlock arrangements; the others add up to `amount`.",
    *declared(UnlockAmounts, "amount"),
    *declared(UnlockAmounts, "claimed claimable locked expired reclaimed", PART),
)


def _duration(arrangement: Arrangement) -> int:
    """Seconds from the beginning to the end of a linear schedule."""
    return ((arrangement.ends_at or arrangement.begins_at) - arrangement.begins_at) // timedelta(seconds=1)


UNLOCK_SCHEDULE = OneOf(
    "UnlockSchedule",
    "How an arrangement's amount unlocks.",
    key=lambda arrangement, _: arrangement.kind,
    choices={
        "linear": Shape.of(
            "LinearUnlockSchedule",
            "Unlocks evenly from beginning to end.",
            variant("linear"),
            Field("duration", DURATION, "Time from beginning to end.", source=_duration),
            Field("ends_at", TIME, "When everything is unlocked."),
        ),
        "lump_sum": Shape.of(
            "LumpSumUnlockSchedule", "Unlocks everything at the beginning.", variant("lump_sum"), extra=True
        ),
    },
)
UNLOCK_ADMIN = Shape.of(
    "UnlockAdmin",
    "The admin, who may reclaim what is locked.",
    *declared(Arrangement, "address=admin"),
    Field(
        "issued_reclaim",
        BOOLEAN,
        "Whether the admin has reclaimed.",
        lambda arrangement: arrangement.reclaimed_at is not None,
    ),
)
_TERMS = (
    *declared(Arrangement, "begins_at"),
    Field("schedule", UNLOCK_SCHEDULE, "How the amount unlocks.", ""),
    *declared(Arrangement, "last_claimed_at expires_at"),
    Field("admin", UNLOCK_ADMIN, "Who may reclaim.", ""),
)
ARRANGEMENT = Shape.of(
    "UserUnlockArrangement",
    "An unlock arrangement.",
    *within("arrangement", _TERMS),
    Field("amounts", UNLOCK_AMOUNTS, "The arrangement's amounts."),
)
USER_UNLOCKS = Shape.of(
    "UserUnlocks",
    "An address's unlock arrangements.",
    Field("arrangements", Many(ARRANGEMENT), "The arrangements."),
    Field("totals", UNLOCK_AMOUNTS, "Sums over all arrangements."),
    Field("last_claimed_at", TIME, "Last claim of any arrangement; null before the first.", optional=True),
    asset="asset_id",
)
