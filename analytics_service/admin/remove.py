"""Takes observations or snapshots out of the store, and first writes these observations into files that `import` takes
back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

from analytics_service.admin.export import ExportedView, ExportFile, RowQuery, writing_rows
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

# Datasets whose snapshots are made from those before.
_CHAINED = ("positions", "loans")
# The columns of files, but for the history's own, with types in ClickHouse.
_KEY = {"asset_id": "String", "symbol": "String", "observed_at": "DateTime64(3, 'UTC')"}
_EXACT = {"value_exact": "Decimal(38, 18)"}


@dataclass(frozen=True, slots=True)
class Removal:
    """What to take out of [start, end) (unix seconds): observations of a history, of the assets with `ids` or of all;
    or, without a history, the snapshots of a dataset."""

    dataset: str
    history: History | None
    start: int
    end: int
    ids: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Removed:
    """What is taken out: snapshots; observations by history; the first and the last second; and the files, by history,
    that have these observations."""

    snapshots: int
    observations: Mapping[History, int]
    first: int
    last: int
    files: Mapping[History, Path] = field(default_factory=dict)


def count_removed(store: Store, removal: Removal) -> Removed:
    """What there is to take out. RemovalRefused if there is nothing, or if it cannot be taken out."""
    return _counted(store, removal, _runs(store, removal))


def remove(store: Store, removal: Removal, folder: Path, reporter: Reporter) -> Removed:
    """Take out what there is, once it is in files of the folder, whose names no other file has.

    Raises as `count_removed`, with nothing written.
    """
    removed = _take_out(store, removal, folder, reporter)
    if removal.history is None and removal.dataset in _CHAINED:
        # A snapshot that began before was made from those that are gone.
        later, ended = replace(removal, end=FOREVER), new_version(store)
        while any(run.version < ended for run in _runs(store, later)):
            _take_out(store, later, folder, reporter)
            ended = new_version(store)
    return removed


def _take_out(store: Store, removal: Removal, folder: Path, reporter: Reporter) -> Removed:
    with staging(store, removal.dataset, None, what="remove") as staged:
        runs = _runs(store, removal)
        removed = _counted(store, removal, runs)
        staged.require_room(sum(removed.observations.values()))
        keys = {"keys": named_query("find_removed_keys", ()), "removed": staged.removed}
        store.run("stage_removed", keys, **_range(store, removal, runs))
        files = {history: _write(store, history, removed, staged, folder, reporter) for history in removed.observations}
        if removal.dataset == "positions" and runs:
            forget_digests(store)
        staged.forget(runs)
        publish(store, staged, [])
    return replace(removed, files=files)


def _runs(store: Store, removal: Removal) -> list[LedgerRow]:
    """The snapshots to take out."""
    if removal.history is not None:
        return []
    dataset = removal.dataset
    if dataset in _CHAINED and nth_snapshot(store, dataset, 1, removal.end, FOREVER) is not None:
        raise UserError(
            f"There are later snapshots of {dataset}, which are made from those before. Remove all from --start on: "
            "leave out --end."
        )
    return parse_ledger_rows(store.query("list_snapshots", dataset=dataset, start=removal.start, end=removal.end))


def _counted(store: Store, removal: Removal, runs: Sequence[LedgerRow]) -> Removed:
    by_name = {history.name: history for history in HISTORIES}
    rows = store.query("count_removed", {"keys": named_query("find_removed_keys", ())}, **_range(store, removal, runs))
    observations = {by_name[name]: number for name, number, _, _ in rows.iter_rows()}
    seconds = [*rows["first"], *rows["last"], *(run.at for run in runs)]
    if not seconds:
        unfinished = f" A correction of {removal.dataset} is unfinished: the service, or the next one, completes it."
        is_open = removal.dataset in read_ledger(store).open
        raise UserError(
            f"There is nothing to remove of {removal.dataset} in this range.{unfinished if is_open else ''}"
        )
    return Removed(len(runs), observations, min(seconds), max(seconds))


def _range(store: Store, removal: Removal, runs: Sequence[LedgerRow]) -> dict[str, object]:
    """Parameters of the observations to take out. Those of prices and of loans have times of their own within a
    snapshot; of loans, those go whose events do: all since the newest snapshot that is left."""
    histories, start, end = names_of(removal.dataset), removal.start, removal.end
    if removal.history is not None:
        histories = [removal.history.name]
    elif removal.dataset == "prices":
        start = min((run.first_observed_at for run in runs), default=start)
        end = max((run.last_observed_at + 1 for run in runs), default=end)
    elif removal.dataset == "loans" and runs:
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
    """Write the staged observations of a history into a new file, as an export has them, with an empty asset id for the
    total."""
    names = {"history": history.name, "value": history.value, "removed": staged.removed}
    view = ExportedView(history.name, {**_KEY, history.value: "Float64", **_EXACT}, history)
    query = RowQuery(
        {**view.parts, "view": f"({named_query('read_removed_rows', names)})"},
        {"start": removed.first, "end": removed.last + 1},
    )
    path = _free(folder, f"{history.slug}-{from_unix(removed.first):%Y-%m-%d}-{from_unix(removed.last):%Y-%m-%d}")
    reporter.stage(f"Writing {path.name}", 0)
    try:
        with writing_rows(store, query, ExportFile(path, "csv"), reporter):
            return path
    except OperationFailed as error:
        raise UserError(f"{error} Nothing was removed. Name another folder with --into.") from error


def _free(folder: Path, stem: str) -> Path:
    """A path in the folder that no file has."""
    names = (f"{stem}{'' if number == 1 else f'-{number}'}.csv" for number in count(1))
    return next(folder / name for name in names if not (folder / name).exists())
