"""Lend, collateral and debt markets, the rules of all borrowing, and the markets' USD values."""

from dataclasses import replace
from datetime import datetime

import polars as pl

from analytics_service.market.assets import link_receipts, origins_of, redemption_chain
from analytics_service.market.instants import unix_second
from analytics_service.market.receipts import with_receipt_prices
from analytics_service.market.supply import lent_first, market_values
from analytics_service.store.commits import Appended, Commit
from analytics_service.store.datasets.assets import read_assets
from analytics_service.store.datasets.markets import (
    market_rows,
    protocol_metrics,
    unvalued_assets,
    vanished_assets,
)
from analytics_service.store.datasets.observations import observations_of, read_around, read_last_prices
from jobs.snapshot import JobContext


def collect(context: JobContext) -> Commit:
    """The source's markets at the instants, valued at its prices. SourceError if it lacks either.

    The last snapshot also has zeros for the values of markets that the next snapshot lacks, taken or stored, so the
    order in which snapshots are taken does not matter (rule 8.8, independent snapshots).
    """
    collected = [_snapshot(context, at) for at in context.instants]
    snapshots, instants = [snapshot for snapshot, _ in collected], [unix_second(at) for at in context.instants]
    stored = read_around(context.store, instants[0], instants[-1] + 1)
    stored = stored.filter(~pl.col("observed_at").is_in(instants))
    observed = (frame for snapshot, unvalued in collected for frame in (snapshot.observations, unvalued))
    zeros = _priced_zeros(context, vanished_assets(pl.concat([stored, *observed])))
    observations = pl.concat([snapshots[-1].observations, zeros])
    return Commit([*snapshots[:-1], replace(snapshots[-1], observations=observations)])


def _snapshot(context: JobContext, at: datetime) -> tuple[Appended, pl.DataFrame]:
    """The snapshot, and the observations that it lacks because an asset has a market but no value."""
    defined, redefined = context.valued_assets(at)
    markets, assets = context.markets(at, redefined), link_receipts(defined)
    defined_markets = [market for market in markets if market.asset_id in assets]
    prices = context.known_prices(at, (market.asset_id for market in defined_markets))
    values = market_values(markets, assets, with_receipt_prices(prices, assets, markets))
    states = market_rows(markets, context.source.config(at), prices)
    snapshot = Appended(at, observations_of(protocol_metrics(markets, values), at), states)
    counted = [replace(market, lend=lent_first(market, assets[market.asset_id])) for market in defined_markets]
    return snapshot, unvalued_assets(counted, values, unix_second(at))


def _priced_zeros(context: JobContext, zeros: pl.DataFrame) -> pl.DataFrame:
    """The zeros of assets that have ever had a price. Other assets have no values, so they get no zeros."""
    doubtful = zeros.filter(~pl.col("was_known"))
    if doubtful.is_empty():
        return zeros.drop("was_known")
    origins = origins_of(link_receipts(read_assets(context.store)).values())
    chains = [redemption_chain(asset_id, origins) for asset_id in doubtful["asset_id"]]
    ids = {asset_id for chain in chains for asset_id in chain}
    last = read_last_prices(context.store, ids, doubtful["observed_at"].to_list())
    had = [any(at in last[name] for name in chain) for chain, at in zip(chains, doubtful["observed_at"], strict=True)]
    return pl.concat([zeros.filter("was_known"), doubtful.filter(pl.Series(had, dtype=pl.Boolean))]).drop("was_known")
