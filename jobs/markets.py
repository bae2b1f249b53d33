"""Lend, collateral and debt markets, the rules of all borrowing, and the USD values of the markets."""

from dataclasses import replace
from datetime import datetime

import polars as pl

from analytics_service.market.assets import linked
from analytics_service.market.instants import unix_second
from analytics_service.market.prices import quoted
from analytics_service.market.shares import with_receipt_prices
from analytics_service.market.supply import market_values
from analytics_service.store.markets import ADDING_UP, market_rows, values_by_history, vanished
from analytics_service.store.observations import observations_of, read_around
from jobs.snapshot import Batch, Snapshot

HISTORY = True


def collect(batch: Batch) -> list[Snapshot]:
    """The source's markets at the instants, and their values at its prices. SourceError if it lacks either.

    With the last of them come zeros for what a market was worth that the next snapshot lacks, also between these
    snapshots and stored ones, so the order in which snapshots are taken does not matter (rule 8.8).
    """
    snapshots = [_snapshot(batch, at) for at in batch.instants]
    instants = [unix_second(at) for at in batch.instants]
    stored = read_around(batch.store, ADDING_UP, instants[0], instants[-1])
    stored = stored.filter(~pl.col("observed_at").is_in(instants))
    zeros = vanished(pl.concat([stored, *(snapshot.observations for snapshot in snapshots)]))
    observations = pl.concat([snapshots[-1].observations, zeros])
    return [*snapshots[:-1], replace(snapshots[-1], observations=observations)]


def _snapshot(batch: Batch, at: datetime) -> Snapshot:
    defined, redefined = batch.assets(at)
    markets, prices, assets = batch.markets(at, redefined), quoted(batch.prices(at)), linked(defined)
    values = market_values(markets, assets, with_receipt_prices(prices, assets, markets))
    states = market_rows(markets, batch.source.config(at), prices)
    return Snapshot(at, observations_of(values_by_history(markets, values), at), states)
