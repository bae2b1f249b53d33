"""The families of data that can be imported."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from analytics_service.imports.forms import Form, Key
from analytics_service.store import histories
from analytics_service.store.histories import History


@dataclass(frozen=True, slots=True)
class Family:
    """A family of the ledger, the forms of its files, and the histories that they fill, by field.

    Every row has a value for the first field. A missing value for a field in `zero_fields` counts as 0 if another row
    of the same asset has a value, in the import or in the store.
    """

    name: str
    forms: Sequence[Form]
    histories: Mapping[str, History]
    zero_fields: Sequence[str] = ()

    def observations(self, rows: pl.DataFrame) -> dict[str, int]:
        """The number of observations in merged rows for each history, by name."""
        return {history.name: rows[field].count() for field, history in self.histories.items()}


_PRICE = {"price": None}
PRICES = Family(
    "prices",
    forms=(
        Form(Key.SYMBOL, {"key": "symbol", "time": "timestamp", "price": "USD_price"}, _PRICE),
        Form(Key.ID, {"key": "asset_id", "time": "ts", "price": "price"}, _PRICE),
    ),
    histories={"price": histories.PRICES},
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
            extra_columns=True,
        ),
    ),
    histories={"lend": histories.LEND_RATES, "borrow": histories.BORROW_RATES},
    # An asset that could ever be borrowed has a borrow rate at all times.
    zero_fields=("borrow",),
)
