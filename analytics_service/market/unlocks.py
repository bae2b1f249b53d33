"""Amounts of unlock arrangements at an instant (rule 6.3)."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Annotated

from analytics_service.market.kinds import Amount, Word
from analytics_service.market.ptoken import Arrangement, MemberClass

_TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class UnlockAmounts:
    """Denom units of an arrangement, or sums over several arrangements, at an instant (rule 6.3).

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
        """The amount that the schedules alone still lock, regardless of reclamation and expiry."""
        return self.amount - self.unlocked


_all_amounts = attrgetter(*(field.name for field in fields(UnlockAmounts)))


@dataclass(frozen=True, slots=True)
class UnlockGroup:
    """Sums over all arrangements of a member class, and the amounts that its members stake and hold."""

    member_class: Annotated[MemberClass, Word("Class of the beneficiaries")]
    amounts: UnlockAmounts
    staked: Annotated[int, Amount("Currently staked by addresses in the group")]
    held: Annotated[int, Amount("Currently held by addresses in the group")]


def unlocked_at(arrangement: Arrangement, at: datetime) -> int:
    """Denom units that the schedule alone has unlocked, rounded down; all of them from `ends_at` on.

    A lump sum unlocks all at `begins_at`, and so does a linear schedule of zero length.
    """
    begins_at, ends_at = arrangement.begins_at, arrangement.ends_at
    if at < begins_at:
        return 0
    if ends_at is None or at >= ends_at:
        return arrangement.amount
    return arrangement.amount * ((at - begins_at) // _TICK) // ((ends_at - begins_at) // _TICK)


def unlock_amounts(arrangement: Arrangement, at: datetime) -> UnlockAmounts:
    """The arrangement's amounts at an instant; `claimed`, at most the full amount, is recorded in the arrangement.

    Only the earlier of reclamation and expiry takes effect, from its instant on; expiry if both coincide. Amounts that
    were claimed ahead of the schedule are not locked.
    """
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
    """A group for each member class, in the order team, advisor, investor. A class without members has zeros."""
    listed, groups = list(arrangements), []
    for member_class in MemberClass:
        own = [arrangement for arrangement in listed if arrangement.member_class is member_class]
        amounts = unlock_totals(unlock_amounts(arrangement, at) for arrangement in own)
        # Each arrangement of an address repeats the address's `staked` and `held`.
        members = {arrangement.address: arrangement for arrangement in own}.values()
        staked, held = sum(member.staked for member in members), sum(member.held for member in members)
        groups.append(UnlockGroup(member_class, amounts, staked, held))
    return tuple(groups)
