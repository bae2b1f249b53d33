"""Lend and borrow rates of each asset."""

from analytics_service.store.rates import rate_rows
from jobs.snapshot import Batch, Snapshot

HISTORY = True


def collect(batch: Batch) -> list[Snapshot]:
    """The rates of the source's markets at the instants. SourceError when it has no markets."""
    return [Snapshot(at, rate_rows(batch.markets(at))) for at in batch.instants]
