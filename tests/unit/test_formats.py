"""Formats of history pages, each read by the programs that people use, against the values that were written."""

import csv
import io
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import ipc, parquet

from analytics_service.history.formats import FORMATS
from analytics_service.history.formats.base import Points
from analytics_service.history.formats.csv import times
from tests import oracle

HOUR = 3600
BEGIN = 1_772_366_400  # 2026-03-01 12:00:00 UTC
# Of the greatest and the finest value, and of many digits.
NUMBERS = (
    "99999999999999999999.999999999999999999",
    "0.000000000000000001",
    "0",
    "100",
    "1572.5",
    "3.141592653589793238",
)
DECIMAL = pa.decimal128(38, 18)
Value = str | int | None
VALUE, OHLC = ("v",), ("o", "h", "l", "c", "n")


@dataclass(frozen=True)
class Page:
    """A page as a table: for each asset the values of each bucket, one for each column."""

    columns: Sequence[str]
    begins: list[int]
    series: dict[str, list[tuple[Value, ...]]]
    symbols: dict[str, str]
    zone: str = "UTC"
    single: bool = False

    def encoded(self, name: str) -> bytes:
        rows = [values for points in self.series.values() for values in points]
        types = {name: pl.UInt32 if name == "n" else pl.String for name in self.columns}
        values = pl.DataFrame(rows, schema=types, orient="row")
        points = Points(self.begins, list(self.series), values, self.single, self.symbols, ZoneInfo(self.zone))
        return FORMATS[name].encode(points)

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """The points, series by series: t, id, symbol and values. A single series has no id and symbol."""
        return [
            (begin, *((None, None) if self.single else (asset_id, self.symbols.get(asset_id))), *map(number, values))
            for asset_id, points in self.series.items()
            for begin, values in zip(self.begins, points, strict=True)
        ]


def number(value: object) -> object:
    return Decimal(value) if isinstance(value, str) else value


def ohlc(numbers: Sequence[str | None]) -> list[tuple[Value, ...]]:
    """Buckets with these values, and 0 as the least; with up to two observations, and none where the value is null."""
    return [
        (None, None, None, None, 0) if number is None else (number, number, "0", number, index % 3)
        for index, number in enumerate(numbers)
    ]


def value(numbers: Sequence[str | None]) -> list[tuple[Value, ...]]:
    return [(number,) for number in numbers]


MANY = {
    "native;whole": NUMBERS,
    "token;0xAb": [None, None, *NUMBERS[:4]],
    "token;none": [None] * 6,
    "token;gap": ["1", None, "2", None, None, "3"],
    "native;ibc/last": NUMBERS[::-1],
}
SYMBOLS = {"native;whole": "WHOLE", "token;0xAb": "AB", "token;none": "AB", "native;ibc/last": '=LAST, "quoted"'}
BEGINS = [BEGIN + HOUR * bucket for bucket in range(6)]
PAGES = {
    "values": Page(VALUE, BEGINS, {asset_id: value(numbers) for asset_id, numbers in MANY.items()}, SYMBOLS),
    "ohlc": Page(OHLC, BEGINS, {asset_id: ohlc(numbers) for asset_id, numbers in MANY.items()}, SYMBOLS),
    "single": Page(VALUE, BEGINS, {"": value(MANY["token;gap"])}, {}, single=True),
    "full": Page(VALUE, BEGINS, {"native;whole": value(NUMBERS), "token;0xAb": value(NUMBERS)}, SYMBOLS),
    "full single ohlc": Page(OHLC, BEGINS, {"": ohlc(NUMBERS)}, {}, single=True),
    "no buckets": Page(OHLC, [], {asset_id: [] for asset_id in MANY}, SYMBOLS),
    "no buckets of a single series": Page(VALUE, [], {"": []}, {}, single=True),
    "many nulls": Page(
        VALUE,
        [BEGIN + HOUR * bucket for bucket in range(601)],
        {
            "native;even": value([str(bucket) if bucket % 2 == 0 else None for bucket in range(601)]),
            "token;none": value([None] * 601),
            "token;last": value([*[None] * 600, "600"]),
        },
        SYMBOLS,
    ),
    "no series": Page(VALUE, BEGINS, {}, SYMBOLS),
}


def typed(fields: Sequence[str]) -> tuple[Any, ...]:
    """A row of CSV: t, id, symbol and values, without the time for people."""
    t, _, asset_id, symbol, *values = (field or None for field in fields)
    symbol = symbol.removeprefix("'") if symbol else None
    numbers = [None if text is None else Decimal(text) for text in values]
    return int(t or ""), asset_id, symbol, *numbers


def unix(row: Sequence[Any]) -> tuple[Any, ...]:
    """A row of a binary format: t as unix seconds."""
    t, *others = row
    assert t.utcoffset() == timedelta()
    return int(t.timestamp()), *others


def by_pandas(frame: pd.DataFrame) -> list[Sequence[Any]]:
    return frame.astype(object).where(frame.notna(), None).values.tolist()


def by_duckdb(kind: str, body: bytes, folder: Path) -> list[Sequence[Any]]:
    """The rows of a file, or of a stream that pyarrow passes on; t as unix seconds where it is a time."""
    file = folder / "page"
    file.write_bytes(body)
    with duckdb.connect() as connection:
        if kind == "csv":
            return connection.execute(f"SELECT * FROM read_csv('{file}', all_varchar=true, header=true)").fetchall()
        if kind == "arrow":
            connection.register("page", ipc.open_stream(body).read_all())
        source = "page" if kind == "arrow" else f"read_parquet('{file}')"
        return connection.execute(f"SELECT epoch_ms(t) / 1000, * EXCLUDE (t) FROM {source}").fetchall()


def table_rows(table: pa.Table) -> list[Sequence[Any]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


READERS: dict[str, tuple[str, Callable[[bytes, Path], list[tuple[Any, ...]]]]] = {
    "csv by Python": ("csv", lambda body, _: [*map(typed, [*csv.reader(io.StringIO(body.decode(), newline=""))][1:])]),
    "csv by Polars": ("csv", lambda body, _: [*map(typed, pl.read_csv(body, infer_schema=False).rows())]),
    "csv by pandas": (
        "csv",
        lambda body, _: [*map(typed, pd.read_csv(io.BytesIO(body), dtype=str, keep_default_na=False).values.tolist())],
    ),
    "csv by DuckDB": ("csv", lambda body, folder: [*map(typed, by_duckdb("csv", body, folder))]),
    "arrow by pyarrow": ("arrow", lambda body, _: [*map(unix, table_rows(ipc.open_stream(body).read_all()))]),
    "arrow by Polars": ("arrow", lambda body, _: [*map(unix, pl.read_ipc_stream(body).rows())]),
    "arrow by pandas": ("arrow", lambda body, _: [*map(unix, by_pandas(ipc.open_stream(body).read_pandas()))]),
    "arrow by DuckDB": ("arrow", lambda body, folder: by_duckdb("arrow", body, folder)),
    "parquet by pyarrow": ("parquet", lambda body, _: [*map(unix, table_rows(parquet.read_table(io.BytesIO(body))))]),
    "parquet by Polars": ("parquet", lambda body, _: [*map(unix, pl.read_parquet(io.BytesIO(body)).rows())]),
    "parquet by pandas": ("parquet", lambda body, _: [*map(unix, by_pandas(pd.read_parquet(io.BytesIO(body))))]),
    "parquet by DuckDB": ("parquet", lambda body, folder: by_duckdb("parquet", body, folder)),
}


# The reader that the format is made for reads every page; the others have to cope with its types, also of no rows.
REFERENCES = ("csv by Python", "arrow by pyarrow", "parquet by pyarrow")
READ = [(reader, page) for reader in REFERENCES for page in PAGES if page not in ("values", "full single ohlc")]
READ += [(reader, page) for reader in READERS if reader not in REFERENCES for page in ("ohlc", "no buckets")]


@pytest.mark.parametrize(("reader", "page"), READ)
def test_a_table_has_every_point_exactly(reader: str, page: str, tmp_path: Path) -> None:
    name, read = READERS[reader]
    assert read(PAGES[page].encoded(name), tmp_path) == PAGES[page].rows


def require_json(page: Page) -> None:
    """Check both forms of the page in JSON: a point for each bucket, and an array for each column."""
    body = json.loads(page.encoded("json"))
    shown = {"": body} if page.single else {series["asset"]["id"]: series["points"] for series in body}
    assert shown == {
        asset_id: [
            {"t": t, **dict(zip(page.columns, point, strict=True))}
            for t, point in zip(page.begins, points, strict=True)
        ]
        for asset_id, points in page.series.items()
    }
    symbols = [] if page.single else [series["symbol"] for series in body]
    assert symbols == [page.symbols.get(asset_id) for asset_id in page.series if not page.single]
    assert json.loads(page.encoded("columns")) == [
        ({} if page.single else {"asset": asset_id, "symbol": page.symbols.get(asset_id)})
        | {column: [point[place] for point in points] for place, column in enumerate(page.columns)}
        for asset_id, points in page.series.items()
    ]


@pytest.mark.parametrize("name", PAGES)
def test_json_has_every_point_in_both_of_its_forms(name: str) -> None:
    require_json(PAGES[name])


TEXTS = st.decimals(0, 10**20 - 1, places=18, allow_nan=False, allow_infinity=False).map(oracle.text)


@given(
    table=st.integers(1, 4).flatmap(
        lambda count: st.lists(st.lists(st.none() | TEXTS, min_size=count, max_size=count), min_size=1, max_size=4)
    ),
    is_ohlc=st.booleans(),
)
def test_all_formats_of_a_random_page_agree(table: list[list[str | None]], is_ohlc: bool) -> None:
    values, columns = (ohlc, OHLC) if is_ohlc else (value, VALUE)
    series = {f"native;{place}": values(numbers) for place, numbers in enumerate(table)}
    page = Page(columns, BEGINS[: len(table[0])], series, {})
    require_json(page)
    for reader in REFERENCES:
        name, read = READERS[reader]
        assert read(page.encoded(name), Path()) == page.rows


@pytest.mark.parametrize("name", ["ohlc", "single", "no series"])
def test_binary_columns_have_exact_types_and_dictionaries(name: str) -> None:
    page = PAGES[name]
    expected = {"t": pa.timestamp("ms", "UTC"), "asset_id": "dictionary", "symbol": "dictionary"}
    expected |= {column: pa.int64() if column == "n" else DECIMAL for column in page.columns}
    stream = ipc.open_stream(page.encoded("arrow")).schema
    for schema in (stream, parquet.read_schema(io.BytesIO(page.encoded("parquet")))):
        kinds = {field.name: "dictionary" if pa.types.is_dictionary(field.type) else field.type for field in schema}
        assert kinds == expected
    assert {stream.field(name).type.value_type for name in ("asset_id", "symbol")} <= {pa.string(), pa.large_string()}


def test_a_csv_file_has_a_header_and_ends_lines_as_rfc_4180_says() -> None:
    """A symbol that a spreadsheet would run is text. A single series has no asset."""
    many = Page(VALUE, BEGINS[:2], {"token;0xAb": value(["1.5", None])}, {"token;0xAb": '=A,"B"'}, "Asia/Kathmandu")
    assert many.encoded("csv") == (
        b"t,time,asset_id,symbol,v\r\n"
        b'1772366400,2026-03-01T17:45:00+05:45,token;0xAb,"\'=A,""B""",1.5\r\n'
        b'1772370000,2026-03-01T18:45:00+05:45,token;0xAb,"\'=A,""B""",\r\n'
    )
    single = replace(PAGES["full single ohlc"], begins=BEGINS[:2], series={"": ohlc(["3", None])})
    assert single.encoded("csv") == (
        b"t,time,asset_id,symbol,o,h,l,c,n\r\n"
        b"1772366400,2026-03-01T12:00:00+00:00,,,3,3,0,3,0\r\n"
        b"1772370000,2026-03-01T13:00:00+00:00,,,,,,,0\r\n"
    )


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia"])
def test_times_have_the_zones_offset(zone: str, draw: random.Random) -> None:
    """Also in ranges of hours and minutes, whose days are looked at as a whole, and over changes of clocks."""
    begin, step = draw.randrange(BEGIN, 2 * BEGIN), draw.choice([60, 420, HOUR, 5 * HOUR])
    hours = range(BEGIN - 2 * HOUR, BEGIN + 366 * 24 * HOUR, HOUR)
    for seconds in ([*hours[::21], 0, 1], hours, hours[:1], hours[:0], range(begin, begin + 300 * step, step)):
        written = times(seconds, ZoneInfo(zone))
        assert [int(datetime.fromisoformat(text).timestamp()) for text in written] == [*seconds]
        assert written == [datetime.fromtimestamp(second, ZoneInfo(zone)).isoformat() for second in seconds]


def test_offsets_of_long_ago_are_rounded_to_minutes_and_the_instant_is_exact() -> None:
    """Monrovia was 44 minutes and 30 seconds behind UTC."""
    assert times([0, 45], ZoneInfo("Africa/Monrovia")) == ["1969-12-31T23:16:00-00:44", "1969-12-31T23:16:45-00:44"]


@pytest.mark.parametrize("name", ["arrow", "parquet"])
def test_the_same_points_have_the_same_bytes_whatever_lies_behind_nulls(name: str) -> None:
    """Polars keeps values that were set to null, and formats would send them."""
    values = pl.Series("v", [Decimal(1), Decimal(2)], dtype=pl.Decimal(38, 18))
    hidden = values.set(pl.Series([True, False]), None)
    clean = pl.Series("v", [None, Decimal(2)], dtype=pl.Decimal(38, 18))
    bodies = {
        FORMATS[name].encode(Points(BEGINS[:2], ["token;a"], column.to_frame(), single=False))
        for column in (hidden, clean)
    }
    assert len(bodies) == 1
