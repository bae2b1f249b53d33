"""Reads rows of events from files with the columns of the view `events`, and no others."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import polars as pl

from analytics_service.errors import UserError
from analytics_service.importing.asset_names import AssetNames
from analytics_service.importing.numbers import NO_VALUE
from analytics_service.importing.readers import RECIPES, SourceTable, open_table
from analytics_service.importing.rows import SHOWN
from analytics_service.importing.time_parsing import TimeRules, last_second, parse_times
from analytics_service.market.assets import Asset, parse_address
from analytics_service.market.decimals import EXACT
from analytics_service.market.events import Action, Event, Leg
from analytics_service.market.instants import format_instant, from_unix
from analytics_service.market.validation import validate

COLUMNS = (
    *("time", "action", "leg", "asset_id", "symbol", "address", "account_index", "units", "amount_denom"),
    *("price", "price_exact", "usd", "usd_exact", "contract", "destination", "tx_hash", "id"),
)
# A file needs a column of each group. The first column with a value counts.
_REQUIRED = (("time",), ("action",), ("address",), ("asset_id", "symbol"), ("amount_denom", "units"))
_ACTIONS = {action.value: action for action in Action}
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?")
# An amount below 2^256, with the most decimals that an asset may have, is shorter.
_DIGITS = 160


class Fault(Exception):
    """Why a row is rejected: a column, its value, and what to do."""

    def __init__(self, column: str, value: str, advice: str) -> None:
        super().__init__(column, value, advice)


@dataclass(slots=True)
class EventRow:
    """An event, and its line in a file."""

    table: SourceTable
    line: int
    event: Event


def storable(event: Event) -> Event:
    """The event. Fault if the store cannot hold one of its values."""
    for invalid in validate(event, Event):
        raise Fault(invalid.path, "", f"{invalid.problem.strip(': .')}; correct the row")
    return event


def open_events(path: Path, separator: str) -> SourceTable:
    """The table of a file. UserError names all missing columns, and all that events do not have."""
    table = open_table(path, separator)
    missing = [" or ".join(names) for names in _REQUIRED if not {*names} & {*table.columns}]
    others = [name for n, name in enumerate(table.columns) if name not in COLUMNS or name in table.columns[:n]]
    if missing or others:
        faults = [f"lacks the columns {', '.join(missing)}"] if missing else []
        faults += [f"has the unknown or repeated columns {', '.join(map(repr, others))}"] if others else []
        raise UserError(
            f"{path} {', and '.join(faults)}. Name columns as in the view events, each once: see {RECIPES}."
        )
    if "time" in table.rounded:
        raise table.refused(None, "time", None, "has 32-bit floats, in which times are rounded; write integers")
    return table


@dataclass(slots=True)
class EventReader:
    """Reads rows of events. `assets` are registered and listed assets by id; `at` is the present instant.

    `read`, `empty` and `rejected` count rows; empty rows are events of lending without an amount. `rejections` describe
    the first rejected rows. Without `skip_invalid`, the first invalid row raises UserError.
    """

    names: AssetNames
    assets: Mapping[str, Asset]
    at: datetime
    skip_invalid: bool
    read: int = 0
    empty: int = 0
    rejected: int = 0
    rejections: list[str] = field(default_factory=list)

    def rows(self, table: SourceTable, advance: Callable[[int], None]) -> Iterator[EventRow]:
        """The valid rows of a file, in order."""
        for batch, size in table.batches(table.columns):
            seconds = parse_times(batch["time"], TimeRules())["second"]
            texts = batch.select(_text(name) for name in table.columns).iter_rows(named=True)
            for line, second, row in zip(batch["line"], seconds, texts, strict=True):
                self.read += 1
                try:
                    event = self._event(row, second)
                except Fault as fault:
                    self.reject(table, line, fault)
                    continue
                if event is None:
                    self.empty += 1
                else:
                    yield EventRow(table, line, event)
            advance(size)

    def reject(self, table: SourceTable, line: int, fault: Fault) -> None:
        """Count an invalid row, or raise UserError for it."""
        refusal = table.refused(line, *fault.args)
        if not self.skip_invalid:
            raise refusal
        self.rejected += 1
        self.rejections += [str(refusal)] if len(self.rejections) < SHOWN else []

    def _event(self, row: Mapping[str, str], second: int | None) -> Event | None:
        """The event of a row; None for an event of lending without an amount. Fault for an invalid row."""
        if second is None or not 0 <= second <= last_second(self.at):
            latest = format_instant(self.at)
            advice = f"is not a time up to {latest} in ISO 8601 or unix seconds; write it as 2026-01-31T12:00:00Z"
            raise Fault("time", row["time"], advice)
        try:
            address = parse_address(row["address"])
        except ValueError as error:
            raise Fault("address", row["address"], f"{error}") from None
        action = _ACTIONS.get(row["action"])
        if action is None:
            raise Fault("action", row["action"], f"is not an action; write one of {', '.join(Action)}")
        asset = self._asset(row)
        event = Event(
            id=row.get("id", ""),
            action=action,
            asset_id=asset.id,
            address=address,
            at=from_unix(second),
            amount=_amount(row, asset),
            usd=_number(row, "usd_exact", "usd")[1],
            price=_number(row, "price_exact", "price")[1],
            account_index=_index(row.get("account_index", "")),
            contract=row.get("contract", ""),
            destination=row.get("destination") or None,
            tx_hash=row.get("tx_hash", ""),
            leg=_leg(row.get("leg", "")) if action is Action.LIQUIDATE else None,
        )
        return None if event.lacks_amount else storable(event)

    def _asset(self, row: Mapping[str, str]) -> Asset:
        column = _first(row, "asset_id", "symbol")
        asset_id, fault = self.names.named(row[column])
        if asset_id is None:
            raise Fault(column, row[column], fault)
        return self.assets[asset_id]


def _text(name: str) -> pl.Expr:
    """A column without surrounding spaces, empty where a value is missing."""
    text = pl.col(name).fill_null("").str.strip_chars()
    return pl.when(text.str.to_lowercase().is_in(NO_VALUE)).then(pl.lit("")).otherwise(text).alias(name)


def _first(row: Mapping[str, str], *columns: str) -> str:
    """The first of the columns with a value, or else the first that exists."""
    present = [name for name in columns if name in row] or [columns[0]]
    return next((name for name in present if row.get(name)), present[0])


def _leg(text: str) -> Leg:
    if text not in ("", *Leg):
        raise Fault("leg", text, f"is not a leg of a liquidation; write {' or '.join(Leg)}")
    return Leg(text or Leg.DEBT)


def _index(text: str) -> int | None:
    if not re.fullmatch("[0-9]{0,9}", text):
        raise Fault("account_index", text, "is not a whole number of at most nine digits")
    return int(text) if text else None


def _amount(row: Mapping[str, str], asset: Asset) -> int | None:
    """The amount in denom units."""
    column, number = _number(row, "amount_denom", "units")
    if number is None:
        return None
    if not asset.is_described:
        raise Fault(column, row[column], f"needs the decimals of {asset.symbol}, which are unknown; add --assets")
    decimals = 0 if column == "amount_denom" else asset.decimals_denom
    amount = EXACT.scaleb(number, decimals)
    if amount != EXACT.to_integral_value(amount):
        raise Fault(column, row[column], f"has more than the {decimals} decimals of {asset.symbol}")
    return int(amount)


def _number(row: Mapping[str, str], *columns: str) -> tuple[str, Decimal | None]:
    """The first of the columns with a number, and the number."""
    column = _first(row, *columns)
    text = row.get(column, "")
    if not text:
        return column, None
    if len(text) > _DIGITS or not _NUMBER.fullmatch(text):
        raise Fault(column, text, "is not a plain decimal without a sign; see the recipes")
    return column, Decimal(text)
