"""Definitions of assets and their oracle prices."""

from collections.abc import Sequence

import polars as pl

from analytics_service.market.instants import unix_second
from analytics_service.store.datasets.observations import price_frame, without_stored
from jobs.snapshot import Batch, Snapshot


def collect(batch: Batch) -> list[Snapshot]:
    """The source's assets at the instants, and its new prices. SourceError if it quotes no prices."""
    snapshots: list[Snapshot] = []
    written: list[pl.DataFrame] = []
    for at in batch.instants:
        prices = price_frame(batch.prices(at))
        written.append(_new(batch, prices, unix_second(at), written))
        newest = max(prices["observed_at"])
        snapshots.append(Snapshot(at, written[-1], assets=[*batch.assets(at)[0].values()], newest=newest))
    return snapshots


def _new(batch: Batch, prices: pl.DataFrame, at: int, written: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The prices at an instant, without old prices that the oracle only repeats.

    Repeated prices are already in the store, or in the frames that the batch has `written` so far. Writing them again
    would change what readers have seen.
    """
    if min(prices["observed_at"]) >= at:
        return prices
    is_repeated = pl.col("observed_at") < at
    new = without_stored(batch.store, prices.filter(is_repeated))
    if new.height and written:
        new = new.join(pl.concat(written), on=new.columns, how="anti", maintain_order="left")
    return pl.concat([prices.filter(~is_repeated), new])
