"""Price observations in the store."""

from collections.abc import Iterable

import polars as pl

from analytics_service.market.prices import Price, quantize_price
from analytics_service.store.columns import ASSET_ID, DECIMAL, TIME, Column, Columns, encoded
from analytics_service.store.connection import Store

PRICE = Column(DECIMAL, quantize_price)
_OBSERVATION: Columns = {"asset_id": ASSET_ID, "observed_at": TIME, "price": PRICE}
# Observations that are looked for at once: their ids are a parameter of the query, which may be 128 KiB long.
_AT_ONCE = 500


def price_frame(prices: Iterable[Price]) -> pl.DataFrame:
    """Observations as a batch to insert, without `version`. OutOfRange for a price that the store cannot hold."""
    rows = ({"asset_id": one.asset_id, "observed_at": one.observed_at, "price": one.usd} for one in prices)
    return encoded(rows, _OBSERVATION)


def without_stored(store: Store, prices: pl.DataFrame) -> pl.DataFrame:
    """The observations of a `price_frame` that the store does not have, in the same order.

    Cost: a query for every 500 of them, which reads the granules that they are in.
    """
    stored = [
        store.frame("observed_prices", ids=some["asset_id"].unique().to_list(), seconds=some["observed_at"].to_list())
        for some in prices.iter_slices(_AT_ONCE)
    ]
    if not stored:
        return prices
    return prices.join(pl.concat(stored).cast(prices.schema), on=prices.columns, how="anti", maintain_order="left")
