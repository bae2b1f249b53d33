"""Price observations in the store."""

from collections.abc import Iterable

import polars as pl

from analytics_service.market.prices import Price, quantize_price
from analytics_service.store.columns import TEXT, TIME, Column, Columns, encoded

_PRICE: Columns = {
    "asset_id": TEXT,
    "observed_at": TIME,
    "price": Column(pl.Decimal(38, 18), quantize_price),
}


def price_frame(prices: Iterable[Price]) -> pl.DataFrame:
    """Observations as a batch to insert, without `version`. OutOfRange for a price that the store cannot hold."""
    rows = ({"asset_id": one.asset_id, "observed_at": one.observed_at, "price": one.usd} for one in prices)
    return encoded(rows, _PRICE)
