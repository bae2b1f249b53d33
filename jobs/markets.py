"""Lend, collateral and debt markets and the rules of all borrowing."""

from analytics_service.store.markets import market_frames
from jobs.snapshot import Batch, Snapshot

HISTORY = True


def collect(batch: Batch) -> list[Snapshot]:
    """The source's markets at the instants. SourceError when it has none."""
    return [Snapshot(at, market_frames(batch.markets(at), batch.source.config(at))) for at in batch.instants]
