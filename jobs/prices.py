"""Definitions of assets and their oracle prices."""

import logging
from collections.abc import Sequence

import polars as pl

from analytics_service.history.catalogue import PRICES
from analytics_service.history.rows import Rows
from analytics_service.market.instants import instant, shown, unix_second
from analytics_service.store.prices import price_frame, without_stored
from analytics_service.store.retention import kept_from
from jobs.snapshot import Batch, Snapshot

log = logging.getLogger(__name__)

HISTORY = True


def collect(batch: Batch) -> list[Snapshot]:
    """The source's assets at the instants, and those of its prices that are new. SourceError when it quotes none."""
    snapshots: list[Snapshot] = []
    written: list[pl.DataFrame] = []
    for at in batch.instants:
        prices = price_frame(batch.prices(at))
        written.append(_new(batch, prices, unix_second(at), written))
        newest = max(prices["observed_at"])
        snapshots.append(Snapshot(at, dated={"price": written[-1]}, assets=batch.source.assets(at), newest=newest))
    return snapshots


def _new(batch: Batch, prices: pl.DataFrame, at: int, written: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The prices at an instant, without old ones that the oracle only repeats.

    Repeated prices are in the store already, or in what the batch has `written` so far. Writing them again would be a
    rewrite of history, and is refused where single observations are not kept any more.
    """
    if min(prices["observed_at"]) >= at:
        return prices
    is_repeated = pl.col("observed_at") < at
    new = without_stored(batch.store, prices.filter(is_repeated))
    if new.height and written:
        new = new.join(pl.concat(written), on=new.columns, how="anti", maintain_order="left")
    if new.height and (since := kept_from(batch.store, PRICES.table)) <= at:
        is_kept = pl.col("observed_at") >= since
        _tell_of_lost(batch, new.filter(~is_kept))
        new = new.filter(is_kept)
    return pl.concat([prices.filter(~is_repeated), new])


def _tell_of_lost(batch: Batch, prices: pl.DataFrame) -> None:
    """Warn of prices too old to be stored, unless the store has them as the assets' last prices."""
    head = batch.head() if prices.height else None
    if head is None:
        return
    known = Rows(batch.store, PRICES).read_latest(prices["asset_id"].to_list(), head.last_observed_at)
    for asset_id, second, usd in prices.iter_rows():
        if known.get(asset_id) != (usd, instant(second)):
            log.warning(
                "The price of %s is left out: it was observed at %s, and single observations of that time are not kept "
                "any more (ANALYTICS_RAW_DAYS).",
                asset_id,
                shown(instant(second)),
            )
