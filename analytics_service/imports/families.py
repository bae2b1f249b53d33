"""The families of data that can be imported."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from analytics_service.history import catalogue
from analytics_service.history.catalogue import History
from analytics_service.imports.forms import Form, Key


@dataclass(frozen=True, slots=True)
class Family:
    """A family of the ledger, the forms of its files, and the histories that they fill, by the field that does.

    Every row has a value for the first of them. A row without a value for one of `zero_fields` counts as 0 when another
    row of the same asset has one, in the import or in the store.
    """

    name: str
    forms: Sequence[Form]
    histories: Mapping[str, History]
    zero_fields: Sequence[str] = ()

    @property
    def tables(self) -> list[str]:
        """The tables of the histories."""
        return [history.table for history in self.histories.values()]

    def observations(self, rows: pl.DataFrame) -> dict[str, int]:
        """How many observations merged rows have for each of the tables."""
        return {history.table: rows[field].count() for field, history in self.histories.items()}


_PRICE = {"price": None}
PRICES = Family(
    "prices",
    forms=(
        Form(Key.SYMBOL, {"key": "symbol", "time": "timestamp", "price": "USD_price"}, _PRICE),
        Form(Key.ID, {"key": "asset_id", "time": "ts", "price": "price"}, _PRICE),
    ),
    histories={"price": catalogue.PRICES},
)
RATES = Family(
    "rates",
    forms=(
        Form(
            Key.ADDRESS,
            {
                "key": "asset_address",
                "time": "timestamp",
                "symbol": "symbol",
                "decimals": "decimals",
                "enabled": "borrowing_enabled",
                "lend": "current_liquidity_rate",
                "borrow": "current_variable_borrow_rate",
            },
            {"lend": 100, "borrow": 100},
            flags={"borrow": "enabled"},
            more=True,
        ),
    ),
    histories={"lend": catalogue.LEND_RATES, "borrow": catalogue.BORROW_RATES},
    # An asset that could ever be borrowed has a borrow rate at all times.
    zero_fields=("borrow",),
)
