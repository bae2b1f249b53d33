"""Definitions of assets and their oracle prices."""

from analytics_service.errors import SourceError
from analytics_service.market.instants import shown
from analytics_service.store.prices import price_frame
from jobs.snapshot import Batch, Snapshot

HISTORY = True


def collect(batch: Batch) -> list[Snapshot]:
    """The source's prices and assets at the instants. SourceError when it quotes no prices."""
    snapshots = []
    for at in batch.instants:
        prices = batch.source.prices(at)
        if not prices:
            raise SourceError(f"{batch.source.spec} quotes no prices as of {shown(at)}.")
        snapshots.append(Snapshot(at, dated={"price": price_frame(prices)}, assets=batch.source.assets(at)))
    return snapshots
