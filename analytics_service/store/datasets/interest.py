"""Interest paid to lenders since the first complete snapshot of markets (rule 8.8, independent snapshots).

It is summed on reading, because a snapshot that is added to the past changes all later sums. So the order in which
commits complete does not matter. Memory keeps the sums at the ends of spans and at the newest head. Sums of later
heads, and the next request after a failure, start there: a snapshot before these counts as a rewrite (rule 8.1, late
data).
"""

from collections.abc import Mapping
from functools import partial
from operator import itemgetter

from analytics_service.clickhouse.connection import Store
from analytics_service.concurrency import SingleFlight
from analytics_service.market.rates import Earned
from analytics_service.store.ledger import Head, PastHead, change_counts, nth_snapshot

# Snapshots of one query: two weeks of one each minute, and some hundred thousand rows.
_SPAN = 20_000


# The interest of each market, by asset id, and the unix second of its last snapshot.
_Sums = Mapping[str, tuple[Earned, int]]


class InterestPaid:
    """Interest paid to lenders as of heads of dataset markets. A query sums at most `span` snapshots."""

    def __init__(self, store: Store, span: int = _SPAN) -> None:
        self._store = store
        self._span = span
        # Counts of rewrites and losses, which may change all sums, and the sums before unix seconds.
        self._known: tuple[tuple[int, int], dict[int, _Sums]] = ((0, 0), {0: {}})
        # The key of the newest head's sums, unless it ends a span.
        self._newest = 0
        self._summing: SingleFlight[_Sums] = SingleFlight()

    def read(self, head: Head) -> dict[str, int]:
        """Interest paid in the markets of a head's snapshot, in denom units, by asset id, in the order of ids.

        Busy if one request cannot sum all snapshots; the next request continues from there.
        """
        earned = self._summed(head)
        return {asset_id: sum_.units for asset_id, (sum_, last_at) in sorted(earned.items()) if last_at == head.at}

    def _summed(self, head: Head) -> _Sums:
        """The sums for a head: the last known sums, plus the snapshots since."""
        until = head.at + 1
        changes, sums = self._known
        if changes != change_counts(head):
            (_, sums), self._newest = (change_counts(head), {0: {}}), 0
            self._known = (change_counts(head), sums)
        # Another thread may drop the sums of the previous head meanwhile.
        begin, earned = max((known for known in [*sums.items()] if known[0] <= until), key=itemgetter(0))
        while (end := self._end_of_span(begin, until)) is not None:
            earned = sums[end] = self._until(head, earned, begin, end)
            begin = end
        if begin != until:
            earned = self._until(head, earned, begin, until)
        if not isinstance(head, PastHead) and until > max([*sums]):
            sums[until] = earned
            if self._newest:
                sums.pop(self._newest, None)
            self._newest = until
        return earned

    def _until(self, head: Head, before: _Sums, begin: int, end: int) -> _Sums:
        return self._summing.get((change_counts(head), end), partial(self._added, before, begin, end))

    def _end_of_span(self, start: int, end: int) -> int | None:
        """The end of the span from `start`, just after its last snapshot; None if that is not before `end`."""
        if end - start < self._span:
            return None
        last = nth_snapshot(self._store, "markets", self._span, start, end)
        return None if last is None else last + 1

    def _added(self, before: _Sums, start: int, end: int) -> _Sums:
        """The sums `before`, plus the snapshots in [start, end), unix seconds."""
        markets = dict(before)
        rows = self._store.query("read_lent_amounts", start=start, end=end)
        for asset_id, last_at, principals, receipts in rows.iter_rows():
            earned, _ = markets.get(asset_id, (Earned(), 0))
            markets[asset_id] = earned.after(zip(map(int, principals), map(int, receipts), strict=True)), last_at
        return markets
