"""The families of data that can be imported."""

from collections.abc import Sequence
from dataclasses import dataclass

from analytics_service.imports.forms import Form, Key


@dataclass(frozen=True, slots=True)
class Target:
    """A history table, its column of values, and the field of the files that fills it."""

    table: str
    column: str
    field: str


@dataclass(frozen=True, slots=True)
class Family:
    """A family of the ledger, the forms of its files, and the tables that they fill.

    Every row has a value for the first target. A row without a value for one of `zero_fields` counts as 0 when another
    row of the same asset has one.
    """

    name: str
    forms: Sequence[Form]
    targets: Sequence[Target]
    zero_fields: Sequence[str] = ()


_PRICE = {"price": None}
PRICES = Family(
    "prices",
    forms=(
        Form(Key.SYMBOL, {"key": "symbol", "time": "timestamp", "price": "USD_price"}, _PRICE),
        Form(Key.ID, {"key": "asset_id", "time": "ts", "price": "price"}, _PRICE),
    ),
    targets=(Target("price", "price", field="price"),),
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
    targets=(Target("lend_rate", "apr", field="lend"), Target("borrow_rate", "apr", field="borrow")),
    # An asset that could ever be borrowed has a borrow rate at all times.
    zero_fields=("borrow",),
)
