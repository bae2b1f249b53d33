"""Lend and borrow rates of each asset."""

from analytics_service.store.observations import observations_of
from analytics_service.store.rates import rates_of
from jobs.snapshot import Batch, Snapshot

HISTORY = True


def collect(batch: Batch) -> list[Snapshot]:
    """The rates of the source's markets at the instants. SourceError if it has no markets."""
    return [Snapshot(at, observations_of(rates_of(batch.markets(at)), at)) for at in batch.instants]
