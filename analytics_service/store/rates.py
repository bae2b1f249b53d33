"""Lend and borrow rates in the store."""

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal

import polars as pl

from analytics_service.market.markets import Market
from analytics_service.market.rates import quantize_rate
from analytics_service.store.columns import TEXT, Column, Columns, snapshot_frame

_RATE: Columns = {"asset_id": TEXT, "apr": Column(pl.Decimal(38, 18), quantize_rate)}


def rate_frames(markets: Iterable[Market], at: datetime, version: int) -> dict[str, pl.DataFrame]:
    """The rates of all lend and debt markets as rows by table. ValueError for a rate outside [0, 100]."""
    listed = list(markets)
    return {
        "lend_rate": _frame(((m.asset_id, m.lend.apr) for m in listed if m.lend), at, version),
        "borrow_rate": _frame(((m.asset_id, m.debt.apr) for m in listed if m.debt), at, version),
    }


def _frame(rates: Iterable[tuple[str, Decimal]], at: datetime, version: int) -> pl.DataFrame:
    return snapshot_frame(({"asset_id": asset_id, "apr": apr} for asset_id, apr in rates), _RATE, at, version)
