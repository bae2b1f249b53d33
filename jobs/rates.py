"""Lend and borrow rates of each asset."""

from analytics_service.store.observations import observations_of
from analytics_service.store.rates import values_of
from jobs.snapshot import Batch, Snapshot

HISTORY = True


def collect(batch: Batch) -> list[Snapshot]:
    """The rates of the source's markets at the instants. SourceError if it has none."""
    return [Snapshot(at, observations_of(values_of(batch.rates(at)), at)) for at in batch.instants]
