"""The protocol token, its staking pools and unlock arrangements."""

from analytics_service.store.commits import Appended, Commit
from analytics_service.store.datasets.markets import ptoken_rows
from jobs.snapshot import JobContext


def collect(context: JobContext) -> Commit:
    """The protocol token and all unlock arrangements at the instants."""
    source = context.source
    return Commit(
        [Appended(at, rows=ptoken_rows(source.ptoken(at), source.arrangements(at))) for at in context.instants]
    )
