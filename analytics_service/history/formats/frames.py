"""Points as one table of typed columns, from which binary formats are written."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain

import polars as pl

from analytics_service.errors import ParameterInvalid
from analytics_service.history.formats.base import COUNT, Points, Tables
from analytics_service.history.sample import layout, transposed
from analytics_service.store.columns import DECIMAL

_TIME = pl.Datetime("ms", "UTC")


def frame(points: Points, tables: Tables) -> pl.DataFrame:
    """Columns t, asset_id, symbol and those of the points; one row a point, series by series, a chunk for each part.

    Times are in milliseconds, the coarsest unit that Parquet has; values have 38 digits, 18 of them decimals; ids and
    symbols are dictionaries of those on the page, and null for a single series.
    """
    parts = [(tuple(ids), _numbers(points, values, len(ids))) for ids, values in tables]
    keys = [_keys(points, ids) for ids, _ in parts]
    asset_ids, symbols = (tuple(chain.from_iterable(words)) for words in zip(*keys, strict=True)) if keys else ((), ())
    begins = (pl.Series("t", points.begins, dtype=pl.Int64) * 1000).cast(_TIME)
    frames = [
        pl.DataFrame(
            [
                begins[layout(len(some), len(begins))[1]],
                _repeated("asset_id", some, asset_ids, len(begins)),
                _repeated("symbol", named, symbols, len(begins)),
                *numbers,
            ]
        )
        for (some, named), (_, numbers) in zip(keys, parts, strict=True)
    ]
    return pl.concat(frames) if frames else _no_rows(points)


def _keys(points: Points, ids: Sequence[str]) -> tuple[tuple[str | None, ...], tuple[str | None, ...]]:
    """The ids and symbols to show of some series."""
    if points.single:
        return (None,), (None,)
    return tuple(ids), tuple(points.symbols.get(asset_id) for asset_id in ids)


def _numbers(points: Points, values: pl.DataFrame, series: int) -> list[pl.Series]:
    """The columns of some series, series by series, with values as exact numbers. ParameterInvalid if rounding to
    `digits` takes a value up to 10^20, which has one digit too many for the type."""
    try:
        numbers = [values[name].cast(_type(name)) for name in points.columns]
    except pl.exceptions.InvalidOperationError:
        raise ParameterInvalid(
            "digits",
            "rounds a value up to 10^20, which decimal128(38, 18) cannot hold; ask for more digits, or for json",
        ) from None
    return [transposed(one, len(points.begins), series) for one in numbers]


def _type(column: str) -> pl.DataType:
    return pl.Int64() if column == COUNT else DECIMAL


@lru_cache(maxsize=8)
def _repeated(name: str, some: tuple[str | None, ...], words: tuple[str | None, ...], count: int) -> pl.Series:
    """A dictionary column over all `words`, with each of `some` repeated `count` times."""
    return pl.Series(name, some, dtype=_dictionary(words))[layout(len(some), count)[0]]


def _dictionary(words: Iterable[str | None]) -> pl.Enum:
    return pl.Enum(list(dict.fromkeys(word for word in words if word is not None)))


def _no_rows(points: Points) -> pl.DataFrame:
    numbers = {name: _type(name) for name in points.columns}
    return pl.DataFrame(schema={"t": _TIME, "asset_id": _dictionary(()), "symbol": _dictionary(()), **numbers})
