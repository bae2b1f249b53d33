"""Interest paid to lenders so far, as a sum over all complete snapshots of markets (rule 8.8).

It is summed when it is read, because a snapshot that is added to the past changes all later sums. So the order in which
runs complete does not matter. Memory keeps the sum for the newest head, and later snapshots are added to it. For heads
of the past, it keeps the sums at the beginning of weeks.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from analytics_service.market.instants import DAY
from analytics_service.market.interest import Lent, interest_held, interest_since
from analytics_service.store.connection import Store
from analytics_service.store.ledger import Head, PastHead, oldest_change

# Seconds. With a snapshot each minute, summing a week reads some hundred thousand rows.
_WEEK = 7 * DAY


@dataclass(frozen=True, slots=True)
class _Earned:
    """What lenders of a market have earned up to its last snapshot (unix second), in denom units."""

    last: Lent
    last_at: int
    paid: int


@dataclass(frozen=True, slots=True)
class _Kept:
    """What lenders of all markets ever listed have earned, for a head."""

    head: Head
    markets: Mapping[str, _Earned]


class InterestPaid:
    """Interest paid to lenders as of heads of family markets. Threads take turns, so that one of them reads for all."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._kept: _Kept | None = None
        # The sums at beginnings of weeks (unix seconds), for one count of rewrites: a rewrite may change all of them.
        self._weeks: dict[int, Mapping[str, _Earned]] = {}
        self._rewrites = 0
        self._weeks_lock = threading.Lock()

    def read(self, head: Head) -> dict[str, int]:
        """Interest paid in the markets of a head's snapshot, in denom units, by asset id, in the order of ids."""
        self._store.take_turn()
        earned = self._earned_in_past(head) if isinstance(head, PastHead) else self._earned(head)
        listed = {asset_id: one for asset_id, one in earned.items() if one.last_at == head.at}
        return {asset_id: listed[asset_id].paid for asset_id in sorted(listed)}

    def _earned(self, head: Head) -> Mapping[str, _Earned]:
        """The sums for a head: those of an earlier one with the snapshots since, unless its past has changed.

        A head that others have followed since the request began is like one of the past.
        """
        with self._lock:
            kept = self._kept
            if kept is None or head.follows(kept.head):
                kept = self._kept = self._renewed(kept, head)
        return kept.markets if kept.head == head else self._earned_in_past(head)

    def _renewed(self, kept: _Kept | None, head: Head) -> _Kept:
        if kept is not None:
            changed = oldest_change(self._store, kept.head, head)
            if changed is not None and changed <= kept.head.at:
                kept = None
        return _Kept(head, self._added(kept.markets if kept else {}, kept.head.at if kept else 0, head.at))

    def _earned_in_past(self, head: Head) -> Mapping[str, _Earned]:
        """The sums for a head of the past: those at the beginning of its week, which are kept, and what came since."""
        week = head.at - head.at % _WEEK
        with self._weeks_lock:
            if head.rewrites != self._rewrites:
                self._rewrites, self._weeks = head.rewrites, {}
            if week not in self._weeks:
                earlier = max((one for one in self._weeks if one < week), default=0)
                self._weeks[week] = self._added(self._weeks.get(earlier, {}), earlier, week)
            begun = self._weeks[week]
        return self._added(begun, week, head.at)

    def _added(self, before: Mapping[str, _Earned], after: int, until: int) -> dict[str, _Earned]:
        """Sums up to one unix second, and what the snapshots after that and up to another one add."""
        markets = dict(before)
        for row in self._store.frame("interest_added", after=after, until=until).iter_rows(named=True):
            known, first = markets.get(row["asset_id"]), _lent(row["first"])
            paid = known.paid + interest_since(known.last, first) if known else interest_held(first)
            paid += int(row["added"]) + sum(interest_since(_lent(pair[:2]), _lent(pair[2:])) for pair in row["large"])
            markets[row["asset_id"]] = _Earned(_lent(row["last"]), row["last_at"], paid)
        return markets


def _lent(texts: list[str]) -> Lent:
    principal, receipts = texts
    return Lent(int(principal), int(receipts))
