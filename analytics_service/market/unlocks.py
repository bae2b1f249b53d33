"""What of an unlock arrangement is locked, claimable or gone at an instant (interface section 2)."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from analytics_service.market.ptoken import Arrangement, MemberClass

_TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class UnlockAmounts:
    """Denom units of an arrangement, or of several together, as of an instant.

    Of each arrangement `amount` is always `unlocked` plus `locked`. It is also what is claimed, claimable,
    reclaimed and expired, plus what is locked and neither reclaimed nor expired.
    """

    amount: int = 0
    claimed: int = 0
    claimable: int = 0
    unlocked: int = 0
    locked: int = 0
    reclaimed: int = 0
    expired: int = 0


@dataclass(frozen=True, slots=True)
class UnlockGroup:
    """Sums over the arrangements with one class of members (interface section 2, unlock distribution group)."""

    member_class: MemberClass
    amount: int
    amount_claimed: int
    amount_claimable: int
    amount_unlocked: int
    amount_locked: int
    amount_reclaimed: int
    amount_expired: int
    amount_staked: int
    amount_held: int


def unlocked_at(arrangement: Arrangement, at: datetime) -> int:
    """Denom units unlocked by the schedule alone, rounded down; all of them from `ends_at` on.

    A lump sum, and a linear schedule without length, unlocks whole at `begins_at`.
    """
    begins_at, ends_at = arrangement.begins_at, arrangement.ends_at
    if at < begins_at:
        return 0
    if ends_at is None or at >= ends_at:
        return arrangement.amount
    return arrangement.amount * ((at - begins_at) // _TICK) // ((ends_at - begins_at) // _TICK)


def unlock_amounts(arrangement: Arrangement, at: datetime) -> UnlockAmounts:
    """The arrangement's amounts at an instant; `claimed` is as recorded.

    Whichever of reclamation and expiry comes first takes effect, and from its very instant. Reclamation takes what
    is locked then; what had unlocked by then stays claimable, also past `expires_at`. Expiry takes all that is
    unclaimed.
    """
    unlocked = unlocked_at(arrangement, at)
    reclaimed, expired, reachable = 0, 0, unlocked
    if (reclaimed_at := _reclaimed_at(arrangement)) and reclaimed_at <= at:
        reachable = unlocked_at(arrangement, reclaimed_at)
        reclaimed = arrangement.amount - max(reachable, arrangement.claimed)
    elif arrangement.expires_at and arrangement.expires_at <= at:
        expired = arrangement.amount - arrangement.claimed
        reachable = 0
    return UnlockAmounts(
        amount=arrangement.amount,
        claimed=arrangement.claimed,
        claimable=max(reachable - arrangement.claimed, 0),
        unlocked=unlocked,
        locked=arrangement.amount - unlocked,
        reclaimed=reclaimed,
        expired=expired,
    )


def unlock_totals(amounts: Iterable[UnlockAmounts]) -> UnlockAmounts:
    """The sum of each amount."""
    every = list(amounts)
    return UnlockAmounts(
        amount=sum(one.amount for one in every),
        claimed=sum(one.claimed for one in every),
        claimable=sum(one.claimable for one in every),
        unlocked=sum(one.unlocked for one in every),
        locked=sum(one.locked for one in every),
        reclaimed=sum(one.reclaimed for one in every),
        expired=sum(one.expired for one in every),
    )


def unlock_groups(arrangements: Iterable[Arrangement], at: datetime) -> tuple[UnlockGroup, ...]:
    """One group for each member class, in the order team, advisor, investor; of zeros where it has no members."""
    every = list(arrangements)
    return tuple(
        _group(member_class, [one for one in every if one.member_class is member_class], at)
        for member_class in MemberClass
    )


def _group(member_class: MemberClass, members: list[Arrangement], at: datetime) -> UnlockGroup:
    sums = unlock_totals(unlock_amounts(one, at) for one in members)
    # What an address stakes and holds stands on each of its arrangements.
    people = {one.address: one for one in members}.values()
    return UnlockGroup(
        member_class=member_class,
        amount=sums.amount,
        amount_claimed=sums.claimed,
        amount_claimable=sums.claimable,
        amount_unlocked=sums.unlocked,
        amount_locked=sums.locked,
        amount_reclaimed=sums.reclaimed,
        amount_expired=sums.expired,
        amount_staked=sum(one.staked for one in people),
        amount_held=sum(one.held for one in people),
    )


def _reclaimed_at(arrangement: Arrangement) -> datetime | None:
    """When the admin reclaimed; None also where it had expired by then, so that nothing was left."""
    reclaimed_at, expires_at = arrangement.reclaimed_at, arrangement.expires_at
    return None if reclaimed_at and expires_at and expires_at <= reclaimed_at else reclaimed_at
