"""Names two rows of an import that disagree about an asset at an instant, for whoever has to settle it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from analytics_service.errors import ImportRefused
from analytics_service.imports.names import AssetNames
from analytics_service.imports.reading import ReadFile, placed_rows
from analytics_service.market.instants import instant, shown


def disagreement(files: Sequence[ReadFile], names: AssetNames, found: tuple[str, int, int]) -> ImportRefused:
    """The refusal of rows that disagree about the asset, second and nanoseconds that `found` has. Reads the files
    again."""
    asset_id, second, _ = found
    rows = _rows(files, names, found)
    file, row = next(rows)
    values = [name for name in row if name in file.rules.preset.histories]
    other, differs = next(pair for pair in rows if any(pair[1][name] != row[name] for name in values))
    both = " and ".join(_place(*pair) for pair in ((file, row), (other, differs)))
    columns = [
        title
        for title, field in zip(file.table.columns, file.table.fields, strict=True)
        if other.table.columns == file.table.columns and row[field] != differs[field]
    ]
    which = f" They differ in {', '.join(columns)}." if columns else ""
    symbol = file.rules.choice.symbol
    if symbol and other is not file:
        which = f" --symbol says that both files are of {symbol}; if not, import each with its own."
    return ImportRefused(
        f"Two rows have different values of {asset_id or 'the sum'} at {shown(instant(second))}: {both}.{which} Leave "
        "out what is not meant, or say --last-wins to take the later."
    )


def cited(files: Sequence[ReadFile], names: AssetNames, asset_id: str, second: int) -> str:
    """The last row of an asset at a second, in words. Reads the files again."""
    *_, place = (_place(*row) for row in _rows(files, names, (asset_id, second, None)))
    return place


def _place(file: ReadFile, row: Mapping[str, Any]) -> str:
    written = file.table.delimiter.join(row[field] for field in file.table.fields)
    return file.table.cite((row["line"], written))


def _rows(
    files: Sequence[ReadFile], names: AssetNames, found: tuple[str, int, int | None]
) -> Iterator[tuple[ReadFile, Mapping[str, Any]]]:
    """The rows of an asset at an instant, or at all of a second, in order, with their fields as they are written."""
    asset_id, second, tick = found
    at = (pl.col("asset") == names.code_of(asset_id)) & (pl.col("observed_at") == second)
    at &= tick is None or pl.col("tick") == tick
    for file in files:
        for rows in placed_rows(file, names):
            yield from ((file, row) for row in rows.filter(at).iter_rows(named=True))
