"""Unlock arrangements in responses: sums by member class, and the arrangements of an address."""

from dataclasses import dataclass
from datetime import timedelta

from analytics_service.market.ptoken import Arrangement
from analytics_service.market.unlocks import UnlockGroup
from analytics_service.present.renderings import (
    AMOUNT,
    BOOLEAN,
    DURATION,
    MEMBER_CLASS,
    PART,
    STRING,
    TIME,
    word,
)
from analytics_service.present.shapes import Field, Many, OneOf, Shape, within

UNLOCK_GROUP = Shape(
    "UnlockGroup",
    "Unlock arrangements with one class of members.",
    (
        Field("member_class", MEMBER_CLASS, "Class of the beneficiaries."),
        Field(
            "amount",
            AMOUNT,
            "Sum of all unlock amounts in the group; never changes with expiry, reclamation or lock state.",
            source="amounts.amount",
        ),
        Field("amount_claimed", PART, "Already claimed.", source="amounts.claimed"),
        Field(
            "amount_claimable",
            PART,
            "Currently claimable after reclamation, lock state, expiry and prior claims.",
            source="amounts.claimable",
        ),
        Field(
            "amount_unlocked",
            PART,
            "Currently unlocked; ignores reclaimed and expired states.",
            source="amounts.unlocked",
        ),
        Field(
            "amount_locked",
            PART,
            "Currently time-locked; ignores reclaimed and expired states.",
            source="amounts.time_locked",
        ),
        Field(
            "amount_reclaimed",
            PART,
            "Remaining unclaimed and locked amount when the admin reclaimed it.",
            source="amounts.reclaimed",
        ),
        Field(
            "amount_expired",
            PART,
            "Remaining unclaimed amount once expired; 0 if it was reclaimed before.",
            source="amounts.expired",
        ),
        Field("amount_staked", AMOUNT, "Currently staked by addresses in the group.", source="staked"),
        Field("amount_held", AMOUNT, "Currently held by addresses in the group.", source="held"),
    ),
)
UNLOCKS_DISTRIBUTION = Shape(
    "UnlocksDistribution",
    "How the protocol token unlocks.",
    (Field("groups", Many(UNLOCK_GROUP), "One group for each class of members."),),
    asset="asset_id",
)


@dataclass(frozen=True, slots=True)
class UnlocksDistribution:
    """Groups of unlock arrangements. `asset_id` is that of the protocol token."""

    asset_id: str
    groups: tuple[UnlockGroup, ...]


UNLOCK_AMOUNTS = Shape(
    "UserUnlockAmounts",
    "Amounts of unlock arrangements; the others add up to `amount`.",
    (
        Field("amount", AMOUNT, "The whole amount."),
        Field("claimed", PART, "Already claimed."),
        Field("claimable", PART, "Currently claimable."),
        Field("locked", PART, "Still locked, and neither reclaimed nor expired."),
        Field("expired", PART, "Remaining unclaimed amount once expired; 0 if it was reclaimed before."),
        Field("reclaimed", PART, "Locked amount when the admin reclaimed it; 0 if it had expired before."),
    ),
)


def _duration(arrangement: Arrangement) -> int:
    """Seconds from the beginning to the end of a linear schedule."""
    return ((arrangement.ends_at or arrangement.begins_at) - arrangement.begins_at) // timedelta(seconds=1)


def _issued_reclaim(arrangement: Arrangement) -> bool:
    return arrangement.reclaimed_at is not None


UNLOCK_SCHEDULE = OneOf(
    "UnlockSchedule",
    "How an arrangement's amount unlocks.",
    key="kind",
    choices={
        "linear": Shape(
            "LinearUnlockSchedule",
            "Unlocks evenly from beginning to end.",
            (
                Field("kind", word("linear"), "Names the variant."),
                Field("duration", DURATION, "Time from beginning to end.", source=_duration),
                Field("ends_at", TIME, "When everything is unlocked."),
            ),
        ),
        "lump_sum": Shape(
            "LumpSumUnlockSchedule",
            "Unlocks everything at the beginning.",
            (Field("kind", word("lump_sum"), "Names the variant."),),
            extra=True,
        ),
    },
)
UNLOCK_ADMIN = Shape(
    "UnlockAdmin",
    "The admin, who may reclaim what is locked.",
    (
        Field("address", STRING, "The admin's address.", source="admin"),
        Field("issued_reclaim", BOOLEAN, "Whether the admin has reclaimed.", source=_issued_reclaim),
    ),
)
_TERMS = (
    Field("begins_at", TIME, "When unlocking begins."),
    Field("schedule", UNLOCK_SCHEDULE, "How the amount unlocks.", source=""),
    Field("last_claimed_at", TIME, "Last claim; null before the first.", optional=True),
    Field("expires_at", TIME, "When unclaimed amounts are lost; null if never.", optional=True),
    Field("admin", UNLOCK_ADMIN, "Who may reclaim.", source=""),
)
ARRANGEMENT = Shape(
    "UserUnlockArrangement",
    "An unlock arrangement.",
    (*within("arrangement", _TERMS), Field("amounts", UNLOCK_AMOUNTS, "The arrangement's amounts.")),
)
USER_UNLOCKS = Shape(
    "UserUnlocks",
    "An address's unlock arrangements.",
    (
        Field("arrangements", Many(ARRANGEMENT), "The arrangements."),
        Field("totals", UNLOCK_AMOUNTS, "Sums over all arrangements."),
        Field("last_claimed_at", TIME, "Last claim of any arrangement; null before the first.", optional=True),
    ),
    asset="asset_id",
)
