"""Writes the rows of a view into a file for other programs, all or nothing.

ClickHouse writes Parquet and Arrow, whose last bytes show that the file is complete. CSV has no end mark, so Polars
converts it from an Arrow file, in batches.
"""

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.errors import Reporter
from analytics_service.config.private_files import NewFile
from analytics_service.errors import OperationFailed, StoreUnavailable, Superseded, UserError
from analytics_service.market.kinds import FOREVER
from analytics_service.market.spreadsheets import escape_formula
from analytics_service.store.datasets.histories import HISTORIES, History
from analytics_service.store.ledger import MOST_AHEAD, Ledger, hide_future_snapshots, read_ledger, require_unchanged

# ClickHouse's formats, and the last bytes of their files.
_PARQUET, _ARROW = ("Parquet", b"PAR1"), ("Arrow", b"ARROW1")
# Suffixes of files, which say the format.
SUFFIXES = (".parquet", ".csv", ".arrow")
# Columns of time, by which --start and --end select.
_TIMES = ("observed_at", "time")
_WRAPPERS = re.compile(r"(?:LowCardinality|Nullable)\((.+)\)")
# Types that are exported as they are: decimals of up to 38 digits, integers of up to 64 bits and others.
_SAME = re.compile(
    r"U?Int(8|16|32|64)|Float(32|64)|Bool|String|Date32|DateTime64\(.+\)|Decimal\(([1-9]|[12][0-9]|3[0-8]), \d+\)"
)
_ATTEMPTS = 5
# Seconds between attempts while history is rewritten.
_PAUSE = 1
# Mode of files, before the umask: other users may read exports.
_MODE = 0o666
_TIME = "%Y-%m-%dT%H:%M:%S%.3fZ"
# The placeholders of the query `read_export_rows`, and the bounds [start, end) of times in unix seconds.
_Query = tuple[Mapping[str, str], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class ExportedView:
    """A view: its columns with their ClickHouse types, and the history that it shows, if any."""

    name: str
    columns: Mapping[str, str]
    history: History | None = None

    @property
    def time(self) -> str | None:
        """The column of time, or None."""
        return next((name for name in _TIMES if self.columns.get(name, "").startswith("DateTime")), None)

    @property
    def parts(self) -> Mapping[str, str]:
        """The placeholders of its query. Rows are ordered by asset, time and all other columns."""
        order = [name for name in ("asset_id", self.time) if name in self.columns]
        columns = (f"{_converted(name, kind)} AS `{name}`" for name, kind in self.columns.items())
        return {
            "view": f"`{self.name}`",
            "time": f"v.`{self.time}`" if self.time else "toDateTime(0, 'UTC')",
            "columns": ", ".join(columns),
            "order": ", ".join(f"v.`{name}`" for name in dict.fromkeys([*order, *self.columns])),
        }


def _converted(name: str, kind: str) -> str:
    """A column in a type that all readers of the formats support."""
    column = f"v.`{name}`"
    while wrapped := _WRAPPERS.fullmatch(kind):
        kind = wrapped[1]
    if _SAME.fullmatch(kind):
        return column
    # The formats write these types as plain numbers.
    if kind.startswith("DateTime"):
        return f"toDateTime64({column}, 3, 'UTC')"
    return f"toDate32({column})" if kind == "Date" else f"toString({column})"


def find_view(store: Store, name: str) -> ExportedView:
    """The view with this name, or of the history with this slug. UserError if there is none."""
    views: dict[str, dict[str, str]] = {}
    for view, column, kind in store.query("list_export_columns").iter_rows():
        views.setdefault(view, {})[column] = kind
    histories = {history.name: history for history in HISTORIES}
    known = {view: view for view in views} | {each.slug: each.name for each in HISTORIES if each.name in views}
    if name not in known:
        raise UserError(f"There is no history or view {name[:80]!r}. The views are: {', '.join(views)}.")
    return ExportedView(known[name], views[known[name]], histories.get(known[name]))


def export(store: Store, view: ExportedView, path: Path, span: tuple[int, int], reporter: Reporter) -> int:
    """Write the visible rows of the `span` [start, end) in unix seconds, and return their number.

    OperationFailed if the file cannot be written, or history was rewritten during every attempt.
    """
    for _ in range(_ATTEMPTS):
        ledger = hide_future_snapshots(store, read_ledger(store))
        if ledger.open:
            time.sleep(_PAUSE)
            continue
        end = min(span[1], _shown_until(view, ledger)) if view.time else FOREVER
        bounds = (span[0] if view.time else 0, end)
        heads = [head for name, head in ledger.heads.items() if not view.history or name == view.history.dataset]
        with suppress(Superseded), writing_rows(store, (view.parts, bounds), path, reporter) as rows:
            require_unchanged(store, *heads)
            return rows
    raise OperationFailed("History was rewritten during every attempt. Export later.")


def _shown_until(view: ExportedView, ledger: Ledger) -> int:
    """The first second whose rows are not visible: they belong to unfinished commits or to the future."""
    latest = ledger.now + MOST_AHEAD
    if view.history is None:
        return latest + 1 if ledger.ahead else FOREVER
    head = ledger.heads.get(view.history.dataset)
    return min(latest, head.last_observed_at if head else -1) + 1


@contextmanager
def writing_rows(store: Store, query: _Query, path: Path, reporter: Reporter) -> Iterator[int]:
    """Write rows into a new file, which gets its name when the block ends without an error. Yields their number. The
    path has one of the SUFFIXES.

    OperationFailed if the file cannot be written, StoreUnavailable if ClickHouse's answer was cut off.
    """
    reporter.stage(f"Writing {path.name}", 0)
    try:
        with NewFile(path, _MODE) as new:
            if path.suffix == ".arrow":
                _receive(store, query, new, _ARROW, reporter)
                yield _count(pl.scan_ipc(new.part))
            elif path.suffix == ".csv":
                with NewFile(path) as arrow:
                    _receive(store, query, arrow, _ARROW, reporter)
                    rows = pl.scan_ipc(arrow.part)
                    rows.with_columns(escape_formula(pl.col(pl.String))).sink_csv(new.part, datetime_format=_TIME)
                    yield _count(rows)
            else:
                _receive(store, query, new, _PARQUET, reporter)
                yield _count(pl.scan_parquet(new.part))
            new.keep()
    except OSError as error:
        raise OperationFailed(f"{path} cannot be written ({error.strerror or error}).") from error


def _count(rows: pl.LazyFrame) -> int:
    return int(rows.select(pl.len()).collect().item())


def _receive(store: Store, query: _Query, new: NewFile, form: tuple[str, bytes], reporter: Reporter) -> None:
    """Write ClickHouse's answer into a file. StoreUnavailable if its end is missing."""
    (output, end), (parts, (first, until)) = form, query
    last = b""
    for chunk in store.stream("read_export_rows", parts, output, start=first, end=until):
        new.file.write(chunk)
        reporter.advance(len(chunk))
        last = (last + chunk)[-len(end) :]
    new.file.flush()
    if last != end:
        raise StoreUnavailable("ClickHouse broke off its answer (query read_export_rows).")
