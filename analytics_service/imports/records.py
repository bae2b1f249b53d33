"""JSON: an object a line, an array of objects, or a page of history as the service answers it."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from analytics_service.errors import ImportRefused
from analytics_service.imports.files import unpacked
from analytics_service.imports.tables import NOT_AN_OBJECT, Table, numbered_fields

_BLOCK_ROWS = 100_000
# The columns are those of the first rows.
_LOOKED_AT = 1_000
# Bytes of a file that is a single array or a page.
_MAX_BYTES = 512 * 2**20
_POINTS = ("t", "asset_id", "symbol", "v")
_Record = dict[str, Any]


def json_table(path: Path) -> Table:
    """The table of a JSON file."""
    first = next(_lines(path))[1]
    try:
        is_record = isinstance(record := _parsed(first), dict) and not isinstance(record.get("data"), dict)
    except ValueError:
        is_record = False
    if is_record:
        return _line_table(path)
    with unpacked(path) as (_, stream):
        content = stream.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise ImportRefused(f"{path} is one JSON value of more than {_MAX_BYTES // 2**20} MiB. Write an object a line.")
    try:
        document = _parsed(content)
    except ValueError as error:
        raise ImportRefused(f"{path} is not JSON: {error}. It may be damaged or incomplete.") from error
    if isinstance(document, dict) and isinstance(document.get("data"), dict):
        rows = list(_page_rows(path, document["data"]))
        return _whole_table(path, _POINTS, rows, "a page of history", "point")
    if isinstance(document, list) and all(isinstance(record, dict) for record in document):
        columns = _columns(document)
        rows = [_texts(record, columns) for record in document]
        return replace(_whole_table(path, columns, rows, "a JSON array", "row"), types=_types(document))
    raise ImportRefused(
        f"{path} is neither JSON with an object a line, nor an array of objects, nor a page of history. Take the array "
        "of objects out of what is around it."
    )


def _parsed(content: bytes) -> Any:
    """A JSON value, with numbers as they are written. ValueError if the content is none."""
    try:
        return json.loads(content, parse_int=str, parse_float=str, parse_constant=str)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _lines(path: Path) -> Iterator[tuple[int, bytes, int]]:
    """Number, content and end of each line that is not blank."""
    with unpacked(path) as (raw, stream):
        for number, line in enumerate(stream, start=1):
            if text := line.strip().removeprefix(b"\xef\xbb\xbf"):
                yield number, text, raw.tell()


def _line_table(path: Path) -> Table:
    lines = (_record(line) for _, line, _ in islice(_lines(path), _LOOKED_AT))
    records = [record for record in lines if record is not None]
    columns = _columns(records)
    blocks = partial(_line_blocks, path, columns)
    size = path.stat().st_size
    return Table(path, columns, numbered_fields(columns), size, "line", blocks, "JSON lines", _types(records))


def _record(line: bytes) -> _Record | None:
    try:
        record = _parsed(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def _columns(records: Iterable[_Record]) -> list[str]:
    return list(dict.fromkeys(name for record in records for name in record))


def _types(records: Iterable[_Record]) -> dict[str, pl.DataType]:
    """The type of columns that have arrays or objects, which cannot be read."""
    return {name: pl.Object() for record in records for name, value in record.items() if isinstance(value, dict | list)}


def _texts(record: _Record, columns: Sequence[str]) -> list[str]:
    """The values of a record as text; null, arrays and objects as nothing."""
    return [_text(record.get(name)) for name in columns]


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return ""
    # JSON may have halves of surrogate pairs, which are no text.
    return value if value.isascii() else value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def _line_blocks(path: Path, columns: list[str]) -> Iterator[tuple[pl.DataFrame, int]]:
    lines, reported = _lines(path), 0
    while block := list(islice(lines, _BLOCK_ROWS)):
        records = [_record(line) for _, line, _ in block]
        extra = ["" if record is not None else NOT_AN_OBJECT for record in records]
        rows = [_texts(record or {}, columns) for record in records]
        size, reported = block[-1][2] - reported, block[-1][2]
        yield _frame([number for number, _, _ in block], columns, rows, extra), size


def _whole_table(path: Path, columns: Sequence[str], rows: list[list[str]], shown: str, label: str) -> Table:
    frame = _frame(list(range(1, len(rows) + 1)), columns, rows, [""] * len(rows))
    names = list(columns)
    return Table(path, names, numbered_fields(names), len(rows), label, lambda: iter([(frame, len(rows))]), shown)


def _frame(numbers: list[int], columns: Sequence[str], rows: list[list[str]], extra: list[str]) -> pl.DataFrame:
    schema = dict.fromkeys(numbered_fields(columns), pl.String)
    line = pl.Series("line", numbers, pl.UInt32)
    frame = pl.DataFrame(rows, schema, orient="row")
    return frame.select(line, pl.all(), pl.Series("extra", extra, pl.String))


def _page_rows(path: Path, page: _Record) -> Iterator[list[str]]:
    """The points of a page of history in the form json or columns, in the columns of _POINTS."""
    try:
        for series in page.get("series", [page]):
            asset = series.get("asset", "")
            asset_id, symbol = (asset["id"], "") if isinstance(asset, dict) else (asset, series.get("symbol", ""))
            if "points" in series:
                points = [(point["t"], point["v"]) for point in series["points"]]
            else:
                points = list(zip(page["t"], series["v"], strict=True))
            yield from ([_text(t), _text(asset_id), _text(symbol), _text(v)] for t, v in points)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ImportRefused(
            f"{path} is JSON, but no page of history with values: {type(error).__name__} {error}. Candles cannot be "
            "imported."
        ) from error
