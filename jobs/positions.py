"""Accounts, stakes and wallets of all addresses, and their risk. Only changed items are written.

Changes are found by comparing with the store, never with memory: a digest of each address identifies its newest state.
A digest counts only if its commit is complete, because a commit that died may have left a later digest. All items are
compared for an address without such a digest, and in snapshots before the newest.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import chain, groupby

import polars as pl

from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.queries import MAX_ADDRESSES
from analytics_service.market.assets import link_receipts, origins_of
from analytics_service.market.book import Terms, Valuation, book_of
from analytics_service.market.instants import unix_second
from analytics_service.market.kinds import FOREVER
from analytics_service.market.positions import Position, RiskTotals
from analytics_service.market.receipts import lends_of
from analytics_service.market.risk import near_risk, risk_of
from analytics_service.market.validation import ValidationError
from analytics_service.store.batches import HashPartitions, RowBatches
from analytics_service.store.commits import Appended, Backdated, Commit, Overtaken
from analytics_service.store.datasets.markets import risk_metrics, risk_totals
from analytics_service.store.datasets.observations import observations_of
from analytics_service.store.datasets.positions import (
    CLOSED,
    ITEM,
    ITEM_KEY,
    NO_ITEMS,
    activity_of,
    activity_rows,
    borrowing_of,
    digests_of,
    number_items,
    read_borrowing_between,
    read_digests,
    read_gap,
    read_items,
    unnumber_items,
)
from analytics_service.store.ledger import last_snapshot_before, nth_snapshot, snapshot_versions
from jobs.snapshot import JobContext

# Items of backdated snapshots that are written together, in some twenty seconds: 100,000 accounts at five instants.
_MOST_ITEMS = 2_000_000
# The digest of an address without items.
_GONE = 0
_REPEATED = " comes more than once. Put all items of an address into one Position."


def collect(context: JobContext) -> Commit:
    """The last instant's snapshot; or, if the store has later snapshots, the backdated snapshots of the first instants.
    So if all instants are new, the last one is taken first, and the others then go before it together."""
    newest = last_snapshot_before(context.store, context.dataset, FOREVER)
    earlier = [at for at in context.instants if newest is not None and unix_second(at) < newest]
    return _backdated(context, earlier) if earlier else Commit([_newest(context, context.instants[-1])])


def _newest(context: JobContext, at: datetime) -> Appended:
    """The snapshot after all others."""
    read = partial(_read_items, context.store, unix_second(at))
    source_items = _SourceItems(context, at)
    builder = _SnapshotBuilder(context, at)
    digests = source_items.parts.divided(read_digests(context.store))
    for items, known in zip(source_items.items(read), digests, strict=True):
        changed = _changed(items, known)
        now = items.join(changed, on="address", how="semi")
        was = read(changed.filter("stored")["address"])
        builder.add(items, position_digest=changed.select("address", "digest"), position_change=_differences(was, now))
    return builder.snapshot()


def _read_items(store: Store, second: int, addresses: pl.Series) -> pl.DataFrame:
    """The open items of any number of addresses at a unix second."""
    starts = range(0, addresses.len(), MAX_ADDRESSES)
    chunks = (addresses.slice(start, MAX_ADDRESSES).to_list() for start in starts)
    return pl.concat([NO_ITEMS, *(read_items(store, chunk, second) for chunk in chunks)])


def _backdated(context: JobContext, instants: Sequence[datetime]) -> Commit:
    """Snapshots before the newest, from the first instant until they have too many items."""
    store, dataset, seconds = context.store, context.dataset, [*map(unix_second, instants)]
    first = last_snapshot_before(store, dataset, seconds[0]) or 0
    last = nth_snapshot(store, dataset, 1, seconds[-1] + 1, FOREVER)
    if last is None:
        raise Overtaken("Another process is removing positions.")
    versions = snapshot_versions(store, dataset, first, last + 1)
    ends = [0, *sorted(versions)]
    snapshots: list[Appended] = []
    kept: list[pl.DataFrame] = []
    room = _MOST_ITEMS
    for index, gap in groupby(instants, lambda at: bisect_right(ends, unix_second(at))):
        added, rows, room = _fill(context, gap, ends[index - 1], ends[index], room)
        snapshots += added
        kept.append(rows.with_columns(version=pl.lit(versions[ends[index]], pl.UInt64)))
        if room <= 0:
            break
    return Commit(snapshots, backdated=Backdated(first, last + 1, versions, {"position_change": pl.concat(kept)}))


def _fill(
    context: JobContext, instants: Iterable[datetime], start: int, end: int, room: int
) -> tuple[list[Appended], pl.DataFrame, int]:
    """Snapshots between the complete snapshots `start` and `end` (unix seconds) while there is room for their items;
    the rows that keep the later snapshot unchanged; and the remaining room.

    Rows are whole values. So each item that differs from before and has no row at `end` gets a row there with its old
    value.
    """
    before, written = read_gap(context.store, start, end)
    now, snapshots = before, []
    for at in instants:
        was, now = now, pl.concat([*_SourceItems(context, at).items(partial(_items_of, now))])
        builder = _SnapshotBuilder(context, at)
        builder.add(now, position_change=_differences(was, now))
        snapshots.append(builder.snapshot())
        room -= now.height
        if room <= 0:
            break
    back = _differences(now, before).join(written, on=ITEM_KEY, how="anti")
    return snapshots, back.with_columns(observed_at=pl.lit(end, pl.UInt32)), room


class _SourceItems:
    """The source's items of all addresses, in parts of whole addresses."""

    def __init__(self, context: JobContext, at: datetime) -> None:
        self._context = context
        self._at = at
        self._kept: set[str] = set()
        self.parts = HashPartitions(self._frames(context.source.positions(at)))

    def _frames(self, positions: Iterable[Position]) -> Iterator[pl.DataFrame]:
        invalid: list[Position] = []
        context, at = self._context, self._at
        assets, redefined = context.valued_assets(at)
        origins = origins_of(link_receipts(assets).values())
        lends = partial(lends_of, origins=origins, markets=lambda: context.markets_by_id(at, redefined))
        for items in unnumber_items(positions, invalid, lends):
            yield items
            for position in invalid:
                faults = self._context.rejections.validate("positions", position, Position)
                if all(fault.path != "address" for fault in faults):
                    self._kept.add(position.address.lower())
            invalid.clear()

    def items(self, stored: Callable[[pl.Series], pl.DataFrame]) -> Iterator[pl.DataFrame]:
        """All items, part by part. An address that comes twice or has an invalid item keeps its `stored` items: a
        missing or doubled item would change its health."""
        kept = pl.DataFrame({"address": sorted(self._kept)}, schema={"address": pl.String})
        for batches, own in zip(self.parts, self.parts.divided(kept), strict=True):
            items, repeated = number_items(batches)
            for address, times in repeated.items():
                self._context.rejections.add(
                    "positions", Position(address), ValidationError("address", times, _REPEATED)
                )
            addresses = pl.Series([*{*own["address"], *repeated}], dtype=pl.String)
            if addresses.len():
                items = pl.concat([items.filter(~pl.col("address").is_in(addresses.implode())), stored(addresses)])
            yield items


def _items_of(items: pl.DataFrame, addresses: pl.Series) -> pl.DataFrame:
    return items.filter(pl.col("address").is_in(addresses.implode()))


class _SnapshotBuilder:
    """Builds a snapshot from parts of whole addresses."""

    def __init__(self, context: JobContext, at: datetime) -> None:
        self._context = context
        self._at = at
        self._counts: list[Mapping[str, int]] = []
        self._borrowing = RowBatches()
        self._changes: defaultdict[str, RowBatches] = defaultdict(RowBatches)

    def add(self, items: pl.DataFrame, **changes: pl.DataFrame) -> None:
        """Add the items of a part, and its changed rows by table."""
        self._counts.append(activity_of(items))
        self._borrowing.add(borrowing_of(items))
        second = pl.lit(unix_second(self._at), pl.UInt32)
        for table, rows in changes.items():
            self._changes[table].add(rows.with_columns(observed_at=second))

    def snapshot(self) -> Appended:
        context, at = self._context, self._at
        reported = context.source.activity(at)
        # A source that reports totals may have only some positions, whose risk is not the risk of all.
        observations = stated_risk(context, at) if reported else risk_at(context, at, self._borrowing)
        return Appended(at, observations, activity_rows(self._counts, reported), changes=self._changes)


def recompute(context: JobContext) -> Commit:
    """The risk at complete snapshots, from the first snapshot's stored positions and their later changes."""
    seconds, changes = [unix_second(at) for at in context.instants], RowBatches()
    for rows in read_borrowing_between(context.store, seconds[0], seconds[-1] + 1):
        changes.add(rows)
    return Commit([Appended(at, risk_at(context, at, _AsOf(changes, unix_second(at)))) for at in context.instants])


@dataclass(frozen=True, slots=True)
class _AsOf:
    """The items of borrow accounts at a unix second, in parts of whole addresses, made from changes."""

    changes: RowBatches
    second: int

    def __iter__(self) -> Iterator[pl.DataFrame]:
        start, end = pl.col("observed_at"), pl.col("until")
        for rows in self.changes:
            yield borrowing_of(rows.filter(start <= self.second, end.is_null() | (end > self.second)))


def risk_at(context: JobContext, at: datetime, parts: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Observations of the risk of all accounts at the source's prices, from the items of borrow accounts in parts of
    whole addresses. The risk is unknown if a lost price hides accounts with debt (rule 6.8, health bounds). SourceError
    if there are debts, but no markets or no prices."""
    source, has_debts = context.source, any("debt" in items["kind"] for items in parts)
    assets, redefined = context.valued_assets(at)
    markets = context.markets_by_id(at, redefined) if has_debts else {}
    terms = Terms(link_receipts(assets), markets, source.config(at), source.ptoken(at))
    prices = context.known_prices(at, {*markets, terms.ptoken.asset_id} & assets.keys()) if has_debts else {}
    near = chain([borrowing_of(NO_ITEMS)], (near_risk(items, terms, prices) for items in parts))
    valuation = Valuation(book_of(near, markets), terms, prices)
    totals = RiskTotals() if valuation.hides_debtors else risk_totals(risk_of(valuation))
    return observations_of(risk_metrics(totals), at)


def stated_risk(context: JobContext, at: datetime) -> pl.DataFrame:
    """Observations of the risk of all accounts, as reported by the source."""
    return observations_of(risk_metrics(context.source.risk(at)), at)


def _changed(items: pl.DataFrame, stored: pl.DataFrame) -> pl.DataFrame:
    """Addresses whose stored digest differs or does not count, with columns address, digest and stored.

    `digest` is new, _GONE for an address without items. `stored` says whether the store has a digest; without one, it
    has no items of the address either.
    """
    was = pl.when(pl.col("complete") == 1).then("digest").alias("was")
    previous = stored.select("address", was, stored=pl.lit(True))
    both = digests_of(items).join(previous, on="address", how="full", coalesce=True)
    return (
        both.with_columns(pl.col("digest").fill_null(_GONE))
        .filter(pl.col("digest").ne_missing(pl.col("was")))
        .select("address", "digest", pl.col("stored").fill_null(False))
        .sort("address")
    )


def _differences(was: pl.DataFrame, now: pl.DataFrame) -> pl.DataFrame:
    """New and changed items, and a closed item for each item that is gone."""
    changed = now.join(was, on=ITEM, how="anti", nulls_equal=True).with_columns(closed=pl.lit(False))
    gone = was.join(now, on=ITEM_KEY, how="anti").with_columns(**CLOSED, closed=pl.lit(True))
    return pl.concat([changed, gone]).sort(ITEM_KEY)
