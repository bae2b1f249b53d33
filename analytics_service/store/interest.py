"""Interest paid to lenders so far, as a sum over all complete snapshots of markets (rule 8.8).

It is summed when it is read, because a snapshot of the past changes what follows it: so it does not matter in which
order runs complete. Memory keeps the sum of the newest head, and later snapshots are added to it.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from analytics_service.market.interest import Lent, interest_held, interest_since
from analytics_service.store.connection import Store
from analytics_service.store.ledger import Head, oldest_change


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
    markets: Mapping[str, _Earned] = field(default_factory=dict)


class InterestPaid:
    """Interest paid to lenders as of heads of family markets. Threads take turns, so that one of them reads for all."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._kept: _Kept | None = None

    def read(self, head: Head) -> dict[str, int]:
        """Interest paid in the markets of a head's snapshot, in denom units, by asset id, in the order of ids."""
        self._store.take_turn()
        with self._lock:
            kept = self._kept
            if kept is None or kept.head != head:
                kept = self._renewed(kept, head)
                if self._kept is None or head.version >= self._kept.head.version:
                    self._kept = kept
        listed = {asset_id: earned for asset_id, earned in kept.markets.items() if earned.last_at == head.at}
        return {asset_id: listed[asset_id].paid for asset_id in sorted(listed)}

    def _renewed(self, kept: _Kept | None, head: Head) -> _Kept:
        """The sums for a head: those of an earlier one with the snapshots since, unless its past has changed."""
        if kept is not None:
            changed = oldest_change(self._store, kept.head, head)
            if changed is not None and changed <= kept.head.at:
                kept = None
        markets = dict(kept.markets) if kept else {}
        rows = self._store.frame("interest_added", after=kept.head.at if kept else 0, until=head.at)
        for row in rows.iter_rows(named=True):
            before, first = markets.get(row["asset_id"]), _lent(row["first"])
            paid = before.paid + interest_since(before.last, first) if before else interest_held(first)
            paid += int(row["added"]) + sum(interest_since(_lent(pair[:2]), _lent(pair[2:])) for pair in row["large"])
            markets[row["asset_id"]] = _Earned(_lent(row["last"]), row["last_at"], paid)
        return _Kept(head, markets)


def _lent(texts: list[str]) -> Lent:
    principal, receipts = texts
    return Lent(int(principal), int(receipts))
