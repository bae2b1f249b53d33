"""JSON: an object a line, an array of objects or arrays, which may be in an object, or a page of history as the service
answers it."""

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from analytics_service.errors import ImportRefused
from analytics_service.imports.files import unpacked
from analytics_service.imports.tables import (
    NOT_AN_OBJECT,
    Table,
    TableRules,
    numbered_fields,
    require_names,
    require_unsaid,
    rows_at_once,
    text_frame,
)

# The columns are those of the first rows.
_LOOKED_AT = 1_000
# Of a line, and of the lines of a block. Values of two bytes take thirty times as many in memory.
_MAX_LINE = 4 * 2**20
# Of a file that is a single array or a page. A value takes up to 200 bytes in memory, besides its text.
_MAX_BYTES = 128 * 2**20
_MAX_VALUES = 5_000_000
# Objects within objects, as far as rows and their fields are looked for.
_DEEPEST = 8
# The columns of a page of history, and those of its values: of points, or of candles.
_POINTS, _POINT, _CANDLE = ("t", "asset_id", "symbol"), ("v",), ("o", "h", "l", "c", "n")
# What pages of history have.
_PAGE = {"data.series", "data.points", "data.t", "data.v", "data.c"}
# The columns of arrays of two values, of which the first is so large that it is a time.
_PAIR = ("time", "value")
_LEAST_TIME = 10**8
_Record = dict[str, Any]
# Number, content and end.
_Line = tuple[int, bytes, int]


def json_table(path: Path, _: bytes, rules: TableRules) -> Table:
    """The table of a JSON file."""
    require_unsaid(path, "JSON", rules, "skip", "encoding")
    content = _content(path)
    line, _end, others = content[:_MAX_LINE].partition(b"\n")
    first = _record(line)
    if first and not rules.rows and (others or not _holds_rows(first)):
        require_unsaid(path, "JSON lines", rules, "columns")
        return _line_table(path)
    if len(content) > _MAX_BYTES or sum(map(content.count, (b",", b"[", b"{"))) > _MAX_VALUES:
        raise ImportRefused(
            f"{path} is one JSON value, too large to be read at once. Write an object a line, such as with jq -c '.[]'."
        )
    document = _document(path, content, rules)
    fields, blocks = numbered_fields(path, document.columns), partial(_document_blocks, path, rules)
    return Table(
        path, list(document.columns), fields, len(document.records), document.label, blocks, document.kind,
        _types(document.records),
    )  # fmt: skip


def _content(path: Path) -> bytes:
    """The content of a file, as far as a document may go."""
    with unpacked(path) as (_, stream):
        return stream.read(_MAX_BYTES + 1).removeprefix(b"\xef\xbb\xbf").strip()


class _Document(NamedTuple):
    """The columns of a document, its records (or lists of text), what it is, and what a record is called."""

    columns: Sequence[str]
    records: Sequence[Any]
    kind: str
    label: str


def _document(path: Path, content: bytes, rules: TableRules) -> _Document:
    try:
        document = _parsed(content)
    except RecursionError as error:
        raise ImportRefused(f"{path} is nested too deeply to be read. Take out its rows.") from error
    except ValueError as error:
        raise ImportRefused(f"{path} is not JSON: {error}. It may be damaged or incomplete.") from error
    data = document.get("data") if isinstance(document, dict) else None
    if isinstance(data, dict) and _PAGE & _flat({"data": data}).keys() and rules.rows is None:
        names = _CANDLE if b'"o":' in content else _POINT
        return _Document((*_POINTS, *names), list(_page_rows(path, data, names)), "a page of history", "point")
    name, rows = _rows_of(path, document, rules.rows)
    kind = f"JSON, the array {name}" if name else "a JSON array"
    if all(isinstance(record, dict) for record in rows):
        require_unsaid(path, "JSON with names", rules, "columns")
        records = [*map(_flat, rows)]
        return _Document(_columns(records), records, kind, "row")
    if not all(isinstance(record, list) for record in rows):
        raise ImportRefused(f"The rows of {path} are neither objects nor arrays. Only such rows can be read.")
    columns = list(rules.columns)
    if not columns and len(rows[0]) > 1 and not any(map(_number, rows[0])) and all(map(_text, rows[0])):
        columns = [_text(name) for name in rows.pop(0)]
    elif not columns and len(rows[0]) == len(_PAIR) and _number(rows[0][0]) >= _LEAST_TIME:
        columns = list(_PAIR)
    if not columns:
        raise ImportRefused(
            f"The rows of {path} are arrays, such as {', '.join(map(_text, rows[0]))[:60]!r}, and nothing names their "
            "values. Name all of them, in their order, such as with --columns time,open,high,low,close."
        )
    if rows and rules.columns:
        require_names(f"Row 1 of {path}", columns, rows[0])
    return _Document(columns, [[*map(_text, record)] for record in rows], kind, "row")


def _holds_rows(record: _Record) -> bool:
    """Whether rows are in a lone object, which is none itself."""
    found = (_PAGE & record.keys(), [] in record.values(), dict(_arrays(record, ())), _parallel(record))
    return any(found)


def _rows_of(path: Path, document: Any, named: str | None) -> tuple[str, list[Any]]:
    """The array that the caller names by its path, or else the only array of objects or arrays, with its path."""
    arrays = dict(_arrays(document, ())) or dict(_columnar(document, ()))
    if named is not None:
        found = _at(document, named.split("."))
        found = _parallel(found) or found
        if not isinstance(found, list) or not found:
            known = f" It has {', '.join(arrays)[:200]}." if arrays else ""
            raise ImportRefused(f"{path} has no rows at {named!r}.{known}")
        return named, found
    if not arrays and (document in ([], {}) or (isinstance(document, dict) and [] in document.values())):
        raise ImportRefused(f"{path} is empty: it has no rows.")
    if not arrays:
        raise ImportRefused(
            f"{path} is neither JSON with an object a line, nor has it an array of objects or arrays. Take the rows "
            "out of what is around them, such as with jq."
        )
    if len(arrays) > 1:
        raise ImportRefused(
            f"{path} has several arrays of rows: {', '.join(arrays)[:200]}. Name the one to import, such as "
            f"--rows {next(iter(arrays))}."
        )
    return next(iter(arrays.items()))


def _arrays(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, list[Any]]]:
    """The arrays of objects or arrays in a value that are in no other array, by their paths."""
    if isinstance(value, list) and value and isinstance(value[0], dict | list):
        yield ".".join(path), value
    elif isinstance(value, dict) and len(path) < _DEEPEST:
        for name, part in value.items():
            yield from _arrays(part, (*path, name))


def _columnar(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, list[Any]]]:
    """The rows of objects with an array for each column, by their paths."""
    if isinstance(value, dict) and len(path) < _DEEPEST:
        if rows := _parallel(value):
            yield ".".join(path), rows
        for name, part in value.items():
            yield from _columnar(part, (*path, name))


def _parallel(value: Any) -> list[Any]:
    """The rows of an object with two arrays or more, all of one length: a column each."""
    columns = {name: part for name, part in value.items() if isinstance(part, list)} if isinstance(value, dict) else {}
    if len(columns) < 2 or len({*map(len, columns.values())}) > 1:
        return []
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _at(value: Any, path: Sequence[str]) -> Any:
    """The part of a value at a path of names, and numbers from 0 on in arrays; None without it."""
    for name in path:
        if isinstance(value, dict):
            value = value.get(name)
        else:
            is_index = isinstance(value, list) and name.isdecimal() and int(name) < len(value)
            value = value[int(name)] if is_index else None
    return value


def _flat(record: Any, depth: int = _DEEPEST) -> Any:
    """A record with the fields of objects in it as fields of its own, such as token.symbol."""
    if not depth or not isinstance(record, dict) or not any(isinstance(value, dict) for value in record.values()):
        return record
    flat: _Record = {}
    for name, value in record.items():
        parts = _flat(value, depth - 1) if isinstance(value, dict) else None
        flat |= {name: value} if parts is None else {f"{name}.{part}": inner for part, inner in parts.items()}
    return flat


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return 0


def _parsed(content: bytes) -> Any:
    """A JSON value, with numbers as they are written. ValueError if the content is none."""
    return json.loads(content, parse_int=str, parse_float=str, parse_constant=str)


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
        record = _flat(_parsed(line))
    except (ValueError, RecursionError):
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
        empty = [""] * len(columns)
        rows = [_texts(record, columns) if record is not None else [*empty, NOT_AN_OBJECT] for record in records]
        size, reported = block[-1][2] - reported, block[-1][2]
        yield text_frame(fields, [number for number, _, _ in block], rows), size


def _document_blocks(path: Path, rules: TableRules) -> Iterator[tuple[pl.DataFrame, int]]:
    document = _document(path, _content(path), rules)
    records, columns = document.records, document.columns
    most, fields = rows_at_once(columns), numbered_fields(path, columns)
    for start in range(0, len(records), most):
        part = records[start : start + most]
        rows = [_texts(record, columns) if isinstance(record, dict) else record for record in part]
        yield text_frame(fields, list(range(start + 1, start + len(rows) + 1)), rows), len(rows)


def _page_rows(path: Path, page: _Record, names: Sequence[str]) -> Iterator[list[str]]:
    """The points of a page of history in the form json or columns, with the values `names` of each."""
    try:
        for series in page.get("series", [page]):
            asset = series.get("asset", "")
            asset_id, symbol = asset["id"] if isinstance(asset, dict) else asset, series.get("symbol", "")
            if "points" in series:
                points = [(point["t"], *(point[name] for name in names)) for point in series["points"]]
            else:
                points = list(zip(page["t"], *(series[name] for name in names), strict=True))
            yield from ([_text(t), _text(asset_id), _text(symbol), *map(_text, values)] for t, *values in points)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ImportRefused(
            f"{path} is JSON, but no page of history with values: {type(error).__name__} {error}."
        ) from error
