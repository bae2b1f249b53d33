"""Price observations in the store."""

from collections.abc import Sequence

import polars as pl

from analytics_service.market.prices import Price, quantize_price

# Columns of a batch of observations. `observed_at` is unix seconds.
SCHEMA: dict[str, type[pl.DataType] | pl.DataType] = {
    "asset_id": pl.String,
    "observed_at": pl.UInt32,
    "price": pl.Decimal(38, 18),
    "version": pl.UInt64,
}


def price_frame(prices: Sequence[Price], version: int) -> pl.DataFrame:
    """Observations as a batch of rows. ValueError for a price the store cannot hold."""
    columns = {
        "asset_id": [p.asset_id for p in prices],
        "observed_at": [int(p.observed_at.timestamp()) for p in prices],
        "price": [quantize_price(p.usd) for p in prices],
        "version": [version] * len(prices),
    }
    return pl.DataFrame(columns, schema=SCHEMA)
