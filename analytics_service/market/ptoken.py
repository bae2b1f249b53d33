"""The protocol token: parameters, staking pools and unlock arrangements. Amounts are in denom units."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum


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

    index: int
    duration: int
    reward_weight: Decimal
    gov_weight: Decimal
    health_weight: Decimal
    flash_loan_weight: Decimal
    total_bonded: int


@dataclass(frozen=True, slots=True)
class Ptoken:
    """The protocol token in a snapshot."""

    asset_id: str
    emission_rate: int
    tokens_per_weight: int
    total_issued: int
    total_claimed: int
    total_locked: int
    total_supply: int
    rewards_last_distributed: datetime
    stake_acc: Decimal
    pools: tuple[StakingPool, ...]


@dataclass(frozen=True, slots=True)
class Arrangement:
    """An unlock arrangement: its terms, and how much has been claimed.

    A linear schedule unlocks from `begins_at` to `ends_at`. A lump sum unlocks at `begins_at` and has no `ends_at`.
    At `reclaimed_at` the admin took back the locked amount. `staked` and `held` are totals of the beneficiary.
    Without a `member_class`, an arrangement is in no group.
    """

    address: str
    index: int
    member_class: MemberClass | None
    kind: ScheduleKind
    amount: int
    claimed: int
    begins_at: datetime
    ends_at: datetime | None
    expires_at: datetime | None
    last_claimed_at: datetime | None
    admin: str
    reclaimed_at: datetime | None
    staked: int
    held: int


def no_ptoken(at: datetime) -> Ptoken:
    """A stand-in for protocols without a protocol token: no supply, and no staking pools."""
    return Ptoken("native;none", 0, 0, 0, 0, 0, 0, rewards_last_distributed=at, stake_acc=Decimal(0), pools=())
