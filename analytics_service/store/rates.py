"""Lend and borrow rates in the store."""

from collections.abc import Iterable

import polars as pl

from analytics_service.market.markets import Market
from analytics_service.market.rates import quantize_rate
from analytics_service.store.columns import TEXT, Column, Columns
from analytics_service.store.snapshot_table import SnapshotTable

_RATE: Columns = {"asset_id": TEXT, "apr": Column(pl.Decimal(38, 18), quantize_rate)}
_LEND_RATES = SnapshotTable("lend_rate", _RATE, ("asset_id",))
_BORROW_RATES = SnapshotTable("borrow_rate", _RATE, ("asset_id",))


def rate_frames(markets: Iterable[Market]) -> dict[str, pl.DataFrame]:
    """The rates of all lend and debt markets as rows by table. ValueError for a rate outside [0, 100]."""
    listed = list(markets)
    lend = ({"asset_id": one.asset_id, "apr": one.lend.apr} for one in listed if one.lend)
    borrow = ({"asset_id": one.asset_id, "apr": one.debt.apr} for one in listed if one.debt)
    return {_LEND_RATES.name: _LEND_RATES.frame(lend), _BORROW_RATES.name: _BORROW_RATES.frame(borrow)}
