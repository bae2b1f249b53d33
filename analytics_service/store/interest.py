"""Interest paid to lenders so far, as a sum over all complete snapshots of markets (rule 8.8).

It is summed on reading, because a snapshot that is added to the past changes all later sums. So the order in which runs
complete does not matter. Memory keeps the sums at the ends of spans, and those for the newest head: the sums of later
heads start there, and so does the next request after a failure. All other snapshots of markets are later than these, or
count as a rewrite (rule 8.1).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from operator import itemgetter

from analytics_service.market.share import Share
from analytics_service.market.shares import Lent, interest_held, interest_since
from analytics_service.store.connection import Store
from analytics_service.store.ledger import Head, PastHead, nth_completed

# Snapshots that a query sums: two weeks at a snapshot each minute, and some hundred thousand rows.
_SPAN = 20_000


@dataclass(frozen=True, slots=True)
class _Earned:
    """Interest that lenders of a market have earned up to its last snapshot (unix second), in denom units."""

    last: Lent
    last_at: int
    paid: int


class InterestPaid:
    """Interest paid to lenders as of heads of family markets. A query sums at most `span` snapshots."""

    def __init__(self, store: Store, span: int = _SPAN) -> None:
        self._store = store
        self._span = span
        # A count of rewrites, any of which may change all sums, and the sums at some instants (unix seconds).
        self._known: tuple[int, dict[int, Mapping[str, _Earned]]] = (0, {0: {}})
        # The newest head of these instants, unless it ends a span.
        self._newest = 0
        self._summing: Share[Mapping[str, _Earned]] = Share()

    def read(self, head: Head) -> dict[str, int]:
        """Interest paid in the markets of a head's snapshot, in denom units, by asset id, in the order of ids.

        Busy when there is too much to sum in one request; the next request continues from there.
        """
        earned = self._summed(head)
        listed = {asset_id: sums for asset_id, sums in earned.items() if sums.last_at == head.at}
        return {asset_id: listed[asset_id].paid for asset_id in sorted(listed)}

    def _summed(self, head: Head) -> Mapping[str, _Earned]:
        """The sums for a head: those of the last known instant, plus the snapshots since."""
        rewrites, sums = self._known
        if rewrites != head.rewrites:
            (_, sums), self._newest = (head.rewrites, {0: {}}), 0
            self._known = (head.rewrites, sums)
        # Another thread may drop what was the newest head.
        begin, earned = max((known for known in [*sums.items()] if known[0] <= head.at), key=itemgetter(0))
        while (end := self._end_of_span(begin, head.at)) is not None:
            earned = sums[end] = self._until(head, earned, begin, end)
            begin = end
        if begin != head.at:
            earned = self._until(head, earned, begin, head.at)
        if not isinstance(head, PastHead) and head.at > max([*sums]):
            sums[head.at] = earned
            if self._newest:
                sums.pop(self._newest, None)
            self._newest = head.at
        return earned

    def _until(self, head: Head, before: Mapping[str, _Earned], begin: int, end: int) -> Mapping[str, _Earned]:
        return self._summing.get((head.rewrites, end), partial(self._added, before, begin, end))

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
