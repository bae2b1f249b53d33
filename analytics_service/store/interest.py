"""Interest paid to lenders so far, as a sum over all complete snapshots of markets (rule 8.8).

It is summed on reading, because a snapshot that is added to the past changes all later sums. So the order in which runs
complete does not matter. Memory keeps the sum for the newest head, to which later snapshots are added. It also keeps
the sums at the ends of spans: sums for heads of the past start there, and so does the next request after a failure.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from analytics_service.market.share import Share
from analytics_service.market.shares import Lent, interest_held, interest_since
from analytics_service.store.connection import Store
from analytics_service.store.ledger import Head, PastHead, nth_completed, oldest_change

# Snapshots that a query sums: two weeks at a snapshot each minute, and some hundred thousand rows.
_SPAN = 20_000


@dataclass(frozen=True, slots=True)
class _Earned:
    """Interest that lenders of a market have earned up to its last snapshot (unix second), in denom units."""

    last: Lent
    last_at: int
    paid: int


@dataclass(frozen=True, slots=True)
class _HeadSums:
    """Interest that lenders of all markets ever listed have earned, as of a head."""

    head: Head
    markets: Mapping[str, _Earned]


class InterestPaid:
    """Interest paid to lenders as of heads of family markets. Concurrent requests share the reading.

    A query sums at most `span` snapshots.
    """

    def __init__(self, store: Store, span: int = _SPAN) -> None:
        self._store = store
        self._span = span
        self._newest: _HeadSums | None = None
        # A count of rewrites, any of which may change all sums, and the sums at ends of spans (unix seconds).
        self._spans: tuple[int, dict[int, Mapping[str, _Earned]]] = (0, {0: {}})
        self._renewing: Share[_HeadSums] = Share()
        self._summing: Share[Mapping[str, _Earned]] = Share()

    def read(self, head: Head) -> dict[str, int]:
        """Interest paid in the markets of a head's snapshot, in denom units, by asset id, in the order of ids.

        Busy when there is too much to sum in one request; the next request continues from there.
        """
        earned = self._summed(head) if isinstance(head, PastHead) else self._earned(head)
        listed = {asset_id: sums for asset_id, sums in earned.items() if sums.last_at == head.at}
        return {asset_id: listed[asset_id].paid for asset_id in sorted(listed)}

    def _earned(self, head: Head) -> Mapping[str, _Earned]:
        """The sums for a head: those of an earlier head plus the snapshots since, unless the past has changed.

        A head that has been followed by another since the request began is treated as a head of the past.
        """
        newest = self._newest
        if newest is None or head.follows(newest.head):
            self._newest = newest = self._renewing.get(head, partial(self._renewed, newest, head))
        return newest.markets if newest.head == head else self._summed(head)

    def _renewed(self, newest: _HeadSums | None, head: Head) -> _HeadSums:
        # There is at most one snapshot a second.
        if newest is not None and head.at - newest.head.at <= self._span:
            changed = oldest_change(self._store, newest.head, head)
            if changed is None or changed > newest.head.at:
                return _HeadSums(head, self._added(newest.markets, newest.head.at, head.at))
        return _HeadSums(head, self._summed(head))

    def _summed(self, head: Head) -> Mapping[str, _Earned]:
        """The sums for a head: the cached sums at the end of the span before, plus the snapshots since."""
        rewrites, sums = self._spans
        if rewrites != head.rewrites:
            _, sums = self._spans = (head.rewrites, {0: {}})
        begin = max(end for end in [*sums] if end <= head.at)
        while (end := self._end_of_span(begin, head.at)) is not None:
            span = partial(self._added, sums[begin], begin, end)
            sums[end] = self._summing.get((head.rewrites, end), span)
            begin = end
        return self._added(sums[begin], begin, head.at)

    def _end_of_span(self, begin: int, until: int) -> int | None:
        """The last instant of the span that begins after `begin`; None if the span does not end by `until`."""
        if until - begin < self._span:
            return None
        return nth_completed(self._store, "markets", self._span, begin, until)

    def _added(self, before: Mapping[str, _Earned], after: int, until: int) -> dict[str, _Earned]:
        """The sums `before`, plus the snapshots in (after, until], unix seconds."""
        markets = dict(before)
        for row in self._store.frame("interest_added", after=after, until=until).iter_rows(named=True):
            previous, first = markets.get(row["asset_id"]), _lent(row["first"])
            paid = previous.paid + interest_since(previous.last, first) if previous else interest_held(first)
            paid += int(row["added"]) + sum(interest_since(_lent(pair[:2]), _lent(pair[2:])) for pair in row["large"])
            markets[row["asset_id"]] = _Earned(_lent(row["last"]), row["last_at"], paid)
        return markets


def _lent(amounts: list[str]) -> Lent:
    principal, receipts = amounts
    return Lent(int(principal), int(receipts))
