"""Lending events and the cumulative value of loans, in the store."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import polars as pl

from analytics_service.market.events import Action, Event, Leg
from analytics_service.market.values import ZERO
from analytics_service.store.columns import (
    AMOUNT,
    RATIO,
    TEXT,
    TIME,
    Columns,
    encoded,
    fields_of,
    quantize_ratio,
)
from analytics_service.store.connection import Store
from analytics_service.store.snapshot_table import TOTAL, SnapshotTable

_EVENT: Columns = {
    "at": TIME,
    "id": TEXT,
    "kind": TEXT,
    "asset_id": TEXT,
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
LOANS_ORIGINATED = "loans_originated"
_LOANS = SnapshotTable(LOANS_ORIGINATED, {"asset_id": TEXT, "usd": RATIO}, ("asset_id",))
_FLASH = SnapshotTable("flash_loan_volume", {"usd": RATIO})


@dataclass(frozen=True, slots=True)
class Loans:
    """USD value of all loans since the first one, each at the time of the loan; flash loans are counted separately."""

    total: Decimal = Decimal(0)
    by_asset: Mapping[str, Decimal] = field(default_factory=dict)
    flash: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True)
class Originated:
    """USD value of an asset's loans (or flash loans) after `since` (unix second), up to the next queried instant."""

    action: Action
    asset_id: str
    since: int
    usd: Decimal


def is_lending(event: Event) -> bool:
    """Whether an event is one of lending, which loans are the sums of."""
    return event.action in _KINDS and event.leg is not Leg.COLLATERAL


def lending_frame(events: Iterable[Event]) -> pl.DataFrame:
    """Lending events as a batch to insert, without `version`. One of unknown value is worth nothing."""
    rows = ({**fields_of(one), "kind": _KINDS[one.action], "usd": one.usd or ZERO} for one in events)
    return encoded(rows, _EVENT)


def loan_frames(loans: Loans) -> dict[str, pl.DataFrame]:
    """A snapshot's cumulative rows by table; there is always one for the total."""
    sums = {TOTAL: loans.total, **loans.by_asset}
    rows = ({"asset_id": asset_id, "usd": usd} for asset_id, usd in sums.items())
    return {_LOANS.name: _LOANS.frame(rows), _FLASH.name: _FLASH.frame([{"usd": loans.flash}])}


def read_loans(store: Store, at: int) -> Loans:
    """The cumulative loans of a snapshot (unix second of a head of family loans); assets in the order of ids."""
    return loans_of(store, at, {row["asset_id"]: row["usd"] for row in _LOANS.read(store, at)})


def loans_of(store: Store, at: int, sums: Mapping[str, Decimal]) -> Loans:
    """The loans of a snapshot whose sums by asset, in the order of ids, and in total are known already."""
    by_asset = dict(sums)
    flash = [row["usd"] for row in _FLASH.read(store, at)]
    return Loans(by_asset.pop(TOTAL, Decimal(0)), by_asset, *flash)


def read_originated(store: Store, instants: Sequence[int], until: int) -> list[Originated]:
    """Sums of the stored events after the first of the instants (ascending unix seconds) up to `until`, inclusive."""
    rows = store.frame("event_sums", instants=list(instants), after=instants[0], until=until)
    return [
        Originated(_ACTIONS[row["kind"]], row["asset_id"], row["since"], quantize_ratio(row["usd"]))
        for row in rows.iter_rows(named=True)
    ]
