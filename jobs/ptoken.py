"""The protocol token, its staking pools and unlock arrangements."""

from analytics_service.store.datasets.markets import ptoken_rows
from jobs.snapshot import Batch, Snapshot


def collect(batch: Batch) -> list[Snapshot]:
    """The protocol token and all unlock arrangements at the instants."""
    source = batch.source
    return [Snapshot(at, rows=ptoken_rows(source.ptoken(at), source.arrangements(at))) for at in batch.instants]
