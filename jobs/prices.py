"""Definitions of assets and their oracle prices."""

from analytics_service.store.prices import price_frame
from jobs.snapshot import Batch, Snapshot

HISTORY = True


def collect(batch: Batch) -> list[Snapshot]:
    """The source's prices and assets at the instants. SourceError when it quotes no prices."""
    return [
        Snapshot(at, dated={"price": price_frame(batch.prices(at))}, assets=batch.source.assets(at))
        for at in batch.instants
    ]
