"""What a job took from its source, and the one way in which it comes to stand in the store."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import polars as pl

from analytics_service.market.assets import Asset
from analytics_service.sources.base import Source
from analytics_service.store.assets import read_assets, write_assets
from analytics_service.store.connection import Store
from analytics_service.store.ledger import Run, complete, read_heads
from analytics_service.store.publication import publication


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One family's data as of `at`: rows by table, which are written in that order.

    `observed_at` of rows (unix seconds) is what the ledger tells of them. `assets` are definitions as of `at`, from
    jobs that see them.
    """

    at: datetime
    rows: Mapping[str, pl.DataFrame]
    assets: Sequence[Asset] = field(default=())

    def run(self, family: str, kind: str, source: str, version: int) -> Run:
        """The ledger's row about this snapshot."""
        at = int(self.at.timestamp())
        columns = [frame["observed_at"] for frame in self.rows.values() if "observed_at" in frame.columns]
        observed = [int(second) for column in columns for second in column.unique()]
        return Run(
            family=family,
            at=at,
            kind=kind,
            first_observed_at=min(observed, default=at),
            last_observed_at=max(observed, default=at),
            rows=sum(frame.height for frame in self.rows.values()),
            source=source,
            version=version,
        )


# Takes the snapshots of instants, oldest first, from a source, as a run with a version. It reads no clock, and writes
# nothing; the store tells it what stands there already.
Collect = Callable[[Source, Store, Sequence[datetime], int], list[Snapshot]]


def each(collect: Callable[[Source, datetime, int], Snapshot]) -> Collect:
    """The snapshots of a job that needs to know nothing but the instant."""

    def collect_all(source: Source, store: Store, instants: Sequence[datetime], version: int) -> list[Snapshot]:
        return [collect(source, at, version) for at in instants]

    return collect_all


def commit(store: Store, snapshots: Sequence[Snapshot], family: str, kind: str, source: str, version: int) -> None:
    """Write snapshots of one job, oldest first, that all have the same tables: one insert for each table.

    The ledger comes last, so a commit that dies half-way shows nothing; to repeat it writes the same again. Snapshots
    of a past that readers already see are announced to them first, which takes some seconds.
    """
    runs = [snapshot.run(family, kind, source, version) for snapshot in snapshots]
    with publication(store, family, min(run.first_observed_at for run in runs), version):
        write_assets(store, _definitions(store, snapshots, family), version)
        for table in snapshots[0].rows:
            store.insert(table, pl.concat([snapshot.rows[table] for snapshot in snapshots]))
        complete(store, runs)


def _definitions(store: Store, snapshots: Sequence[Snapshot], family: str) -> list[Asset]:
    """The newest definition of each asset. Snapshots of the past add assets, but redefine none."""
    newest = {asset.id: asset for snapshot in snapshots for asset in snapshot.assets}
    head = read_heads(store).get(family)
    if newest and head and snapshots[-1].at < head.instant:
        known = read_assets(store)
        return [asset for asset in newest.values() if asset.id not in known]
    return list(newest.values())
