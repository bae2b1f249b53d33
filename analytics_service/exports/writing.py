"""Exports views month by month, each file by one query, and leaves out files that would come out the same.

The months of a history change only by runs that write to them (see `oldest_change`). The rows of other views may depend
on any part of the store, so any run may change them.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from zlib import crc32

from analytics_service.errors import ExportFailed, StoreUnavailable, Superseded
from analytics_service.exports.folder import ExportFolder, FileContent
from analytics_service.exports.views import ExportedView
from analytics_service.market.instants import instant, next_month
from analytics_service.market.kinds import FOREVER
from analytics_service.store.connection import Store
from analytics_service.store.ledger import (
    MOST_AHEAD,
    Head,
    Ledger,
    oldest_change,
    require_unchanged,
    without_future,
)
from analytics_service.store.retries import Reporter
from analytics_service.store.rewrite import ledger_without_rewrites

# ClickHouse's formats by the suffix of files.
FORMATS = {"parquet": "Parquet", "csv": "CSVWithNames", "arrow": "Arrow"}
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Selection:
    """The rows to export, those of [since, until) (unix seconds), and the suffix of their format."""

    since: int
    until: int
    suffix: str


@dataclass(slots=True)
class ExportSummary:
    """The outcome of an export: bytes of the files that were written, by name; all files; and views without rows."""

    written: dict[str, int] = field(default_factory=dict)
    files: set[str] = field(default_factory=set)
    empty: list[str] = field(default_factory=list)


class Export:
    """An export from a store into a folder."""

    def __init__(self, store: Store, folder: ExportFolder, selection: Selection, reporter: Reporter) -> None:
        self._store = store
        self._folder = folder
        self._selection = selection
        self._reporter = reporter
        self.summary = ExportSummary()

    def add(self, view: ExportedView) -> None:
        """Export a view. ExportFailed when the store is rewritten again and again while a file is read."""
        attempts = _ATTEMPTS
        while attempts:
            before = len(self.summary.written)
            with suppress(Superseded):
                self._add(view)
                return
            attempts = attempts - 1 if len(self.summary.written) == before else _ATTEMPTS
        raise ExportFailed("The store is changed again and again while it is read. Export when that is over.")

    def _add(self, view: ExportedView) -> None:
        """Write the files of a view that would differ, and remove those of months that have no rows any more.

        Superseded when a rewrite was announced meanwhile.
        """
        ledger = without_future(self._store, ledger_without_rewrites(self._store))
        heads = _heads(view, ledger.heads)
        definitions = int(self._store.frame("export_definitions")["version"][0])
        since, until = (self._selection.since, self._selection.until) if view.time else (0, FOREVER)
        versions = {family: (head.version, head.runs) for family, head in heads.items()}
        columns = crc32(repr(view.columns).encode())
        as_of = FileContent(since, min(until, _reach(view, heads, ledger)), definitions, versions, columns)
        suffix, files = self._selection.suffix, set()
        months = self._store.frame("export_months", view.parts(suffix), since=as_of.start, until=as_of.end)
        self._reporter.stage(view.name, int(months["rows"].sum()))
        for month, rows in months.iter_rows():
            start, end = max(month, since), min(next_month(month), as_of.end)
            content = replace(as_of, start=start, end=end) if view.time else as_of
            name = f"{view.name}/{instant(month):%Y-%m}.{suffix}" if view.time else f"{view.name}.{suffix}"
            if not self._is_current(name, content, heads, view):
                self._write(name, content, heads, view)
            files.add(name)
            self._reporter.advance(rows)
        for name, content in self._folder.listed(view.name, suffix).items():
            if name not in files and since <= content.start and content.end <= until:
                self._folder.remove(name)
        self.summary.files |= files
        if not files:
            self.summary.empty.append(view.name)

    def _is_current(self, name: str, content: FileContent, heads: Mapping[str, Head], view: ExportedView) -> bool:
        """Whether the file of that name has what it would be written with."""
        before = self._folder.content(name)
        if before is None or before == content or view.history is None:
            return before == content
        head, known = heads[view.history.family], before.heads.get(view.history.family)
        if known is None or replace(before, heads=content.heads) != content:
            return False
        version, runs = known
        change = oldest_change(self._store, replace(head, version=version, runs=runs), head)
        return change is not None and change >= content.end

    def _write(self, name: str, content: FileContent, heads: Mapping[str, Head], view: ExportedView) -> None:
        suffix = self._selection.suffix
        with self._folder.writing(name, content) as file:
            rows = self._store.stream(
                "export_rows", view.parts(suffix), FORMATS[suffix], since=content.start, until=content.end
            )
            for chunk in rows:
                file.write(chunk)
            if not (size := file.tell()):
                # A server that dies as it begins to answer sends an empty answer.
                raise StoreUnavailable(f"ClickHouse broke off its answer (rows of {view.name}).")
            for head in heads.values():
                require_unchanged(self._store, head)
        self.summary.written[name] = size


def _heads(view: ExportedView, heads: Mapping[str, Head]) -> Mapping[str, Head]:
    """The heads of the families that the rows of a view may depend on."""
    return {family: head for family, head in heads.items() if not view.history or family == view.history.family}


def _reach(view: ExportedView, heads: Mapping[str, Head], ledger: Ledger) -> int:
    """The instant from which on a view has no rows for readers: later ones are of runs that have not ended, or from the
    future."""
    latest = ledger.now + MOST_AHEAD
    if view.history is None:
        return latest if ledger.ahead else FOREVER
    return min(latest, max((head.last_observed_at for head in heads.values()), default=-1)) + 1
