"""Lending events and the cumulative values of loans and liquidations, in the store."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import polars as pl

from analytics_service.market.events import Action, Event, Leg
from analytics_service.market.values import ZERO
from analytics_service.store.columns import (
    AMOUNT,
    ASSET_ID,
    RATIO,
    TEXT,
    TIME,
    Columns,
    encoded,
    fields_of,
    quantize_ratio,
)
from analytics_service.store.connection import Store
from analytics_service.store.retention import kept_from
from analytics_service.store.snapshot_table import TOTAL, SnapshotRows, SnapshotTable

_EVENT: Columns = {
    "at": TIME,
    "id": TEXT,
    "kind": TEXT,
    "asset_id": ASSET_ID,
    "address": TEXT,
    "amount": AMOUNT,
    "usd": RATIO,
}
# Lending events by the words of column `kind`. Of a liquidation, that is the debt repaid.
_KINDS = {
    Action.BORROW: "borrow",
    Action.RETURN: "repay",
    Action.LEND: "lend",
    Action.REDEEM: "redeem",
    Action.BORROW_FLASH_LOAN: "flash_loan",
    Action.LIQUIDATE: "liquidation",
}
_ACTIONS = {kind: action for action, kind in _KINDS.items()}
_BY_ASSET: Columns = {"asset_id": TEXT, "usd": RATIO}
_LOANS = SnapshotTable("loans_originated", _BY_ASSET, ("asset_id",))
_LIQUIDATIONS = SnapshotTable("liquidations", _BY_ASSET, ("asset_id",))
_FLASH = SnapshotTable("flash_loan_volume", {"usd": RATIO})
# The actions whose events are summed up by asset, and the tables of these sums. Flash loans have only a total.
SUMMED_BY_ASSET = {Action.BORROW: _LOANS, Action.LIQUIDATE: _LIQUIDATIONS}
SUMMED = {**SUMMED_BY_ASSET, Action.BORROW_FLASH_LOAN: _FLASH}

# USD value of all events of each action in SUMMED since the first one, each at its time: by asset id, and of all assets
# under TOTAL.
Sums = Mapping[Action, Mapping[str, Decimal]]


@dataclass(frozen=True, slots=True)
class Loans:
    """USD value of all loans since the first one, each at the time of the loan; flash loans are counted separately."""

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


def is_lending(event: Event) -> bool:
    """Whether an event is one of lending, some of which are summed up."""
    return event.action in _KINDS and event.leg is not Leg.COLLATERAL


def lending_frame(events: Iterable[Event]) -> pl.DataFrame:
    """Lending events as a batch to insert, without `version`. One of unknown value is worth nothing."""
    rows = ({**fields_of(one), "kind": _KINDS[one.action], "usd": one.usd or ZERO} for one in events)
    return encoded(rows, _EVENT)


def sum_rows(sums: Sums) -> SnapshotRows:
    """A snapshot's cumulative rows; there is always one for the total."""
    return {
        table: [{"asset_id": asset_id, "usd": usd} for asset_id, usd in sums[action].items()]
        for action, table in SUMMED.items()
    }


def read_sums(store: Store, at: int) -> Sums | None:
    """The sums of a snapshot (unix second).

    None where not all of them are stored: there is no such snapshot, its rows are not kept (rule 8.14), or an earlier
    version took it, without liquidations.
    """
    sums = {
        action: {row.get("asset_id", TOTAL): row["usd"] for row in table.read(store, at)}
        for action, table in SUMMED.items()
    }
    return sums if all(sums.values()) else None


def snapshots_without_liquidations(store: Store, start: int, end: int) -> set[int]:
    """Complete snapshots (unix seconds) in [start, end] without liquidations, which an earlier version took.

    Those whose single observations are not kept are left out, since nothing can be added to them (rule 8.14).
    """
    found = store.frame("snapshots_without_liquidations", start=start, end=end)["at"].to_list()
    # Read after the snapshots, so that rows that are dropped in between are not taken for missing.
    kept = max(kept_from(store, table.name) for table in SUMMED_BY_ASSET.values())
    return {at for at in found if at >= kept}


def read_loans(store: Store, at: int) -> Loans:
    """The cumulative loans of a snapshot (unix second of a head of family loans); assets in the order of ids."""
    return loans_of(store, at, {row["asset_id"]: row["usd"] for row in _LOANS.read(store, at)})


def loans_of(store: Store, at: int, sums: Mapping[str, Decimal]) -> Loans:
    """The loans of a snapshot whose sums by asset, in the order of ids, and in total are known already."""
    by_asset = dict(sums)
    flash = [row["usd"] for row in _FLASH.read(store, at)]
    return Loans(by_asset.pop(TOTAL, ZERO), by_asset, *flash)


def read_event_sums(store: Store, instants: Sequence[int], until: int) -> list[EventSum]:
    """Sums of the stored events after the first of the instants (ascending unix seconds) up to `until`, inclusive."""
    kinds = [_KINDS[action] for action in SUMMED]
    rows = store.frame("event_sums", kinds=kinds, instants=list(instants), after=instants[0], until=until)
    return [
        EventSum(_ACTIONS[row["kind"]], row["asset_id"], row["since"], quantize_ratio(row["usd"]))
        for row in rows.iter_rows(named=True)
    ]
