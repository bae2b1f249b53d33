"""Lend, collateral and debt markets, the rules of all borrowing, and the USD values of the markets."""

from datetime import datetime

from analytics_service.market.assets import linked
from analytics_service.market.prices import quoted
from analytics_service.market.shares import with_receipt_prices
from analytics_service.market.supply import market_values
from analytics_service.store.markets import market_rows, values_by_history
from analytics_service.store.observations import observations_of
from jobs.snapshot import Batch, Snapshot

HISTORY = True


def collect(batch: Batch) -> list[Snapshot]:
    """The source's markets at the instants, and their values at its prices. SourceError if it lacks either."""
    return [_snapshot(batch, at) for at in batch.instants]


def _snapshot(batch: Batch, at: datetime) -> Snapshot:
    markets, prices = batch.markets(at), quoted(batch.prices(at))
    assets = linked({asset.id: asset for asset in batch.source.assets(at)})
    values = market_values(markets, assets, with_receipt_prices(prices, assets, markets))
    states = market_rows(markets, batch.source.config(at), prices)
    return Snapshot(at, observations_of(values_by_history(markets, values), at), states)
