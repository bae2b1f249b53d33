"""Opens a file in the format that its content shows."""

import json
import os
import re
import resource
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

import polars as pl

from analytics_service.errors import ImportRefused
from analytics_service.imports.columnar import ARROW_STREAM, arrow_table, parquet_table
from analytics_service.imports.files import ZIP, unpacked
from analytics_service.imports.layout import column_of
from analytics_service.imports.records import json_table
from analytics_service.imports.sheets import sheet_table
from analytics_service.imports.tables import Table, TableRules, require_content
from analytics_service.imports.text import text_table

_START = 4096
_AS_FOUND = TableRules()
# With which a date that has a type may come.
_MIDNIGHT = r"[T ]00:00:00(?:\.0*)?$"

_UNBOUNDED = (parquet_table, arrow_table, sheet_table)
# Bytes of memory in which such a file must be readable: what they unpack to has no bound.
_MEMORY = 768 * 2**20


def within_memory(paths: Sequence[Path], rules: TableRules = _AS_FOUND) -> Sequence[Path]:
    """The same paths. ImportRefused for a workbook, or a Parquet or Arrow file, that needs too much memory, which is
    tried in a process of its own: Polars ends its process when it gets none."""
    typed = [path for path in paths if _start(path)[1] in _UNBOUNDED]
    if not typed:
        return paths
    command, environment = [sys.executable, "-P", "-m", __name__], os.environ | {"POLARS_MAX_THREADS": "1"}
    asked = json.dumps([asdict(rules), *map(str, typed)])
    tried = subprocess.run(command, input=asked.encode(), capture_output=True, env=environment)
    if tried.returncode:
        path = typed[tried.stdout.count(b"\n")]
        raise ImportRefused(
            f"{path} cannot be read within {_MEMORY // 2**20} MiB of memory. Write it again in smaller row groups or "
            "batches, or as CSV."
        )
    return paths


def _read_all() -> None:
    """Read the files that stdin names, with a line for each that is over. What is wrong with one is found again."""
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
    rules, *names = json.load(sys.stdin)
    for name in names:
        with suppress(ImportRefused):
            deque(open_table(Path(name), TableRules(**rules)).blocks(), maxlen=0)
        print(flush=True)


def open_table(path: Path, rules: TableRules = _AS_FOUND) -> Table:
    """The table of a file, whatever its format. ImportRefused when it is missing, empty or unreadable, and at the end
    of its blocks when it changed meanwhile."""
    start, reader = _start(path)
    return _joined(reader(path, start, rules), rules.time).watched()


def _joined(table: Table, time: str | None) -> Table:
    """The table with one column of times in place of several, such as Date and Time: those that the caller names with
    commas between them, or a date and a time beside it."""
    if time is None:
        fields: Sequence[str | None] = _date_and_time(table)
    elif "," in time and time not in table.columns:
        fields = [column_of(table, "time", name, (), "--time") for name in time.split(",")]
    else:
        return table
    first, *others = [field for field in fields if field is not None] or [""]
    if not others:
        return table
    title = ",".join(map(table.title, (first, *others)))
    columns = [
        (title if field == first else column, field)
        for column, field in zip(table.columns, table.fields, strict=True)
        if field not in others
    ]
    date = pl.col(first).str.strip_chars().str.replace(_MIDNIGHT, "")
    joined = pl.concat_str(date, *others, separator=" ").alias(first)

    def blocks() -> Iterator[tuple[pl.DataFrame, int]]:
        for rows, size in table.blocks():
            yield rows.with_columns(joined).drop(others), size

    return replace(table, columns=[name for name, _ in columns], fields=[field for _, field in columns], blocks=blocks)


def _date_and_time(table: Table) -> Sequence[str]:
    """The fields of a date and of a time of day beside it, if the first row has such."""
    found = [column_of(table, "time", None, (name,), "--time") for name in ("date", "time")]
    pair = [field for field in found if field is not None]
    if len(pair) < len(found):
        return []
    first = next((rows.row(0, named=True) for rows, _ in table.blocks() if rows.height), None)
    date, time = (first[field].strip() for field in pair) if first else ("", "")
    is_date = ":" not in re.sub(_MIDNIGHT, "", date)
    return pair if is_date and re.fullmatch(r"[0-9]{1,2}:[0-9]{2}.*|[0-9]{4}|[0-9]{6}", time) else []


def _start(path: Path) -> tuple[bytes, Callable[[Path, bytes, TableRules], Table]]:
    """The first bytes of a file, unpacked, and what reads its format."""
    require_content(path)
    with unpacked(path) as (_, stream):
        start = stream.read(_START)
    if start.startswith(b"PAR1") or path.suffix == ".parquet":
        return start, parquet_table
    if start.startswith((b"ARROW1", ARROW_STREAM)):
        return start, arrow_table
    if start.startswith(ZIP):
        return start, sheet_table
    is_json = start.removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b"{", b"["))
    return start, json_table if is_json else text_table


if __name__ == "__main__":
    _read_all()
