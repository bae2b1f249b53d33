"""Every history there is. Routes, memory, warming, imports and the OpenAPI document follow from this table."""

from dataclasses import dataclass

from analytics_service.store.cells import cell_table


@dataclass(frozen=True, slots=True)
class Path:
    """Where a history is served below /api/v1, and what it is in a line."""

    path: str
    summary: str


@dataclass(frozen=True, slots=True)
class History:
    """A kind of history: its ledger family, its table with one row an observation, and the column of values.

    `by_asset` serves one series for each asset; `total`, where there is one, the single series over all assets, which
    has an empty asset id in the table. The cells of the table (store/cells.py) sum up its rows.
    """

    name: str
    family: str
    table: str
    value: str
    by_asset: Path
    total: Path | None = None

    @property
    def identifiers(self) -> dict[str, str]:
        """What the history queries call by parameter."""
        return {"table": self.table, "cells": cell_table(self.table), "value": self.value}


PRICES = History(
    name="prices",
    family="prices",
    table="price",
    value="price",
    by_asset=Path("/assets/price-history", "History of prices."),
)
LEND_RATES = History(
    name="lend rates",
    family="rates",
    table="lend_rate",
    value="apr",
    by_asset=Path("/markets/lend/rate-history", "History of lend APRs."),
)
BORROW_RATES = History(
    name="borrow rates",
    family="rates",
    table="borrow_rate",
    value="apr",
    by_asset=Path("/markets/borrow/rate-history", "History of borrow APRs."),
)
LOANS = History(
    name="loans",
    family="loans",
    table="loans_originated",
    value="usd",
    by_asset=Path(
        "/analytics/market/history/loans-originated/by-asset", "Value of all loans of each asset since its first."
    ),
    total=Path(
        "/analytics/market/history/loans-originated", "Value of all loans since the first, in USD of their time."
    ),
)
HISTORIES = (PRICES, LEND_RATES, BORROW_RATES, LOANS)
