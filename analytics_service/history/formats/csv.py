"""Points as CSV (RFC 4180): a row for each point, series by series."""

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone, tzinfo
from functools import lru_cache

import polars as pl

from analytics_service.history.formats.base import Format, Points, decimal_strings, join_series
from analytics_service.history.segments import row_index
from analytics_service.market.spreadsheets import csv_field

_HEAD = ("t", "time", "asset_id", "symbol")
_END = "\r\n"
_MINUTE = timedelta(minutes=1)


def encode(points: Points) -> bytes:
    """A header and the points; lines end with CR LF. Nulls, and the asset of a sum, are empty fields."""
    header = ",".join([*_HEAD, *points.values.columns]) + _END
    return b"%b%b" % (header.encode(), b"".join(rows + _END.encode() for rows in _series(points) if rows))


CSV = Format(name="csv", media="text/csv", encode=encode, suffix="csv")


def _series(points: Points) -> list[bytes]:
    begins = pl.Series(points.begins, dtype=pl.Int64).cast(pl.String)
    leads = begins + "," + pl.Series(times(points.begins, points.zone), dtype=pl.String) + ","
    assets = [_asset(asset_id, points.symbols.get(asset_id, "")) for asset_id in points.ids]
    series, bucket = row_index(len(assets), len(leads))
    columns = [decimal_strings(column).fill_null("") for column in points.values.get_columns()]
    rows = pl.DataFrame([leads[bucket].alias("lead"), pl.Series("asset", assets, dtype=pl.String)[series], *columns])
    form = "{}{}" + ",".join("{}" for _ in columns)
    return join_series(rows.select_seq(pl.format(form, *rows.columns)).to_series(), len(assets), _END)


def times(seconds: Sequence[int], zone: tzinfo) -> list[str]:
    """Instants as RFC 3339 with the zone's offset; in UTC if the zone's year is not from 0001 to 9999.

    Historical offsets have seconds, which RFC 3339 lacks, so offsets are rounded to minutes. The time of day follows
    the rounded offset, so the instant is exact.
    """
    return [datetime.fromtimestamp(second, _minutes(second, zone)).isoformat() for second in seconds]


def _minutes(second: int, zone: tzinfo) -> timezone:
    try:
        offset = datetime.fromtimestamp(second, zone).utcoffset() or timedelta()
    except (OverflowError, ValueError):
        offset = timedelta()
    return timezone(round(offset / _MINUTE) * _MINUTE)


@lru_cache(maxsize=10_000)
def _asset(asset_id: str, symbol: str) -> str:
    """The CSV fields of an asset, quoted if needed (rule 7.5, formats), each followed by a comma."""
    fields = pl.select(csv_field(pl.lit(asset_id)).alias("id"), csv_field(pl.lit(symbol)).alias("symbol"))
    return "{},{},".format(*fields.row(0))
