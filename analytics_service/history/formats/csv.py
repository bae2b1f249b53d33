"""Points as CSV (RFC 4180): one row for each of them, series by series."""

from functools import lru_cache

import polars as pl

from analytics_service.history.formats.base import Format, Points, joined, text
from analytics_service.history.formats.times import times
from analytics_service.history.frame import layout
from analytics_service.market.assets import is_formula

_HEAD = ("t", "time", "asset_id", "symbol")
_QUOTED = frozenset('",\r\n')
_END = "\r\n"


def encode(points: Points) -> bytes:
    """A header and the points; lines end with CR LF. Null is an empty field, as is the asset of a single series."""
    header = ",".join([*_HEAD, *points.values.columns]) + _END
    return b"%b%b" % (header.encode(), b"".join(one + _END.encode() for one in _series(points) if one))


CSV = Format(name="csv", media="text/csv", encode=encode, suffix="csv")


def _series(points: Points) -> list[bytes]:
    """The rows of each series."""
    begins = pl.Series(points.begins, dtype=pl.Int64).cast(pl.String)
    leads = begins + "," + pl.Series(times(points.begins, points.zone), dtype=pl.String) + ","
    assets = [",," if points.single else _asset(one, points.symbols.get(one, "")) for one in points.ids]
    series, bucket = layout(len(assets), len(leads))
    columns = [text(column).fill_null("") for column in points.values.get_columns()]
    rows = pl.DataFrame([leads[bucket].alias("lead"), pl.Series("asset", assets, dtype=pl.String)[series], *columns])
    form = "{}{}" + ",".join("{}" for _ in columns)
    return joined(rows.select_seq(pl.format(form, *rows.columns)).to_series(), len(assets), _END)


@lru_cache(maxsize=10_000)
def _asset(asset_id: str, symbol: str) -> str:
    return f"{_field(asset_id)},{_field(symbol)},"


def _field(value: str) -> str:
    """A field, quoted where it must be. A spreadsheet takes a formula that a ' precedes for text (rule 7.5)."""
    value = f"'{value}" if is_formula(value) else value
    return '"{}"'.format(value.replace('"', '""')) if _QUOTED & {*value} else value
