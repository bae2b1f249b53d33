"""Opens a file in the format that its content shows."""

from pathlib import Path

from analytics_service.imports.columnar import arrow_table, parquet_table
from analytics_service.imports.files import unpacked
from analytics_service.imports.records import json_table
from analytics_service.imports.tables import Table, require_content
from analytics_service.imports.text import text_table

_ARROW_STREAM = b"\xff\xff\xff\xff"
_START = 4096


def open_table(path: Path) -> Table:
    """The table of a file, whatever its format. ImportRefused when it is missing, empty or unreadable, and at the end
    of its blocks when it changed meanwhile."""
    require_content(path)
    with unpacked(path) as (_, stream):
        start = stream.read(_START)
    return _recognized(path, start).watched()


def _recognized(path: Path, start: bytes) -> Table:
    if start.startswith(b"PAR1") or path.suffix == ".parquet":
        return parquet_table(path)
    if start.startswith((b"ARROW1", _ARROW_STREAM)):
        return arrow_table(path, is_stream=start.startswith(_ARROW_STREAM))
    if start.removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b"{", b"[")):
        return json_table(path)
    return text_table(path, start)
