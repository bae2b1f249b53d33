"""Routes of swap contracts: the denoms that each can swap, and their targets."""

from analytics_service.store.datasets.markets import route_rows
from jobs.snapshot import Batch, Snapshot


def collect(batch: Batch) -> list[Snapshot]:
    """The routes of all swap contracts at the instants; a protocol without such contracts has none."""
    return [Snapshot(at, rows=route_rows(batch.source.swaps(at))) for at in batch.instants]
