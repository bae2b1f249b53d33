"""The protocol token: parameters, staking pools and unlock arrangements. Amounts are in denom units."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from operator import attrgetter
from typing import Annotated

from analytics_service.market.kinds import Address, Amount, AssetId, Count, Index, Number, Text, Time, Word

# Prefix of the address of an arrangement that stands for all arrangements of a class.
STAND_IN = "group:"
_TICK = timedelta(microseconds=1)


class MemberClass(StrEnum):
    """The group of an unlock arrangement's beneficiary."""

    TEAM = "team"
    ADVISOR = "advisor"
    INVESTOR = "investor"


class ScheduleKind(StrEnum):
    """How an arrangement's amount unlocks."""

    LINEAR = "linear"
    LUMP_SUM = "lump_sum"


@dataclass(frozen=True, slots=True)
class StakingPool:
    """A staking pool: a lock-up duration in seconds, and multipliers of stakes."""

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
    total_locked: Annotated[int, Amount("Denom units locked, including unlocked units that are not claimed yet")]
    total_supply: Annotated[int, Amount("Total supply in denom units, including locked and unissued units")]
    rewards_last_distributed: Annotated[datetime, Time("Instant at which staking rewards were last distributed")]
    stake_acc: Annotated[Decimal, Number("Emission rate divided by total reward weight, accumulated over time")]
    pools: tuple[StakingPool, ...]


@dataclass(frozen=True, slots=True)
class Arrangement:
    """An unlock arrangement: its terms, and the amount claimed. Without a `member_class` it is in no group."""

    address: Annotated[str, Address("Address of the beneficiary")]
    index: Annotated[int, Index("Index among the arrangements of the address", "arrangement")]
    member_class: Annotated[
        MemberClass | None,
        Word("Group of the beneficiary: team, advisor or investor; empty if the source does not say"),
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


@dataclass(frozen=True, slots=True)
class UnlockAmounts:
    """Denom units of an arrangement, or sums over several, at an instant (rule 6.3, unlock schedules).

    `amount` is the sum of `claimed`, `claimable`, `locked`, `expired` and `reclaimed`.
    """

    amount: Annotated[int, Amount("The whole amount, which never changes")] = 0
    claimed: Annotated[int, Amount("Already claimed")] = 0
    claimable: Annotated[int, Amount("Unlocked and not claimed, reclaimed or expired")] = 0
    unlocked: Annotated[int, Amount("Unlocked by the schedules, whatever is expired or reclaimed")] = 0
    locked: Annotated[int, Amount("Still locked, and neither reclaimed nor expired")] = 0
    reclaimed: Annotated[int, Amount("Locked amount when the admin reclaimed it; 0 if it had expired before")] = 0
    expired: Annotated[int, Amount("Remaining unclaimed amount once expired; 0 if it was reclaimed before")] = 0

    @property
    def time_locked(self) -> int:
        """The amount that the schedules still lock, regardless of reclamation and expiry."""
        return self.amount - self.unlocked


_all_amounts = attrgetter(*(field.name for field in fields(UnlockAmounts)))


@dataclass(frozen=True, slots=True)
class UnlockGroup:
    """Sums over all arrangements of a member class, and the amounts that its members stake and hold."""

    member_class: Annotated[MemberClass, Word("Class of the beneficiaries")]
    amounts: UnlockAmounts
    staked: Annotated[int, Amount("Currently staked by addresses in the group; an address may be in several")]
    held: Annotated[int, Amount("Currently held by addresses in the group; an address may be in several")]


def unlocked_at(arrangement: Arrangement, at: datetime) -> int:
    """Denom units that the schedule alone has unlocked, rounded down; all from `ends_at` on. A lump sum, and a linear
    schedule of zero length, unlocks all at `begins_at`."""
    begins_at, ends_at = arrangement.begins_at, arrangement.ends_at
    if at < begins_at:
        return 0
    if ends_at is None or at >= ends_at:
        return arrangement.amount
    return arrangement.amount * ((at - begins_at) // _TICK) // ((ends_at - begins_at) // _TICK)


def unlock_amounts(arrangement: Arrangement, at: datetime) -> UnlockAmounts:
    """The arrangement's amounts at an instant. Only the earlier of reclamation and expiry takes effect, expiry if both
    coincide. Amounts that were claimed ahead of the schedule are not locked."""
    amount, claimed = arrangement.amount, arrangement.claimed
    unlocked = unlocked_at(arrangement, at)
    reclaimed_at, expires_at = arrangement.reclaimed_at, arrangement.expires_at
    claimable, locked, reclaimed, expired = 0, 0, 0, 0
    if expires_at and expires_at <= at and not (reclaimed_at and reclaimed_at < expires_at):
        expired = amount - claimed
    elif reclaimed_at and reclaimed_at <= at:
        claimable, reclaimed = _split(arrangement, unlocked_at(arrangement, reclaimed_at))
    else:
        claimable, locked = _split(arrangement, unlocked)
    return UnlockAmounts(amount, claimed, claimable, unlocked, locked, reclaimed, expired)


def _split(arrangement: Arrangement, unlocked: int) -> tuple[int, int]:
    """The part of an unlocked amount that can be claimed, and the locked rest of the arrangement."""
    free = max(unlocked, arrangement.claimed)
    return free - arrangement.claimed, arrangement.amount - free


def unlock_totals(amounts: Iterable[UnlockAmounts]) -> UnlockAmounts:
    columns = zip(*map(_all_amounts, amounts), strict=True)
    return UnlockAmounts(*map(sum, columns))


def unlock_groups(arrangements: Iterable[Arrangement], at: datetime) -> tuple[UnlockGroup, ...]:
    """A group for each member class: team, advisor, investor. A class without members has zeros."""
    listed, groups = list(arrangements), []
    for member_class in MemberClass:
        own = [arrangement for arrangement in listed if arrangement.member_class is member_class]
        amounts = unlock_totals(unlock_amounts(arrangement, at) for arrangement in own)
        # Each arrangement of an address repeats the address's `staked` and `held`.
        members = {arrangement.address: arrangement for arrangement in own}.values()
        staked, held = sum(member.staked for member in members), sum(member.held for member in members)
        groups.append(UnlockGroup(member_class, amounts, staked, held))
    return tuple(groups)
