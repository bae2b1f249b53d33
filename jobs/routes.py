"""Routes of swap contracts: the denoms that each contract can swap, with their targets."""

from analytics_service.store.commits import Appended, Commit
from analytics_service.store.datasets.markets import route_rows
from jobs.snapshot import JobContext


def collect(context: JobContext) -> Commit:
    """The routes of all swap contracts at the instants; a protocol without such contracts has none."""
    return Commit([Appended(at, rows=route_rows(context.source.swaps(at))) for at in context.instants])
