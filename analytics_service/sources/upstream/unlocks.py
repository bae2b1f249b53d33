"""Unlock arrangements from upstream's answers: those of followed addresses, and stand-ins for the rest.

The interface tells no other arrangements than those of single addresses, and not the class of their members; of all
others it tells sums by class. A few lump sums for each class have the same sums at the instant of a snapshot. They
stand under names that are no addresses, as `group:team`. Arrangements of followed addresses have no class, so the sums
do not count them twice.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from analytics_service.market.instants import instant, unix_second
from analytics_service.market.ptoken import Arrangement, MemberClass, ScheduleKind
from analytics_service.market.unlocks import unlock_amounts, unlocked_at
from analytics_service.sources.upstream.fields import AnswerField

_DAY = timedelta(days=1)


def read_groups(distribution: AnswerField, at: datetime) -> Iterator[Arrangement]:
    """Stand-ins for the arrangements of each class, with upstream's sums at an instant."""
    for group in distribution["groups"].items():
        yield from _stand_ins(group, at)


def _stand_ins(group: AnswerField, at: datetime) -> Iterator[Arrangement]:
    """A lump sum for each use that is made of a part of the group's amount, unlocked or still locked.

    What is claimable has unlocked. What else has unlocked is counted as claimed, as far as that goes, then as expired,
    then as reclaimed; any other choice would have the same sums.
    """
    amount, unlocked = group["amount"].whole(), group["amount_unlocked"].whole()
    claimable = group["amount_claimable"].whole()
    used = {name: group[f"amount_{name}"].whole() for name in ("claimed", "expired", "reclaimed")}
    untouched, free = amount - claimable - sum(used.values()), unlocked - claimable
    if untouched < 0:
        raise group["amount"].error("is less than the sum of its parts")
    if not 0 <= free <= sum(used.values()):
        raise group["amount_unlocked"].error("contradicts the amounts that are claimed, claimable, expired, reclaimed")
    begun, ahead = at - _DAY, at + _DAY
    member_class = group["member_class"].word(MemberClass)
    bare = Arrangement(
        address=f"group:{member_class}",
        index=0,
        member_class=member_class,
        kind=ScheduleKind.LUMP_SUM,
        amount=0,
        claimed=0,
        begins_at=begun,
        ends_at=None,
        expires_at=None,
        last_claimed_at=None,
        admin="",
        reclaimed_at=None,
        staked=group["amount_staked"].whole(),
        held=group["amount_held"].whole(),
    )
    parts = [replace(bare, amount=claimable), replace(bare, amount=untouched, begins_at=ahead)]
    for use, whole in used.items():
        first = min(free, whole)
        free -= first
        for size, begins_at in ((first, begun), (whole - first, ahead)):
            parts.append(_used(replace(bare, amount=size, begins_at=begins_at), use))
    for index, part in enumerate(parts):
        # The first stands even for a group without arrangements, whose members may stake and hold.
        if part.amount or index == 0:
            yield replace(part, index=index)


def _used(lump_sum: Arrangement, use: str) -> Arrangement:
    """The lump sum after all of it was claimed, has expired or was reclaimed."""
    if use == "claimed":
        return replace(lump_sum, claimed=lump_sum.amount)
    # Nothing is left to expire or to reclaim of what can be claimed, so both happen before it begins.
    before = lump_sum.begins_at - 2 * _DAY
    return replace(lump_sum, expires_at=before) if use == "expired" else replace(lump_sum, reclaimed_at=before)


def read_arrangements(address: str, unlocks: AnswerField, at: datetime) -> Iterator[Arrangement]:
    """The arrangements of an address as of an instant."""
    for index, item in enumerate(unlocks["arrangements"].items()):
        schedule, admin, amounts = item["schedule"], item["admin"], item["amounts"]
        kind = schedule["kind"].word(ScheduleKind)
        arrangement = item.record(
            Arrangement,
            address=address,
            index=index,
            member_class=None,
            kind=kind,
            amount=amounts["amount"].whole(),
            claimed=amounts["claimed"].whole(),
            ends_at=schedule["ends_at"].time() if kind is ScheduleKind.LINEAR else None,
            admin=admin["address"].text(),
            reclaimed_at=None,
            staked=0,
            held=0,
        )
        if admin["issued_reclaim"].flag():
            arrangement = replace(arrangement, reclaimed_at=_reclaimed_at(arrangement, amounts, at))
        yield arrangement


def _reclaimed_at(arrangement: Arrangement, amounts: AnswerField, at: datetime) -> datetime:
    """The second at which as much was locked as was reclaimed. After expiry, nothing is."""
    if amounts["expired"].whole():
        return at
    reclaimed = amounts["reclaimed"].whole()
    kept = arrangement.amount - reclaimed
    seconds = range(unix_second(arrangement.begins_at) - 1, unix_second(at) + 1)
    # All that is kept may have been claimed ahead of the schedule.
    least = 0 if kept == arrangement.claimed else kept
    index = bisect_left(seconds, least, key=lambda second: unlocked_at(arrangement, instant(second)))
    reclaimed_at = instant(seconds[index]) if index < len(seconds) else at
    if unlock_amounts(replace(arrangement, reclaimed_at=reclaimed_at), at).reclaimed != reclaimed:
        raise amounts["reclaimed"].error("is not an amount that was locked at any second")
    return reclaimed_at
