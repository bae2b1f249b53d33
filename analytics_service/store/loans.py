"""Lending events and the cumulative values of loans, liquidations and flash loans, in the store."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import polars as pl

from analytics_service.market.events import Action, Event, Leg
from analytics_service.market.fields import row_of
from analytics_service.market.instants import instant, shown
from analytics_service.market.kinds import Amount, AssetId, Text, Time, Usd
from analytics_service.market.values import EXACT, ZERO, less, rounded, total
from analytics_service.store.columns import Columns, SnapshotRows, SnapshotTable, encoded
from analytics_service.store.connection import Store
from analytics_service.store.histories import LIQUIDATIONS, LOANS, History
from analytics_service.store.observations import SECONDS_AT_ONCE, TOTAL, Values, made_from_events, read_values

EVENT: Columns = {
    "at": Time("Instant of the event, rounded up to whole seconds"),
    "id": Text("Unique id of the event"),
    "kind": Text("What happened: borrow, repay, lend, redeem, flash_loan or liquidation"),
    "asset_id": AssetId("Asset id"),
    "address": Text("Address that acted, or that was liquidated"),
    "amount": Amount("Amount in denom units of the asset"),
    "usd": Usd("USD value of the amount at the time of the event"),
}
# Values of column `kind` by action. Of a liquidation, the event is the repaid debt.
_KINDS = {
    Action.BORROW: "borrow",
    Action.RETURN: "repay",
    Action.LEND: "lend",
    Action.REDEEM: "redeem",
    Action.BORROW_FLASH_LOAN: "flash_loan",
    Action.LIQUIDATE: "liquidation",
}
_ACTIONS = {kind: action for action, kind in _KINDS.items()}
_FLASH = SnapshotTable(
    "flash_loan_volume", "loans", {"usd": Usd("USD value of all flash loans so far, each at the time of the loan")}
)
# Actions whose events are summed by asset, and the histories of the sums. Flash loans have only a total.
SUMMED_BY_ASSET = {Action.BORROW: LOANS, Action.LIQUIDATE: LIQUIDATIONS}
SUMMED = (*SUMMED_BY_ASSET, Action.BORROW_FLASH_LOAN)

# USD value of all events so far of each action in SUMMED, each at its time: by asset id, and of all assets under TOTAL.
Sums = Mapping[Action, Mapping[str, Decimal]]


@dataclass(frozen=True, slots=True)
class Loans:
    """USD value of all loans so far, each at the time of the loan; flash loans are counted separately."""

    total: Decimal
    by_asset: Mapping[str, Decimal]
    flash: Decimal = ZERO


@dataclass(frozen=True, slots=True)
class EventSum:
    """USD value of an asset's events of an action after `since` (unix second), up to the next queried instant."""

    action: Action
    asset_id: str
    since: int
    usd: Decimal


@dataclass(frozen=True, slots=True)
class ImportedSum:
    """The last value of a series that imports have brought in an interval after `since` (unix second), at `second`, and
    the least of the interval. Sums go on from the last."""

    action: Action
    asset_id: str
    since: int
    second: int
    usd: Decimal
    least: Decimal


@dataclass(frozen=True, slots=True)
class SummedEvent:
    """An event that is summed, at a unix second, and its USD value, 0 if that is unknown."""

    id: str
    action: Action
    asset_id: str
    second: int
    usd: Decimal


def kind_of(history: History) -> str:
    """The kind of the events that a history sums up."""
    return next(_KINDS[action] for action, summed in SUMMED_BY_ASSET.items() if summed is history)


def is_lending(event: Event) -> bool:
    """Whether an event belongs to lending. Some lending events are summed."""
    return event.action in _KINDS and event.leg is not Leg.COLLATERAL


def lending_frame(events: Iterable[Event]) -> pl.DataFrame:
    """Lending events as a batch to insert, without `version`. Events of unknown value count as 0 USD."""
    rows = ({**row_of(event), "kind": _KINDS[event.action], "usd": event.usd or ZERO} for event in events)
    return encoded(rows, EVENT)


def sums_by_asset(sums: Sums) -> Values:
    """A snapshot's cumulative values, always including the total."""
    return {history: sums[action] for action, history in SUMMED_BY_ASSET.items()}


def flash_rows(sums: Sums) -> SnapshotRows:
    """A snapshot's row of flash loans."""
    return {_FLASH: [{"usd": sums[Action.BORROW_FLASH_LOAN][TOTAL]}]}


def flash_frame(usd: Decimal, at: int) -> pl.DataFrame:
    """The row of flash loans of a snapshot (unix second) as a batch to insert, without `version`."""
    return _FLASH.frame([{"usd": usd}]).with_columns(pl.lit(at, pl.UInt32).alias("observed_at"))


def read_sums(store: Store, at: int) -> Sums:
    """The sums of a complete snapshot (unix second)."""
    values = read_values(store, list(SUMMED_BY_ASSET.values()), at)
    by_asset = {action: values[history] for action, history in SUMMED_BY_ASSET.items()}
    return {**by_asset, Action.BORROW_FLASH_LOAN: {TOTAL: _read_flash(store, at)}}


def read_loans(store: Store, at: int) -> Loans:
    """The cumulative loans of a snapshot (unix second of a head of family loans); assets in the order of ids."""
    by_asset = read_values(store, [LOANS], at)[LOANS]
    return Loans(by_asset.pop(TOTAL, ZERO), by_asset, _read_flash(store, at))


def _read_flash(store: Store, at: int) -> Decimal:
    return next((row["usd"] for row in _FLASH.read(store, at)), ZERO)


def read_event_sums(store: Store, instants: Sequence[int], until: int) -> list[EventSum]:
    """Sums of the stored events after the first of the instants (ascending unix seconds) up to `until`, inclusive."""
    kinds = [_KINDS[action] for action in SUMMED]
    sums = []
    for start in range(0, len(instants), SECONDS_AT_ONCE):
        batch, following = instants[start : start + SECONDS_AT_ONCE], instants[start + SECONDS_AT_ONCE :][:1]
        end = min([until, *following])
        rows = store.frame("event_sums", kinds=kinds, instants=list(batch), after=batch[0], until=end)
        sums += [
            EventSum(_ACTIONS[row["kind"]], row["asset_id"], row["since"], Usd.encode(row["usd"]))
            for row in rows.iter_rows(named=True)
        ]
    return sums


def read_imported_sums(store: Store, instants: Sequence[int], until: int) -> list[ImportedSum]:
    """The last imported value of each series in each interval between instants (ascending unix seconds), the last of
    which ends at `until`, inclusive."""
    actions = {history.name: action for action, history in SUMMED_BY_ASSET.items()}
    seconds = list(instants)
    bound: dict[str, object] = {"histories": list(actions), "instants": seconds, "after": seconds[0], "until": until}
    rows = store.frame("imported_sums", made_from_events(), **bound)
    return [ImportedSum(actions[history], *values) for history, *values in rows.iter_rows()]


def read_lending_since(store: Store, since: int) -> list[SummedEvent]:
    """The stored events that are summed, at or after a unix second, in the order of time."""
    rows = store.frame("events_since", kinds=[_KINDS[action] for action in SUMMED], since=since)
    return [
        SummedEvent(row["id"], _ACTIONS[row["kind"]], row["asset_id"], row["second"], Usd.encode(row["usd"]))
        for row in rows.iter_rows(named=True)
    ]


def plus(
    sums: Sums, added: Iterable[EventSum], imported: Iterable[ImportedSum] = (), listed: Iterable[str] = ()
) -> Sums:
    """Sums with `added` values, which go on from `imported` ones, and with zeros for listed assets that have none."""
    zeros = {action: {TOTAL: ZERO} for action in SUMMED}
    zeros |= {action: dict.fromkeys((TOTAL, *listed), ZERO) for action in SUMMED_BY_ASSET}
    totals = {action: {**zeros[action], **sums.get(action, {})} for action in SUMMED}
    begun: dict[tuple[Action, str], int] = {}
    for value in imported:
        totals[value.action][value.asset_id] = value.usd
        begun[value.action, value.asset_id] = value.second
    for event_sum in added:
        by_asset = totals[event_sum.action]
        for asset_id in (TOTAL, event_sum.asset_id) if event_sum.action in SUMMED_BY_ASSET else (TOTAL,):
            if event_sum.since >= begun.get((event_sum.action, asset_id), 0):
                by_asset[asset_id] = EXACT.add(by_asset.get(asset_id, ZERO), event_sum.usd)
    for action in SUMMED_BY_ASSET:
        totals[action][TOTAL] = total_of(totals[action])
    return totals


def total_of(by_asset: Mapping[str, Decimal]) -> Decimal:
    """The total, or the sum over assets if that is more, because imports brought values of assets only."""
    return max(by_asset[TOTAL], total(usd for asset_id, usd in by_asset.items() if asset_id))


def above_imported(action: Action, asset_id: str, usd: Decimal, imported: Decimal, second: int) -> str:
    """Why a sum before an imported value (unix second) cannot be stored, and what to do."""
    return (
        f"{named_sum(action, asset_id)} never falls: it would be {rounded(usd):f} USD before {shown(instant(second))}, "
        f"and an import has {rounded(imported):f} then, {less(usd, imported)} less. Import values that are higher by "
        f"that offset, or take them out with `analytics-service remove {SUMMED_BY_ASSET[action].slug}`."
    )


def named_sum(action: Action, asset_id: str) -> str:
    """A series of sums, as people call it."""
    return f"{SUMMED_BY_ASSET[action].slug} of {asset_id or 'all assets'}"
