"""What operators and schedulers do to a store, as calls that a process which kills itself may make, too.

Each may be made again after it was interrupted.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from analytics_service.admin.remove import Removal, remove
from analytics_service.clickhouse.connection import Store
from analytics_service.errors import UserError
from analytics_service.market.instants import from_unix
from analytics_service.sources.base import Source
from analytics_service.sources.registry import origin_of
from analytics_service.store.commits import Provenance, begin, commit
from analytics_service.store.datasets.assets import present_frame, read_assets
from analytics_service.store.datasets.histories import HISTORIES
from analytics_service.store.rewrite import write_definitions
from jobs.recompute import DATASETS, day_by_day, plan, recompute, replace_snapshots
from jobs.registry import JOBS
from jobs.runner import IF_OVERTAKEN, backfill, take_snapshot
from jobs.snapshot import JobContext
from tests.doubles import Silent
from tests.integration.imports import Progress, asked, import_files

Step = Callable[[Store], object]


@dataclass(frozen=True)
class Import:
    """A file of a history, with an assets file beside it. New symbols become assets."""

    path: Path
    name: str

    def __call__(self, store: Store) -> object:
        history = next(history for history in HISTORIES if history.slug == self.name)
        request = asked(history, self.path, assets=self.path.with_name("assets.csv"))
        request = replace(request, new_assets=True)
        return import_files(store, request, from_unix(int(time.time())), Progress())


@dataclass(frozen=True)
class Backfill:
    """Snapshots of some seconds of the past."""

    name: str
    source: Source
    seconds: Sequence[int]

    def __call__(self, store: Store) -> object:
        return backfill(JOBS[self.name], self.source, store, [from_unix(second) for second in self.seconds])


@dataclass(frozen=True)
class Tick:
    """A second of some jobs. Returns the names of those that took a snapshot."""

    source: Source
    second: int
    names: Sequence[str] = tuple(JOBS)

    def __call__(self, store: Store) -> Sequence[str]:
        return [name for name in self.names if self._takes(store, name)]

    def _takes(self, store: Store, name: str) -> bool:
        try:
            return take_snapshot(JOBS[name], self.source, store, from_unix(self.second))
        except UserError:
            # Positions, while the store has those of a clock that ran ahead.
            return False


@dataclass(frozen=True)
class Ahead:
    """A snapshot as a job wrote it whose clock ran ahead, and ClickHouse's with it."""

    name: str
    source: Source
    second: int

    def __call__(self, store: Store) -> None:
        IF_OVERTAKEN(partial(self._take, store))

    def _take(self, store: Store) -> None:
        beginning = begin(store, self.name, 0, 1)
        batch = JobContext(self.name, self.source, store, [from_unix(self.second)], beginning.present)
        commit(store, JOBS[self.name].collect(batch), Provenance("job", origin_of(self.source)), beginning)


@dataclass(frozen=True)
class Remove:
    """Observations of a history, or snapshots of a dataset, in [start, end); nothing if they are gone."""

    folder: Path
    name: str
    start: int
    end: int
    ids: Sequence[str] = ()

    def __call__(self, store: Store) -> None:
        history = next((history for history in HISTORIES if history.slug == self.name), None)
        removal = Removal(history.dataset if history else self.name, history, self.start, self.end, self.ids)
        try:
            remove(store, removal, self.folder, Silent())
        except UserError as error:
            assert "nothing to remove" in str(error)


@dataclass(frozen=True)
class Recompute:
    """What follows from stored prices and events, in [start, end)."""

    start: int
    end: int
    datasets: Sequence[str] = DATASETS

    def __call__(self, store: Store) -> None:
        for portion in day_by_day(store, self.datasets, from_unix(self.start), from_unix(self.end)):
            recompute(store, portion)


@dataclass(frozen=True)
class Again:
    """Snapshots of a job, taken anew."""

    name: str
    source: Source
    start: int
    end: int

    def __call__(self, store: Store) -> None:
        for portion in plan(store, self.name, from_unix(self.start), from_unix(self.end)):
            replace_snapshots(JOBS[self.name], self.source, store, portion)


@dataclass(frozen=True)
class End:
    """The end of an asset that no source lists, or that end taken back."""

    asset_id: str
    at: int | None

    def __call__(self, store: Store) -> None:
        ended_at = None if self.at is None else from_unix(self.at)
        write_definitions(
            store, present_frame(store, [replace(read_assets(store)[self.asset_id], ended_at=ended_at)]), "end"
        )
