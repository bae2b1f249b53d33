"""The protocol token in responses: parameters, state and staking."""

from dataclasses import dataclass
from datetime import timedelta

from analytics_service.market.ptoken import Arrangement, Ptoken, StakingPool, UnlockAmounts, UnlockGroup
from analytics_service.present.assets import asset_fields
from analytics_service.present.renderings import (
    AMOUNT,
    BOOLEAN,
    DURATION,
    INDEX,
    LARGE_NUMBER,
    MEMBER_CLASS,
    PART,
    TIME,
    declared,
    variant,
)
from analytics_service.present.shapes import Field, Many, OneOf, Shape, nested

STAKING_WEIGHTS = Shape.of(
    "StakingPoolWeights",
    "Multipliers of a stake in the pool.",
    *declared(StakingPool, "reward_weight gov_weight health_weight flash_loan_weight"),
)
POOL_STATE = Shape.of("StakingPoolState", "What a staking pool holds.", *declared(StakingPool, "total_bonded"))
_IDENTITY = (
    Field("index", INDEX, "Position in the order of pools."),
    Field("duration", DURATION, "Length of the lockup."),
)
_PARAMS = Field("params", STAKING_WEIGHTS, "Multipliers.", "")
_STATE = Field("state", POOL_STATE, "What the pool holds.", "")
STAKING_POOL_PARAMS = Shape.of("StakingPoolParams", "Terms of a staking pool.", *_IDENTITY, _PARAMS)
STAKING_POOL_STATE = Shape.of("StakingPoolSum", "A staking pool and what it holds.", *_IDENTITY, _STATE)
STAKING_POOL = Shape.of("StakingPool", "A staking pool: its terms and what it holds.", *_IDENTITY, _PARAMS, _STATE)

PTOKEN_PARAMS = asset_fields(
    "PtokenParams",
    "Parameters of the protocol token.",
    *declared(Ptoken, "emission_rate tokens_per_weight", tokens_per_weight=LARGE_NUMBER),
    Field("staking_pools", Many(STAKING_POOL_PARAMS), "Terms of the staking pools.", "pools"),
)
PTOKEN_STATE = Shape.of(
    "PtokenState",
    "Amounts of the protocol token.",
    Field(
        "total_issued",
        AMOUNT,
        "Issued tokens, locked or unlocked, with initial balances and all claimed or claimable rewards.",
    ),
    *declared(Ptoken, "total_claimed total_locked total_supply"),
    Field("staking", Many(STAKING_POOL_STATE), "What the staking pools hold.", "pools"),
    asset="asset_id",
)
STAKING_GLOBAL_STATE = Shape.of(
    "StakingGlobalState", "State of all staking.", *declared(Ptoken, "rewards_last_distributed stake_acc")
)
PTOKEN_STAKING = asset_fields(
    "PtokenStaking",
    "Staking of the protocol token.",
    Field("global_state", STAKING_GLOBAL_STATE, "State of all staking.", ""),
    Field("pools", Many(STAKING_POOL), "The staking pools."),
)


UNLOCK_GROUP = Shape.of(
    "UnlockGroup",
    "Unlock arrangements with one class of members.",
    *declared(UnlockGroup, "member_class", MEMBER_CLASS),
    *nested(
        "amounts",
        (
            *declared(UnlockAmounts, "amount"),
            *declared(UnlockAmounts, "amount_claimed=claimed amount_claimable=claimable", PART),
            *declared(UnlockAmounts, "amount_unlocked=unlocked", PART),
            Field("amount_locked", PART, "Locked by the schedules, even if expired or reclaimed.", "time_locked"),
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
    """Groups of unlock arrangements. `asset_id` is the id of the protocol token."""

    asset_id: str
    groups: tuple[UnlockGroup, ...]


UNLOCK_AMOUNTS = Shape.of(
    "UserUnlockAmounts",
    "Amounts of unlock arrangements. All others add up to `amount`.",
    *declared(UnlockAmounts, "amount"),
    *declared(UnlockAmounts, "claimed claimable locked expired reclaimed", PART),
)


def _duration(arrangement: Arrangement) -> int:
    """Length of a linear schedule in seconds."""
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
    "The admin, who may reclaim locked amounts.",
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
    *nested("arrangement", _TERMS),
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
