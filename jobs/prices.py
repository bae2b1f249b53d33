"""Definitions of assets and their oracle prices."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import polars as pl

from analytics_service.market.instants import unix_second
from analytics_service.market.prices import Price, newest_prices, quoted
from analytics_service.store.histories import PRICES
from analytics_service.store.observations import (
    NO_OBSERVATIONS,
    price_frame,
    read_last_prices,
    read_latest,
    without_stored,
)
from jobs.snapshot import Batch, Snapshot


def collect(batch: Batch) -> list[Snapshot]:
    """The source's assets at the instants, and its new prices. SourceError if it quotes no prices."""
    snapshots: list[Snapshot] = []
    written: list[pl.DataFrame] = []
    quotes = [batch.prices(at) for at in batch.instants]
    for at, stated, again in zip(batch.instants, quotes, _observed_again(batch, quotes), strict=True):
        prices = price_frame([*stated, *again])
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


def _observed_again(batch: Batch, quotes: Sequence[Sequence[Price]]) -> Iterator[list[Price]]:
    """At each instant, the prices that the oracle only repeats and that are observed once more (rule 4.8): the last
    observation of their asset is older than half of the age at which prices are too old, or says otherwise.

    They are observed at the instant itself. Before, the price may not have been quoted, and readers may have seen that
    it was unknown. What is stored for the instant does not count, so a snapshot that is taken again has the same.
    """
    half, before = batch.store.price_max_age / 2, [unix_second(at) - 1 for at in batch.instants]
    newest = [newest_prices(prices) for prices in quotes]
    old = {
        asset_id
        for at, prices in zip(batch.instants, newest, strict=True)
        for asset_id, price in prices.items()
        if at - price.observed_at > half
    }
    stored = read_last_prices(batch.store, sorted(old), before)
    written: dict[str, Price] = {}
    for at, second, prices in zip(batch.instants, before, newest, strict=True):
        again = []
        for asset_id, price in prices.items():
            if at - price.observed_at > half:
                known = (stored[asset_id].get(second), written.get(asset_id), price)
                last = newest_prices(filter(None, known))[asset_id]
                if at - last.observed_at > half or quoted([last]) != quoted([price]):
                    again.append(replace(price, observed_at=at))
        written = newest_prices([*written.values(), *prices.values(), *again])
        yield again


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
