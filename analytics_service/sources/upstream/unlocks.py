"""Unlock arrangements from upstream's answers: the arrangements of followed addresses, and stand-ins for all others.

The interface has the arrangements of single addresses, without a member class, and sums by class over all. A few lump
sums for each class, under names such as `group:team`, reproduce these sums at the instant of a snapshot. Arrangements
of followed addresses have no class, so that the sums do not count them twice.
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
# Fields that the interface lacks for arrangements of single addresses.
_MISSING: dict[str, Any] = {"member_class": None, "reclaimed_at": None, "staked": 0, "held": 0}
# A lump sum that is neither claimed, expired nor reclaimed.
_BARE: dict[str, Any] = {
    **dict.fromkeys(("ends_at", "expires_at", "last_claimed_at", "reclaimed_at")),
    "kind": ScheduleKind.LUMP_SUM,
    "claimed": 0,
    "admin": "",
}


def read_groups(distribution: AnswerField, at: datetime) -> Iterator[Arrangement]:
    """Lump sums of each class: one for each use of its amount, unlocked or locked.

    Claimable amounts have unlocked. Other unlocked amounts count as claimed first, then as expired, then as reclaimed;
    any other choice has equal sums.
    """
    # Expiry and reclamation happen before the beginning, so that they take the whole amount.
    begun, ahead, before = at - _DAY, at + _DAY, at - 2 * _DAY
    for group in distribution["groups"].items():
        amount, unlocked, claimable, *uses, staked, held = (group[name].whole() for name in _AMOUNTS)
        untouched, free = amount - claimable - sum(uses), unlocked - claimable
        if untouched < 0 or not 0 <= free <= sum(uses):
            raise group.error("has inconsistent amounts")
        parts: list[tuple[int, datetime, dict[str, Any]]] = [(claimable, begun, {}), (untouched, ahead, {})]
        for use, whole in zip(("claimed", "expires_at", "reclaimed_at"), uses, strict=True):
            first = min(free, whole)
            free -= first
            for size, begins_at in ((first, begun), (whole - first, ahead)):
                parts.append((size, begins_at, {use: size if use == "claimed" else before}))
        member_class = group["member_class"].read(_CLASS)
        for index, (size, begins_at, used) in enumerate(parts):
            # The first exists even for a group without arrangements, whose members may stake and hold.
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
            **_MISSING,
        )
        if admin["issued_reclaim"].read(_FLAG):
            arrangement = replace(arrangement, reclaimed_at=_reclaimed_at(arrangement, amounts, at))
        yield arrangement


def _reclaimed_at(arrangement: Arrangement, amounts: AnswerField, at: datetime) -> datetime:
    """The second at which the locked amount was equal to the reclaimed amount. Nothing is reclaimed after expiry."""
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
