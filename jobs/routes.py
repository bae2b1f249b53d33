"""Routes of swap contracts: the denoms that each can swap, and their targets."""

from analytics_service.store.commits import Appended, Commit
from analytics_service.store.datasets.markets import route_rows
from jobs.snapshot import Batch


def collect(batch: Batch) -> Commit:
    """The routes of all swap contracts at the instants; a protocol without such contracts has none."""
    return Commit([Appended(at, rows=route_rows(batch.source.swaps(at))) for at in batch.instants])
