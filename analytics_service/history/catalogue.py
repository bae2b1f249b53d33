"""Every history there is. Routes, memory, warming, imports and the OpenAPI document follow from this table."""

from dataclasses import dataclass

from analytics_service.store.cells import cell_table


@dataclass(frozen=True, slots=True)
class Path:
    """The path of a history below /api/v1, and a one-line description."""

    path: str
    summary: str


@dataclass(frozen=True, slots=True)
class History:
    """A kind of history: its ledger family, its own table with one row an observation, and the column of values.

    A history has a path or two: `by_asset` serves one series for each asset, `total` the single series over all assets,
    which has an empty asset id in the table. The cells of the table (store/cells.py) sum up its rows.
    """

    family: str
    table: str
    value: str
    by_asset: Path | None = None
    total: Path | None = None

    @property
    def paths(self) -> list[Path]:
        """Where it is served."""
        return [path for path in (self.by_asset, self.total) if path]

    @property
    def identifiers(self) -> dict[str, str]:
        """What the history queries call by parameter."""
        return {"table": self.table, "cells": cell_table(self.table), "value": self.value}


PRICES = History(
    family="prices",
    table="price",
    value="price",
    by_asset=Path("/assets/price-history", "History of prices."),
)
LEND_RATES = History(
    family="rates",
    table="lend_rate",
    value="apr",
    by_asset=Path("/markets/lend/rate-history", "History of lend APRs."),
)
BORROW_RATES = History(
    family="rates",
    table="borrow_rate",
    value="apr",
    by_asset=Path("/markets/borrow/rate-history", "History of borrow APRs."),
)
LOANS = History(
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
LIQUIDATIONS = History(
    family="loans",
    table="liquidations",
    value="usd",
    by_asset=Path(
        "/analytics/market/history/liquidations/by-asset",
        "Value of all debt of each asset that liquidations have repaid since its first.",
    ),
    total=Path(
        "/analytics/market/history/liquidations",
        "Value of all debt that liquidations have repaid since the first, in USD of their time.",
    ),
)

_MARKETS = "/markets/history"


def _of_markets(table: str, value: str, *, by_asset: Path | None = None, total: Path | None = None) -> History:
    """A history of what markets are worth (rule 2.15)."""
    return History("markets", table, value, by_asset, total)


MARKETS = (
    _of_markets("tvl", "usd", total=Path(f"{_MARKETS}/tvl", "History of the total value locked, in USD.")),
    _of_markets(
        "net_tvl", "usd", total=Path(f"{_MARKETS}/net-tvl", "History of the total value locked less debt, in USD.")
    ),
    _of_markets(
        "deposit_value",
        "usd",
        by_asset=Path(f"{_MARKETS}/deposits", "History of deposits for lending, in USD."),
    ),
    _of_markets(
        "collateral_value", "usd", by_asset=Path(f"{_MARKETS}/collateral", "History of collateral posted, in USD.")
    ),
    _of_markets("debt_value", "usd", by_asset=Path(f"{_MARKETS}/debt", "History of debt with interest, in USD.")),
    _of_markets(
        "utilization", "ratio", by_asset=Path(f"{_MARKETS}/utilization", "History of debt divided by deposits.")
    ),
)
HISTORIES = (PRICES, LEND_RATES, BORROW_RATES, LOANS, LIQUIDATIONS, *MARKETS)
