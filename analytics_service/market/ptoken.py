"""The protocol token: its parameters, staking pools and unlock arrangements. Amounts are whole denom units."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum


class MemberClass(StrEnum):
    """Group of people that unlock arrangements are made with."""

    TEAM = "team"
    ADVISOR = "advisor"
    INVESTOR = "investor"


class ScheduleKind(StrEnum):
    """How an arrangement's amount unlocks."""

    LINEAR = "linear"
    LUMP_SUM = "lump_sum"


@dataclass(frozen=True, slots=True)
class StakingPool:
    """A lock-up of one duration (seconds) and the multipliers it earns."""

    index: int
    duration: int
    reward_weight: Decimal
    gov_weight: Decimal
    health_weight: Decimal
    flash_loan_weight: Decimal
    total_bonded: int


@dataclass(frozen=True, slots=True)
class Ptoken:
    """The protocol token as of a snapshot (interface section 2: params, state and staking overview)."""

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
    """An unlock arrangement as agreed and as used so far.

    A linear schedule unlocks from `begins_at` to `ends_at`; a lump sum at `begins_at`, and has no `ends_at`.
    `reclaimed_at` is when the admin took back what was locked then. `staked` and `held` are the beneficiary's.
    """

    address: str
    index: int
    member_class: MemberClass
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
