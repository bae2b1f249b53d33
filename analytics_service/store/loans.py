"""Events of lending, and what they come to over time."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

import polars as pl

from analytics_service.market.loans import Event, EventKind
from analytics_service.store.columns import (
    AMOUNT,
    COUNT,
    RATIO,
    TEXT,
    TIME,
    Column,
    Columns,
    encoded,
    fields_of,
    quantize_ratio,
    snapshot_frame,
)
from analytics_service.store.connection import Store

# The asset id under which the sum over all assets stands.
TOTAL = ""
_EVENT: Columns = {
    "at": TIME,
    "id": TEXT,
    "kind": Column(pl.String, str, EventKind),
    "asset_id": TEXT,
    "address": TEXT,
    "amount": AMOUNT,
    "usd": RATIO,
    "version": COUNT,
}
_LOANS: Columns = {"asset_id": TEXT, "usd": RATIO}
_FLASH: Columns = {"usd": RATIO}


@dataclass(frozen=True, slots=True)
class Loans:
    """USD of all loans since the protocol's first, at the time of each; flash loans are counted apart."""

    total: Decimal = Decimal(0)
    by_asset: Mapping[str, Decimal] = field(default_factory=dict)
    flash: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True)
class Originated:
    """USD of an asset's loans (or flash loans) after the instant `since` (unix second), up to the next one asked."""

    kind: EventKind
    asset_id: str
    since: int
    usd: Decimal


def event_frame(events: Iterable[Event], version: int) -> pl.DataFrame:
    """Events as a batch of rows."""
    return encoded(({**fields_of(event), "version": version} for event in events), _EVENT)


def loan_frames(loans: Loans, at: datetime, version: int) -> dict[str, pl.DataFrame]:
    """A snapshot's cumulative rows by table; the total always has one."""
    rows = [{"asset_id": TOTAL, "usd": loans.total}]
    rows += [{"asset_id": asset_id, "usd": usd} for asset_id, usd in loans.by_asset.items()]
    return {
        "loans_originated": snapshot_frame(rows, _LOANS, at, version),
        "flash_loan_volume": snapshot_frame([{"usd": loans.flash}], _FLASH, at, version),
    }


def read_loans(store: Store, at: int) -> Loans:
    """What all loans came to at a snapshot (unix second of a head of family loans); assets in the order of ids."""
    by_asset = dict(store.frame("loans_originated", at=at).iter_rows())
    flash = store.frame("flash_loan_volume", at=at)
    return Loans(
        total=by_asset.pop(TOTAL, Decimal(0)),
        by_asset=by_asset,
        flash=flash["usd"][0] if flash.height else Decimal(0),
    )


def read_originated(store: Store, instants: Sequence[int], until: int) -> list[Originated]:
    """Sums of the stored events after the first of the instants (ascending unix seconds) up to `until`, inclusive."""
    rows = store.frame("event_sums", instants=list(instants), after=instants[0], until=until)
    return [
        Originated(EventKind(row["kind"]), row["asset_id"], row["since"], quantize_ratio(row["usd"]))
        for row in rows.iter_rows(named=True)
    ]
