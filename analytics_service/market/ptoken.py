"""The protocol token: parameters, staking pools and unlock arrangements. Amounts are in denom units."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated

from analytics_service.market.kinds import Address, Amount, AssetId, Count, Index, Number, Text, Time, Word


class MemberClass(StrEnum):
    """Group that the beneficiary of an unlock arrangement belongs to."""

    TEAM = "team"
    ADVISOR = "advisor"
    INVESTOR = "investor"


class ScheduleKind(StrEnum):
    """How an arrangement's amount unlocks."""

    LINEAR = "linear"
    LUMP_SUM = "lump_sum"


@dataclass(frozen=True, slots=True)
class StakingPool:
    """A staking pool: a lockup duration in seconds, and the multipliers that stakes earn."""

    index: Annotated[int, Index("Index of the staking pool", "pool")]
    duration: Annotated[int, Count("Seconds of lock-up")]
    reward_weight: Annotated[Decimal, Number("Multiplier of rewards")]
    gov_weight: Annotated[Decimal, Number("Multiplier of votes")]
    health_weight: Annotated[Decimal, Number("Multiplier of the stake for the health of borrow accounts")]
    flash_loan_weight: Annotated[Decimal, Number("Multiplier of the stake for flash loans")]
    total_bonded: Annotated[int, Amount("Denom units staked to the pool")]


@dataclass(frozen=True, slots=True)
class Ptoken:
    """The protocol token in a snapshot."""

    asset_id: Annotated[str, AssetId("Asset id of the protocol token")]
    emission_rate: Annotated[int, Amount("Denom units emitted per year")]
    tokens_per_weight: Annotated[int, Amount("Factor from weight to tokens")]
    total_issued: Annotated[
        int, Amount("Denom units issued, locked or unlocked, including all claimed and claimable rewards")
    ]
    total_claimed: Annotated[int, Amount("Denom units claimed, locked or unlocked, excluding unclaimed rewards")]
    total_locked: Annotated[int, Amount("Denom units locked, including unlocked ones that are not claimed yet")]
    total_supply: Annotated[int, Amount("Total supply in denom units, including locked and unissued ones")]
    rewards_last_distributed: Annotated[datetime, Time("Instant at which staking rewards were last distributed")]
    stake_acc: Annotated[Decimal, Number("Emission rate divided by total reward weight, accumulated over time")]
    pools: tuple[StakingPool, ...]


# The address of an arrangement that stands for those of all members of a class begins like this.
STAND_IN = "group:"


@dataclass(frozen=True, slots=True)
class Arrangement:
    """An unlock arrangement: its terms, and how much has been claimed. Without a `member_class` it is in no group."""

    address: Annotated[str, Address("Address of the beneficiary")]
    index: Annotated[int, Index("Index among the arrangements of the address", "arrangement")]
    member_class: Annotated[
        MemberClass | None,
        Word("Group of the beneficiary: team, advisor or investor; empty if the source does not tell it"),
    ]
    kind: Annotated[ScheduleKind, Word("Schedule: linear (from begins_at to ends_at) or lump_sum (all at begins_at)")]
    amount: Annotated[int, Amount("Denom units of the whole arrangement")]
    claimed: Annotated[int, Amount("Denom units claimed so far")]
    begins_at: Annotated[datetime, Time("Instant at which unlocking begins")]
    ends_at: Annotated[datetime | None, Time("Instant at which everything is unlocked; null for a lump sum")]
    expires_at: Annotated[datetime | None, Time("Instant from which nothing more can be claimed; null means never")]
    last_claimed_at: Annotated[datetime | None, Time("Instant of the last claim; null if there was none")]
    admin: Annotated[str, Text("Address that may reclaim what is locked")]
    reclaimed_at: Annotated[datetime | None, Time("Instant at which the admin reclaimed; null means never")]
    staked: Annotated[int, Amount("Denom units that the beneficiary stakes at the snapshot")]
    held: Annotated[int, Amount("Denom units that the beneficiary holds at the snapshot")]


def no_ptoken(at: datetime) -> Ptoken:
    """A stand-in for protocols without a protocol token: no supply, and no staking pools."""
    return Ptoken("native;none", 0, 0, 0, 0, 0, 0, rewards_last_distributed=at, stake_acc=Decimal(0), pools=())
