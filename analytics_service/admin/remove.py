"""Removes observations or snapshots from the store, after writing the observations into files that `import` reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

from analytics_service.admin.export import ExportedView, writing_rows
from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.errors import Reporter
from analytics_service.clickhouse.queries import named_query
from analytics_service.errors import OperationFailed, UserError
from analytics_service.market.instants import from_unix
from analytics_service.market.kinds import FOREVER
from analytics_service.store.datasets.histories import HISTORIES, History, names_of
from analytics_service.store.datasets.positions import forget_digests
from analytics_service.store.ledger import (
    LedgerRow,
    last_snapshot_before,
    new_version,
    nth_snapshot,
    parse_ledger_rows,
    read_ledger,
)
from analytics_service.store.rewrite import Staging, publish, staging

# Datasets whose snapshots depend on earlier ones.
_CHAINED = ("positions", "loans")
# The columns of files, besides the history's own, with their ClickHouse types.
_KEY = {"asset_id": "String", "symbol": "String", "observed_at": "DateTime64(3, 'UTC')"}
_EXACT = {"value_exact": "Decimal(38, 18)"}


@dataclass(frozen=True, slots=True)
class Removal:
    """What to remove from [start, end) in unix seconds: observations of a history, for the assets `ids` or for all; or,
    without a history, the snapshots of a dataset."""

    dataset: str
    history: History | None
    start: int
    end: int
    ids: Sequence[str] = ()

    @property
    def name(self) -> str:
        """The name of the history or dataset in commands."""
        return self.history.slug if self.history else self.dataset


@dataclass(frozen=True, slots=True)
class Removed:
    """What was removed: the numbers of snapshots and of observations by history, the first and last second, and the
    files of the observations by history."""

    snapshots: int
    observations: Mapping[History, int]
    first: int
    last: int
    files: Mapping[History, Path] = field(default_factory=dict)


def count_removed(store: Store, removal: Removal) -> Removed:
    """What a removal would remove. UserError if there is nothing, or if it cannot be removed."""
    return _counted(store, removal, _commits(store, removal))


def remove(store: Store, removal: Removal, folder: Path, reporter: Reporter) -> Removed:
    """Write observations into new files of the folder, then remove them. UserError, with nothing written, as in
    `count_removed`."""
    removed = _remove_once(store, removal, folder, reporter)
    if removal.history is None and removal.dataset in _CHAINED:
        # A snapshot that began before the removal was made from removed snapshots.
        later, ended = replace(removal, end=FOREVER), new_version(store)
        while any(commit.version < ended for commit in _commits(store, later)):
            _remove_once(store, later, folder, reporter)
            ended = new_version(store)
    return removed


def _remove_once(store: Store, removal: Removal, folder: Path, reporter: Reporter) -> Removed:
    with staging(store, removal.dataset, None, what="remove") as staged:
        commits = _commits(store, removal)
        removed = _counted(store, removal, commits)
        staged.require_room(sum(removed.observations.values()))
        keys = {"keys": named_query("find_removed_keys", ()), "removed": staged.removed}
        store.run("stage_removed", keys, **_range(store, removal, commits))
        files = {history: _write(store, history, removed, staged, folder, reporter) for history in removed.observations}
        if removal.dataset == "positions" and commits:
            forget_digests(store)
        staged.forget(commits)
        publish(store, staged, [])
    return replace(removed, files=files)


def _commits(store: Store, removal: Removal) -> list[LedgerRow]:
    """The snapshots to remove."""
    if removal.history is not None:
        return []
    dataset = removal.dataset
    if dataset in _CHAINED and nth_snapshot(store, dataset, 1, removal.end, FOREVER) is not None:
        raise UserError(
            f"Later snapshots of {dataset} depend on the ones to remove. Leave out --end to remove all from --start on."
        )
    return parse_ledger_rows(store.query("list_snapshots", dataset=dataset, start=removal.start, end=removal.end))


def _counted(store: Store, removal: Removal, commits: Sequence[LedgerRow]) -> Removed:
    by_name = {history.name: history for history in HISTORIES}
    keys = {"keys": named_query("find_removed_keys", ())}
    rows = store.query("count_removed", keys, **_range(store, removal, commits))
    observations = {by_name[name]: number for name, number, _, _ in rows.iter_rows()}
    seconds = [*rows["first"], *rows["last"], *(commit.at for commit in commits)]
    if not seconds:
        unfinished = f" A correction of {removal.dataset} is unfinished; the service or the next command completes it."
        is_open = removal.dataset in read_ledger(store).open
        raise UserError(
            f"There is nothing to remove of {removal.dataset} in this range.{unfinished if is_open else ''}"
        )
    return Removed(len(commits), observations, min(seconds), max(seconds))


def _range(store: Store, removal: Removal, commits: Sequence[LedgerRow]) -> dict[str, object]:
    """Query parameters of the observations to remove.

    Observations of prices and loans have their own times. For loans, all observations since the newest remaining
    snapshot are removed, as their events are.
    """
    histories, start, end = names_of(removal.dataset), removal.start, removal.end
    if removal.history is not None:
        histories = [removal.history.name]
    elif removal.dataset == "prices":
        start = min((commit.first_observed_at for commit in commits), default=start)
        end = max((commit.last_observed_at + 1 for commit in commits), default=end)
    elif removal.dataset == "loans" and commits:
        before = last_snapshot_before(store, removal.dataset, removal.start)
        start = 0 if before is None else before + 1
    return {
        "dataset": removal.dataset,
        "histories": histories,
        "snapshots": removal.history is None,
        "snapshots_start": removal.start,
        "snapshots_end": removal.end,
        "start": start,
        "end": end,
        "ids": list(removal.ids),
    }


def _write(store: Store, history: History, removed: Removed, staged: Staging, folder: Path, reporter: Reporter) -> Path:
    """Write the staged observations of a history into a new file, in the format of an export. The total has an empty
    asset id."""
    names = {"history": history.name, "value": history.value, "removed": staged.removed}
    view = ExportedView(history.name, {**_KEY, history.value: "Float64", **_EXACT}, history)
    parts = {**view.parts, "view": f"({named_query('read_removed_rows', names)})"}
    path = _free(folder, f"{history.slug}-{from_unix(removed.first):%Y-%m-%d}-{from_unix(removed.last):%Y-%m-%d}")
    try:
        with writing_rows(store, (parts, (removed.first, removed.last + 1)), path, reporter):
            return path
    except OperationFailed as error:
        raise UserError(f"{error} Nothing was removed. Name another folder with --into.") from error


def _free(folder: Path, stem: str) -> Path:
    """An unused path in the folder."""
    names = (f"{stem}{'' if number == 1 else f'-{number}'}.csv" for number in count(1))
    return next(folder / name for name in names if not (folder / name).exists())
