"""JSON: an object a line, an array of objects, or a page of history as the service answers it."""

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from analytics_service.errors import ImportRefused
from analytics_service.imports.files import unpacked
from analytics_service.imports.tables import NOT_AN_OBJECT, Table, numbered_fields, rows_at_once

# The columns are those of the first rows.
_LOOKED_AT = 1_000
# Of a line, and of the lines of a block. Values of two bytes take thirty times as many in memory.
_MAX_LINE = 4 * 2**20
# Of a file that is a single array or a page. A value takes up to 200 bytes in memory, besides its text.
_MAX_BYTES = 128 * 2**20
_MAX_VALUES = 5_000_000
_POINTS = ("t", "asset_id", "symbol", "v")
_Record = dict[str, Any]
# Number, content and end.
_Line = tuple[int, bytes, int]


def json_table(path: Path, _: bytes) -> Table:
    """The table of a JSON file."""
    content = _content(path)
    first = _record(content[:_MAX_LINE].partition(b"\n")[0])
    if first is not None and not isinstance(first.get("data"), dict):
        return _line_table(path)
    if len(content) > _MAX_BYTES or sum(map(content.count, (b",", b"[", b"{"))) > _MAX_VALUES:
        raise ImportRefused(
            f"{path} is one JSON value, too large to be read at once. Write an object a line, such as with jq -c '.[]'."
        )
    columns, records, kind, label = _document(path, content)
    fields, blocks = numbered_fields(path, columns), partial(_document_blocks, path, columns)
    return Table(path, list(columns), fields, len(records), label, blocks, kind, _types(records))


def _content(path: Path) -> bytes:
    """The content of a file, as far as a document may go."""
    with unpacked(path) as (_, stream):
        return stream.read(_MAX_BYTES + 1).removeprefix(b"\xef\xbb\xbf").strip()


def _document(path: Path, content: bytes) -> tuple[Sequence[str], Sequence[Any], str, str]:
    """Columns of a document, its records (or lists of text), what it is, and what a record is called."""
    try:
        document = _parsed(content)
    except ValueError as error:
        raise ImportRefused(f"{path} is not JSON: {error}. It may be damaged or incomplete.") from error
    if isinstance(document, dict) and isinstance(document.get("data"), dict):
        return _POINTS, list(_page_rows(path, document["data"])), "a page of history", "point"
    if isinstance(document, list) and all(isinstance(record, dict) for record in document):
        return _columns(document), document, "a JSON array", "row"
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


def _lines(path: Path, most: int) -> Iterator[list[_Line]]:
    """The lines that are not blank, in groups of at most `most`."""
    block: list[_Line] = []
    size = 0
    with unpacked(path) as (raw, stream):
        for number, line in enumerate(iter(partial(stream.readline, _MAX_LINE), b""), start=1):
            if len(line) == _MAX_LINE:
                raise ImportRefused(f"Line {number} of {path} is longer than {_MAX_LINE // 2**20} MiB.")
            if text := line.strip().removeprefix(b"\xef\xbb\xbf"):
                block.append((number, text, raw.tell()))
                size += len(text)
            if len(block) == most or size > _MAX_LINE:
                yield block
                block, size = [], 0
    if block:
        yield block


def _line_table(path: Path) -> Table:
    records = [record for _, line, _ in next(_lines(path, _LOOKED_AT)) if (record := _record(line)) is not None]
    columns = _columns(records)
    fields, size = numbered_fields(path, columns), path.stat().st_size
    blocks = partial(_line_blocks, path, columns, fields)
    return Table(path, columns, fields, size, "line", blocks, "JSON lines", _types(records))


def _record(line: bytes) -> _Record | None:
    try:
        record = _parsed(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def _columns(records: Iterable[_Record]) -> list[str]:
    return list(dict.fromkeys(name for record in records for name in record))


def _types(records: Iterable[Any]) -> dict[str, pl.DataType]:
    """The type of columns that have arrays or objects, which cannot be read."""
    values = (item for record in records if isinstance(record, dict) for item in record.items())
    return {name: pl.Object() for name, value in values if isinstance(value, dict | list)}


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


def _line_blocks(path: Path, columns: list[str], fields: list[str]) -> Iterator[tuple[pl.DataFrame, int]]:
    reported = 0
    for block in _lines(path, rows_at_once(columns)):
        records = [_record(line) for _, line, _ in block]
        extra = ["" if record is not None else NOT_AN_OBJECT for record in records]
        rows = [_texts(record or {}, columns) for record in records]
        size, reported = block[-1][2] - reported, block[-1][2]
        yield _frame([number for number, _, _ in block], fields, rows, extra), size


def _document_blocks(path: Path, columns: Sequence[str]) -> Iterator[tuple[pl.DataFrame, int]]:
    _, records, _, _ = _document(path, _content(path))
    most, fields = rows_at_once(columns), numbered_fields(path, columns)
    for start in range(0, len(records), most):
        part = records[start : start + most]
        rows = [_texts(record, columns) if isinstance(record, dict) else record for record in part]
        yield _frame(list(range(start + 1, start + len(rows) + 1)), fields, rows, [""] * len(rows)), len(rows)


def _frame(numbers: list[int], fields: list[str], rows: list[list[str]], extra: list[str]) -> pl.DataFrame:
    line = pl.Series("line", numbers, pl.UInt32)
    frame = pl.DataFrame(rows, dict.fromkeys(fields, pl.String), orient="row")
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
