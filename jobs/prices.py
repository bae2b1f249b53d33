"""Definitions of assets and their oracle prices."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import polars as pl

from analytics_service.market.instants import instant, unix_second
from analytics_service.market.prices import Price
from analytics_service.store.histories import PRICES
from analytics_service.store.observations import NO_OBSERVATIONS, price_frame, read_latest, without_stored
from jobs.snapshot import Batch, Snapshot

HISTORY = True


def collect(batch: Batch) -> list[Snapshot]:
    """The source's assets at the instants, and its new prices. SourceError if it quotes no prices."""
    snapshots: list[Snapshot] = []
    written: list[pl.DataFrame] = []
    for at in batch.instants:
        prices = price_frame(_stated(batch.prices(at), at, batch.store.price_max_age))
        written.append(_new(batch, prices, unix_second(at), written))
        newest = max(prices["observed_at"])
        snapshots.append(Snapshot(at, written[-1], assets=[*batch.assets(at)[0].values()], newest=newest))
    return batch.with_doubts(snapshots, _stored_before(batch, pl.concat(written)), [PRICES])


def _stored_before(batch: Batch, prices: pl.DataFrame) -> pl.DataFrame:
    """The last stored prices before the batch, of those assets that it has new prices of."""
    if batch.head is None:
        return NO_OBSERVATIONS
    before = min(unix_second(batch.instants[0]) - 1, batch.head.last_observed_at)
    latest = read_latest(batch.store, PRICES, prices["asset_id"].unique().to_list(), before)
    return price_frame(Price(asset_id, at, usd) for asset_id, (usd, at) in latest.items())


def _stated(prices: Iterable[Price], at: datetime, max_age: timedelta) -> Iterator[Price]:
    """The prices, and that of an oracle that has had no newer one for long once more in each half of the age at which
    prices are too old (rule 4.8). Its second is that at which the half began: the price was quoted then, and whichever
    snapshots are taken, they add the same. A price that was not even a twelfth of a half old by then needs none. Any
    other gets it at once, because later in the half it would be a correction of the past."""
    half = max(1, int(max_age.total_seconds()) // 2)
    begun = instant(unix_second(at) // half * half)
    for price in prices:
        yield price
        if price.observed_at < begun - timedelta(seconds=half // 12):
            yield replace(price, observed_at=begun)


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
