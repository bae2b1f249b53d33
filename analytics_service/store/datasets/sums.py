"""Cumulative sums of loans, liquidations and flash loans, and how changes of events change them.

Jobs, imports of events and recomputations sum up from a second on: the last values by then, the events since, and the
values since that imports have brought or a source has stated.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated

import polars as pl

from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.queries import named_query
from analytics_service.errors import UserError
from analytics_service.market.decimals import ZERO, round_decimal, subtract
from analytics_service.market.event_changes import EventChanges, EventOrigin, StoredEvent
from analytics_service.market.events import Action, Leg, Totals
from analytics_service.market.instants import format_instant, from_unix, unix_second
from analytics_service.market.kinds import Count, Number, Usd
from analytics_service.market.sums import TOTAL, Decrease, Increment, Series, Sums, sums_over_time
from analytics_service.store.datasets.histories import FLASH_LOANS, LIQUIDATIONS, LOANS, History
from analytics_service.store.datasets.observations import KEY, NO_OBSERVATIONS
from analytics_service.store.ledger import last_snapshot_before, read_head
from analytics_service.store.rollups import lookback_start

# The history that sums the events of an action.
SUMMED: Mapping[Action, History] = {
    Action.BORROW: LOANS,
    Action.LIQUIDATE: LIQUIDATIONS,
    Action.BORROW_FLASH_LOAN: FLASH_LOANS,
}
_BY_NAME = {history.name: history for history in SUMMED.values()}
TOTALS: Sequence[Series] = [(name, TOTAL) for name in _BY_NAME]


@dataclass(frozen=True, slots=True)
class _SummedEvent:
    """An event that is summed: its unix second, its USD value (0 if unknown), and whether it comes from a file."""

    uuid: str
    action: Action
    asset_id: str
    second: int
    usd: Decimal
    of_file: bool = False

    @property
    def series(self) -> Sequence[Series]:
        """The series that sum the event."""
        return series_of(SUMMED[self.action], [self.asset_id])


@dataclass(frozen=True, slots=True)
class Loans:
    """USD value of all loans so far, each valued at its time; flash loans are separate."""

    total: Decimal
    by_asset: Mapping[str, Decimal]
    flash: Decimal = ZERO
    unpriced: Annotated[int, Count("Loans of unknown value, which the sums do not include")] = 0


@dataclass(frozen=True, slots=True)
class SumChanges:
    """Observations to add or replace, and keys of observations to delete."""

    added: pl.DataFrame
    removed: pl.DataFrame

    @property
    def is_empty(self) -> bool:
        return self.added.is_empty() and self.removed.is_empty()


def series_of(history: History, asset_ids: Iterable[str]) -> list[Series]:
    """The series of a history: the total, and a series for each asset if the history has them."""
    return [(history.name, asset_id) for asset_id in (TOTAL, *(asset_ids if history.by_asset else ()))]


def summed_seconds(changes: EventChanges) -> set[int]:
    """The unix seconds at which changed events change sums."""
    return {event.second for event in _summed([*changes.before, *changes.after])}


def source_sums(totals: Totals) -> Sums:
    """The totals reported by a source, if any."""
    stated: dict[Series, Decimal] = {}
    for history, of in ((LOANS, totals.loans), (LIQUIDATIONS, totals.liquidations)):
        if of:
            stated[history.name, TOTAL] = of.total
            stated |= {(history.name, asset_id): usd for asset_id, usd in of.by_asset.items()}
    if totals.flash_loans is not None:
        stated[FLASH_LOANS.name, TOTAL] = totals.flash_loans
    return stated


def read_last_sums(store: Store, at: int) -> Sums:
    """The last value of each series at or before a unix second, which must not be after the dataset's newest
    observation. A month of history costs one row."""
    rows = store.query("read_last_sums", (), histories=list(_BY_NAME), **lookback_start(at + 1))
    return {(name, asset_id): usd for name, asset_id, usd in rows.iter_rows()}


def unsettled_from(store: Store, first: int) -> int:
    """The unix second, at most `first`, before which all sums are stored."""
    head, snapshot = read_head(store, LOANS.dataset), last_snapshot_before(store, LOANS.dataset, first)
    start = first if snapshot is None else snapshot + 1
    return min(start, head.last_observed_at + 1) if head else 0


def read_loans(store: Store, at: int) -> Loans:
    """The loans as of a unix second, at most the dataset's newest observation; assets in the order of ids."""
    values = read_last_sums(store, at)
    by_asset = {asset_id: usd for (name, asset_id), usd in values.items() if name == LOANS.name}
    unpriced = sum(store.query("count_unpriced_loans", end=at + 1)["count"])
    return Loans(by_asset.pop(TOTAL, ZERO), by_asset, values.get((FLASH_LOANS.name, TOTAL), ZERO), unpriced)


def changed_sums(
    store: Store,
    start: int,
    changes: EventChanges | None = None,
    *,
    stated: Mapping[int, Sums] | None = None,
    ticks: Mapping[int, Iterable[Series]] | None = None,
) -> SumChanges:
    """Changes of the stored observations from a second on. UserError if a sum would decrease.

    `changes` are changes of stored events since. `stated` has values by second: events after a source's first
    statement count in the statements only. At `ticks`, series begin that have no value yet.
    """
    stated, due = stated or {}, defaultdict[int, set[Series]](set)
    for second, series in (ticks or {}).items():
        due[second].update(series)
    before = read_last_sums(store, start - 1) if start else {}
    stored: dict[tuple[Series, int], Decimal] = {}
    given: dict[int, dict[Series, Decimal]] = defaultdict(dict)
    spans: dict[str, list[int]] = defaultdict(list)
    parts = {"list_given_values": named_query("list_given_values", ())}
    # A statement at the last second before includes the events since.
    since = max(start - 1, 0)
    for name, asset_id, second, usd, is_given, is_stated in store.query(
        "list_sums_since", parts, histories=list(_BY_NAME), start=since
    ).iter_rows():
        key = name, asset_id
        if is_stated:
            spans[name].append(second)
        if is_given and second >= start:
            given[second][key] = usd
        elif second >= start:
            stored[key, second] = usd
            if not usd or (not asset_id and key in before):
                due[second].add(key)
    for second, values in stated.items():
        given[second].update(values)
        for name in {name for name, _ in values}:
            spans[name].append(second)
    changes = changes or EventChanges()
    without = {(event.second, event.uuid) for event in _summed(changes.before)}
    happened = {(event.second, event.uuid): event for event in _stored(store, start)}
    happened = {key: event for key, event in happened.items() if key not in without}
    happened |= {(event.second, event.uuid): event for event in _summed(changes.after)}
    additions = [
        Increment(second, event.series, event.usd)
        for (second, _), event in happened.items()
        if not _is_stated(event, spans[SUMMED[event.action].name])
    ]
    try:
        own = {(key, second): usd for key, second, usd in sums_over_time(before, additions, given, due)}
    except Decrease as fall:
        raise UserError(_describe_decrease(fall, stated)) from None
    changed = {key: usd for key, usd in own.items() if stored.get(key) != usd}
    changed |= {(key, second): usd for second, values in stated.items() for key, usd in values.items()}
    return SumChanges(_frame(changed), _frame(dict.fromkeys(stored.keys() - own.keys(), ZERO)).select(KEY))


def past_sums(store: Store, first: int, stated: Mapping[int, Sums], listed: Iterable[Series]) -> SumChanges:
    """The observations of snapshots before the dataset's newest, from the unix second `first` on: stated values, and a
    0 for listed series without a value by then. UserError if a sum would decrease."""
    by_now = read_last_sums(store, first)
    values = dict.fromkeys(((series, first) for series in listed if series not in by_now), ZERO)
    if any(stated.values()):
        try:
            list(sums_over_time(read_last_sums(store, first - 1), (), stated, {}))
        except Decrease as fall:
            raise UserError(_describe_decrease(fall, stated)) from None
    values |= {(key, second): usd for second, sums in stated.items() for key, usd in sums.items()}
    return SumChanges(_frame(values), _frame({}).select(KEY))


def _frame(values: Mapping[tuple[Series, int], Decimal]) -> pl.DataFrame:
    """Sums, by series and unix second, as observations to insert, without `version`."""
    rows = [(name, asset_id, second, Number.encode(usd)) for ((name, asset_id), second), usd in values.items()]
    return pl.DataFrame(rows, NO_OBSERVATIONS.schema, orient="row")


def _stored(store: Store, start: int) -> Iterator[_SummedEvent]:
    """Stored events that are summed, from a unix second on."""
    rows = store.query("list_summed_events", actions=list(SUMMED), start=start)
    for uuid, action, asset_id, second, usd, of_file in rows.iter_rows():
        yield _SummedEvent(uuid, Action(action), asset_id, second, Usd.encode(usd), of_file)


def _summed(events: Iterable[StoredEvent]) -> Iterator[_SummedEvent]:
    """Events that are summed. A liquidation counts with its repaid debt."""
    for each in events:
        event, of_file = each.event, each.origin is not EventOrigin.SOURCE
        if event.action in SUMMED and event.leg is not Leg.COLLATERAL:
            usd = Usd.encode(event.usd) if event.usd else ZERO
            yield _SummedEvent(event.uuid, event.action, event.asset_id, unix_second(event.at), usd, of_file)


def _is_stated(event: _SummedEvent, seconds: Sequence[int]) -> bool:
    """Whether the sums that a source states at `seconds` include an event: any event after the first of these, but
    earlier events only if the source itself reported them."""
    if not seconds or event.second > max(seconds):
        return False
    return event.second > min(seconds) or not event.of_file


def _describe_decrease(fall: Decrease, stated: Mapping[int, Sums]) -> str:
    (name, asset_id), at = fall.series, format_instant(from_unix(fall.second))
    slug, difference = _BY_NAME[name].slug, subtract(fall.usd, fall.less)
    never = f"{slug} of {asset_id or 'all assets'} must not decrease"
    if fall.series in stated.get(fall.second, {}):
        return (
            f"{never}: the source reports {round_decimal(fall.less):f} USD for {at}, {difference} less than the "
            f"{round_decimal(fall.usd):f} stored before. Import the earlier values again, lower by this difference, or "
            f"remove them with `analytics-service remove {slug}`."
        )
    return (
        f"{never}: it would be {round_decimal(fall.usd):f} USD before {at}, but an import has "
        f"{round_decimal(fall.less):f} then, {difference} less. Import values that are higher by this difference, or "
        f"remove them with `analytics-service remove {slug}`."
    )
