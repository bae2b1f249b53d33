"""Definitions of assets and their oracle prices."""

import logging
from datetime import datetime

import polars as pl

from analytics_service.history.catalogue import PRICES
from analytics_service.history.rows import read_latest
from analytics_service.market.instants import instant, shown, unix_second
from analytics_service.store.prices import price_frame, without_stored
from analytics_service.store.retention import kept_from
from jobs.snapshot import Batch, Snapshot

log = logging.getLogger(__name__)

HISTORY = True


def collect(batch: Batch) -> list[Snapshot]:
    """The source's assets at the instants, and those of its prices that are new. SourceError when it quotes none."""
    return [Snapshot(at, dated={"price": _new(batch, at)}, assets=batch.source.assets(at)) for at in batch.instants]


def _new(batch: Batch, at: datetime) -> pl.DataFrame:
    """The prices at an instant without those that an oracle only repeats, because it has no newer ones.

    Those are in the store already, before its newest observation: to write them again would be a rewrite of history,
    and refused where single observations are not kept any more.
    """
    prices, second = price_frame(batch.prices(at)), unix_second(at)
    is_repeated = pl.col("observed_at") < second
    new = without_stored(batch.store, prices.filter(is_repeated))
    if new.height and (since := kept_from(batch.store, PRICES.table)) <= second:
        _tell_of_lost(batch, new.filter(pl.col("observed_at") < since))
        new = new.filter(pl.col("observed_at") >= since)
    return pl.concat([prices.filter(~is_repeated), new])


def _tell_of_lost(batch: Batch, prices: pl.DataFrame) -> None:
    """Warn of prices from before the observations that are kept, unless they are known as the assets' last ones."""
    head = batch.head()
    if not prices.height or head is None:
        return
    known = read_latest(batch.store, PRICES, prices["asset_id"].to_list(), head.last_observed_at)
    for asset_id, second, usd in prices.iter_rows():
        if known.get(asset_id) != (usd, instant(second)):
            log.warning(
                "The price of %s is left out: it was observed at %s, and single observations of that time are not kept "
                "any more (ANALYTICS_RAW_DAYS).",
                asset_id,
                shown(instant(second)),
            )
