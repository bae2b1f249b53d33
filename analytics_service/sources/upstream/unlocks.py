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
from typing import Any

from analytics_service.market.instants import from_unix, unix_second
from analytics_service.market.kinds import Flag, Word
from analytics_service.market.ptoken import STAND_IN, Arrangement, MemberClass, ScheduleKind, unlock_amounts
from analytics_service.sources.upstream.fields import AnswerField

_DAY = timedelta(days=1)
_PARTS = ("unlocked", "claimable", "claimed", "expired", "reclaimed", "staked", "held")
_AMOUNTS = ("amount", *(f"amount_{part}" for part in _PARTS))
_CLASS, _FLAG = Word(of=MemberClass), Flag()
# What the interface does not tell of arrangements of single addresses.
_UNTOLD: dict[str, Any] = {"member_class": None, "reclaimed_at": None, "staked": 0, "held": 0}
# A lump sum of which nothing was done.
_BARE: dict[str, Any] = {
    **dict.fromkeys(("ends_at", "expires_at", "last_claimed_at", "reclaimed_at")),
    "kind": ScheduleKind.LUMP_SUM,
    "claimed": 0,
    "admin": "",
}


def read_groups(distribution: AnswerField, at: datetime) -> Iterator[Arrangement]:
    """A lump sum of each class for each use that is made of a part of its amount, unlocked or still locked.

    What is claimable has unlocked. What else has unlocked is counted as claimed, as far as that goes, then as expired,
    then as reclaimed; any other choice would have the same sums.
    """
    # Nothing is left to expire or to reclaim of what can be claimed, so both happen before it begins.
    begun, ahead, before = at - _DAY, at + _DAY, at - 2 * _DAY
    for group in distribution["groups"].items():
        amount, unlocked, claimable, *uses, staked, held = (group[name].whole() for name in _AMOUNTS)
        untouched, free = amount - claimable - sum(uses), unlocked - claimable
        if untouched < 0 or not 0 <= free <= sum(uses):
            raise group.error("has amounts that contradict each other")
        parts: list[tuple[int, datetime, dict[str, Any]]] = [(claimable, begun, {}), (untouched, ahead, {})]
        for use, whole in zip(("claimed", "expires_at", "reclaimed_at"), uses, strict=True):
            first = min(free, whole)
            free -= first
            for size, begins_at in ((first, begun), (whole - first, ahead)):
                parts.append((size, begins_at, {use: size if use == "claimed" else before}))
        member_class = group["member_class"].read(_CLASS)
        for index, (size, begins_at, used) in enumerate(parts):
            # The first stands even for a group without arrangements, whose members may stake and hold.
            if size or index == 0:
                fields = {**_BARE, "staked": staked, "held": held, "amount": size, "begins_at": begins_at, **used}
                yield Arrangement(f"{STAND_IN}{member_class}", index, member_class, **fields)


def read_arrangements(address: str, unlocks: AnswerField, at: datetime) -> Iterator[Arrangement]:
    """The arrangements of an address as of an instant."""
    for index, item in enumerate(unlocks["arrangements"].items()):
        admin, amounts = item["admin"], item["amounts"]
        arrangement = item.record(
            Arrangement,
            item["schedule"],
            amounts,
            address=address,
            index=index,
            admin=admin["address"].text(),
            **_UNTOLD,
        )
        if admin["issued_reclaim"].read(_FLAG):
            arrangement = replace(arrangement, reclaimed_at=_reclaimed_at(arrangement, amounts, at))
        yield arrangement


def _reclaimed_at(arrangement: Arrangement, amounts: AnswerField, at: datetime) -> datetime:
    """The second at which as much was locked as was reclaimed. After expiry, nothing is."""
    if amounts["expired"].whole():
        return at

    def kept(second: int) -> int:
        return -unlock_amounts(replace(arrangement, reclaimed_at=from_unix(second)), at).reclaimed

    reclaimed = amounts["reclaimed"].whole()
    seconds = range(unix_second(arrangement.begins_at) - 1, unix_second(at) + 1)
    index = bisect_left(seconds, -reclaimed, key=kept)
    if index == len(seconds) or kept(seconds[index]) != -reclaimed:
        raise amounts["reclaimed"].error("was not locked at any second")
    return from_unix(seconds[index])
