"""Files in any format, packed or not, are read as exactly as they were written; damaged ones are refused."""

import gzip
import io
import json
import os
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from zipfile import ZipFile

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

from analytics_service.errors import ImportRefused
from analytics_service.imports.files import expanded
from analytics_service.imports.layout import ColumnChoice
from analytics_service.imports.opening import within_memory
from tests.unit.history_files import HEADER, IN_UTC, loaded, rows_of, written

SECONDS = [1_704_067_200, 1_704_067_201]
INSTANTS = [datetime.fromtimestamp(second + 0.75, UTC) for second in SECONDS]
PRICES = [Decimal("0.1"), Decimal("12345678901234567.000000000000000001")]
EXPECTED = [("native;BTC", SECONDS[1], PRICES[1]), ("native;ETH", SECONDS[0], PRICES[0])]
TEXTS = list(map(str, PRICES))
CSV = f"{HEADER}{SECONDS[0]},ETH,{TEXTS[0]}\n{SECONDS[1]},BTC,{TEXTS[1]}\n"
RECORDS = [
    {"t": SECONDS[0], "symbol": "ETH", "price": TEXTS[0]},
    {"t": SECONDS[1], "symbol": "BTC", "price": TEXTS[1]},
]
LINES = "\n".join(map(json.dumps, RECORDS))
FRAME = pl.DataFrame({"ts": SECONDS, "symbol": ["ETH", "BTC"], "price": pl.Series(PRICES, dtype=pl.Decimal(38, 18))})


def of(write: Callable[[io.BytesIO], object]) -> bytes:
    buffer = io.BytesIO()
    write(buffer)
    return buffer.getvalue()


def zipped(contents: Mapping[str, str]) -> bytes:
    buffer = io.BytesIO()
    with ZipFile(buffer, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return buffer.getvalue()


PARQUET, ARROW, STREAM = of(FRAME.write_parquet), of(FRAME.write_ipc), of(FRAME.write_ipc_stream)
PLAIN = {
    "commas": CSV,
    "semicolons": CSV.replace(",", ";"),
    "tabs": CSV.replace(",", "\t"),
    "bars": CSV.replace(",", "|"),
    "the delimiter that Excel names": "sep=;\r\n" + CSV.replace(",", ";").replace("\n", "\r\n"),
    "delimiters and quotes in quotes": f'time,symbol,"note; ""a"", b;;;",price\n'
    f'{SECONDS[0]},"ETH","1;2,3 ""x""","{TEXTS[0]}"\n{SECONDS[1]}, BTC,,{TEXTS[1]}\n',
    "line ends of Windows": CSV.replace("\n", "\r\n"),
    "line ends of old Macs": CSV.replace("\n", "\r"),
    "blank lines, and no last line end": f"\n \n{CSV.strip()}",
    "empty fields at the end": CSV.replace("\n", ",,\n").replace("price,,", "price"),
    "a byte order mark": f"\ufeff{CSV}",
    "UTF-16": CSV.encode("utf-16"),
    "UTF-16 from big ends": b"\xfe\xff" + CSV.encode("utf-16-be"),
    "pandas": pd.read_csv(io.StringIO(CSV), dtype=str).to_csv(),
    "JSON lines": LINES,
    "JSON lines with numbers and more": LINES.replace(f'"{TEXTS[1]}"', TEXTS[1]).replace('{"t', '{"data": [{}], "t'),
    "a JSON array": f"\ufeff{json.dumps(RECORDS, indent=1)}",
    "Parquet": PARQUET,
    "Arrow": ARROW,
    "an Arrow stream": STREAM,
}


@pytest.mark.parametrize("name", PLAIN)
def test_the_content_tells_the_format(tmp_path: Path, name: str) -> None:
    content = PLAIN[name]
    path = written(tmp_path, content.encode() if isinstance(content, str) else content, "export.dat")
    assert rows_of(loaded(path)) == EXPECTED


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress])
@pytest.mark.parametrize("name", ["commas", "UTF-16", "JSON lines", "a JSON array", "Arrow", "an Arrow stream"])
def test_a_packed_file_is_unpacked(tmp_path: Path, name: str, pack: Callable[[bytes], bytes]) -> None:
    content = PLAIN[name]
    path = written(tmp_path, pack(content.encode() if isinstance(content, str) else content), "export.dat")
    assert rows_of(loaded(path)) == EXPECTED


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress])
def test_packed_parquet_is_refused(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    with pytest.raises(ImportRefused, match=r"is neither Parquet nor Arrow|cannot be read"):
        loaded(written(tmp_path, pack(PARQUET), "export.dat"))


TIMES = {
    "nanoseconds in UTC": pa.array(INSTANTS, pa.timestamp("ns", "UTC")),
    "a zone": pa.array(INSTANTS, pa.timestamp("us", "America/New_York")),
    "no zone": pa.array([instant.replace(tzinfo=None) for instant in INSTANTS], pa.timestamp("ms")),
    "integers that may be null": pa.array([1000 * second + 750 for second in SECONDS], pa.uint64()),
    "doubles": pa.array([1000 * second + 0.75 for second in SECONDS]),
}
VALUES = {
    "decimals": pa.array(PRICES, pa.decimal128(38, 18)),
    "text": pa.array(TEXTS),
    "a dictionary": pa.array(TEXTS).dictionary_encode(),
}


@pytest.mark.parametrize(
    ("times", "values", "int96"),
    [
        *((times, "decimals", False) for times in TIMES),
        *(("no zone", values, False) for values in VALUES if values != "decimals"),
        *((times, "decimals", True) for times in ("nanoseconds in UTC", "a zone", "no zone")),
    ],
)
def test_columns_of_parquet_may_have_any_type_that_is_exact(
    tmp_path: Path, times: str, values: str, int96: bool
) -> None:
    table = pa.table(
        {
            "date": TIMES[times],
            "ticker": pa.array(["ETH", "BTC"]).dictionary_encode(),
            "usd": VALUES[values],
            "tags": [["a"], []],
            "more": [{"x": 1}, None],
        }
    )
    path = tmp_path / "prices.parquet"
    pq.write_table(table, path, use_deprecated_int96_timestamps=int96)
    assert rows_of(loaded(path, times=IN_UTC)) == EXPECTED


def test_dates_and_floats_of_parquet(tmp_path: Path) -> None:
    """A float is its shortest text, which is most likely what was meant."""
    path = tmp_path / "prices.parquet"
    table = pa.table(
        {"date": [date(2024, 1, 1)], "symbol": ["A"], "price": [1e-7], "close": pa.array([0.1], pa.float32())}
    )
    pq.write_table(table.drop_columns("close"), path)
    last = SECONDS[0] + 86_399
    assert rows_of(loaded(path, times=IN_UTC)) == [("native;A", last, Decimal("1e-7"))]
    pq.write_table(table.drop_columns("price"), path)
    assert rows_of(loaded(path, times=IN_UTC)) == [("native;A", last, Decimal("0.1"))]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        ("\ufeff\n \n", "is empty. Its first line must name the columns"),
        (gzip.compress(b"", mtime=0), "is empty"),
        (gzip.compress(CSV.encode() * 99, mtime=0)[:-9], "damaged or incomplete"),
        (zstd.compress(CSV.encode() * 99)[:-5], "damaged or incomplete"),
        (gzip.compress(CSV.encode(), mtime=0) + b"junk", "damaged or incomplete"),
        (gzip.compress(zstd.compress(CSV.encode()), mtime=0), "Unpack archives"),
        (zipped({"a.csv": CSV, "b.csv": CSV}), "has 2 files. Unpack it, and import the folder"),
        (zipped({"a.csv": CSV})[:-30], "damaged or incomplete"),
        (CSV.encode("utf-16-le"), "byte order mark"),
        (CSV.replace("E", "\0"), "NUL bytes"),
        (PARQUET[:-20], "cannot be read"),
        (ARROW[:-20], "cannot be read"),
        (STREAM[:-99], "cannot be read"),
        (HEADER.replace("\n", "x" * 70_000), "first line .* is too long"),
        (f'{HEADER}1704067200,"{"x" * 140_000}",1\n', "a field has more than 131,072 characters"),
        (f"{HEADER}{'x' * 70_000_000}", "no line ends within"),
        (f"{LINES}\nnot JSON\n", "line 3: .*the line is not a JSON object"),
        (LINES.replace('"ETH"', '"\\ud800"'), "bytes that are not UTF-8"),
        (LINES.replace(f'"{TEXTS[0]}"', "Infinity"), "'1704067200,ETH,Infinity': the value is not a number"),
        (LINES.replace(f'"{TEXTS[0]}"', "[1]"), "Column price .* is neither text, number nor time|is of type"),
        ('{"t": [1], "symbol": [], "price": {}}\n{}', "Column t .* is of type Object"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": ' * 900 + "1" + "}" * 900, "none has a usual name of the time"),
        ("[1704067200000, 1.5]", "neither JSON with an object a line, nor has it an array of objects"),
        ("[]", "is empty: it has no rows"),
        ("{}", "is empty: it has no rows"),
        ('{"data": []}', "is empty: it has no rows"),
        ("[[1, 2, 3]]", "arrays, such as '1, 2, 3', .*--columns time,open"),
        ('{"prices": [[1, 2]], "a": {"caps": [[1, 2]]}}', "several arrays of rows: prices, a.caps.*--rows prices"),
        ('{"data": {"series": 5}}', "no page of history"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_by_name(tmp_path: Path, content: str | bytes, message: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(ImportRefused, match=message) as refusal:
        loaded(path)
    assert str(path) in str(refusal.value)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([[1.0]]), r"Column price .* List\(Float64\)"),
        (pa.array([b"1"]), "Column price .* Binary"),
        (pa.array([Decimal(1)], pa.decimal256(50, 18)), "decimals of 50 digits, and only 38"),
        (pa.array([INSTANTS[0]], pa.timestamp("us", "+05:30")), "Write times in UTC"),
        (pa.array([True]), "the value is not a number"),
        (pa.array([None], pa.float64()), "there are no rows with a value"),
        (pa.array([float("-inf")]), "the value is not a number"),
        (pa.array([1e22]), "the value is not below 10^20".replace("^", r"\^")),
    ],
)
def test_columns_that_cannot_be_read_are_refused(tmp_path: Path, column: pa.Array, message: str) -> None:
    path = tmp_path / "prices.parquet"
    pq.write_table(pa.table({"ts": SECONDS[:1], "symbol": ["A"], "price": column}), path)
    with pytest.raises(ImportRefused, match=message):
        loaded(path)


def test_files_are_given_by_name_folder_or_glob(tmp_path: Path) -> None:
    names = ["b.csv", "a.csv", "c.json", "a.csv.rejected.csv", "a.csv.0123abcd.part", ".hidden"]
    paths = {name: written(tmp_path, CSV, name) for name in names}
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    assert expanded([str(tmp_path)]) == [paths["a.csv"], paths["b.csv"], paths["c.json"]]
    assert expanded([str(tmp_path / "*.csv"), str(paths["c.json"])]) == [
        paths["a.csv"],
        paths["b.csv"],
        paths["c.json"],
    ]
    written(tmp_path, CSV, "[x].csv")
    assert expanded([str(tmp_path / "[x].csv")]) == [tmp_path / "[x].csv"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.csv", "missing.csv is not a file. Check the name"),
        ("*.parquet", r"No file matches .*\*\.parquet"),
        ("a**b", r"a\*\*b"),
        ("folder", "The folder .* has no files"),
        ("pipe", "pipe is not a file"),
        ("a\udcff.csv", "is not UTF-8. Rename it"),
    ],
)
def test_a_name_of_no_file_is_refused(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ImportRefused, match=message):
        expanded([str(tmp_path / name)])


def test_a_file_is_given_once(tmp_path: Path) -> None:
    path = written(tmp_path, CSV)
    with pytest.raises(ImportRefused, match="given twice"):
        expanded([str(tmp_path), str(path)])


STARTS = [
    b"",
    b"\x1f\x8b",
    b"\x28\xb5\x2f\xfd",
    b"PAR1",
    b"ARROW1",
    b"\xff\xff\xff\xff",
    b"PK\x03\x04",
    b"{",
    b"[",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
]
STARTS += [HEADER.encode(), LINES.encode(), b'{"data": {"series": [', b'{"a": [[']


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.json", b"[" + b"{}," * 2_500_000 + b"{}]", "is one JSON value, too large to be read at once"),
        ("a.json", LINES.encode() + b'\n{"t": "' + b"1" * 4 * 2**20, "Line 3 of .* is longer than 4 MiB"),
        ("a.csv", b"t\n1700000000\n" + b"1" * 9 * 2**20, "no line ends within 8,388,608 characters"),
        ("a.csv", b"t" + b",a" * 10_000, "has 10,001 columns, and at most 10,000 can be read"),
        ("a.parquet", of(pl.repeat("x" * 2**17, 3_000, eager=True).to_frame("t").write_parquet), "has too much text"),
    ],
    ids=["one value", "a line of JSON", "a line of text", "columns", "text"],
)
def test_what_unpacks_to_more_than_memory_may_hold_is_refused(
    tmp_path: Path, name: str, content: bytes, reason: str
) -> None:
    with pytest.raises(ImportRefused, match=reason):
        loaded(
            written(tmp_path, gzip.compress(content) if name != "a.parquet" else content, name),
            choice=ColumnChoice("t", "t", symbol="ETH"),
        )


def test_arrow_and_parquet_that_need_too_much_memory_are_refused_before_they_are_read(tmp_path: Path) -> None:
    """A file of some kilobytes that unpacks to 960 MB."""
    zeros = pl.repeat(0, 10_000_000, dtype=pl.Int64, eager=True)
    frame = pl.DataFrame({f"column {number}": zeros for number in range(12)})
    frame.write_ipc(bomb := tmp_path / "bomb.arrow", compression="zstd")
    others = [written(tmp_path, CSV), written(tmp_path, PARQUET, "a.parquet"), written(tmp_path, ARROW, "a.arrow")]
    assert within_memory(others) == others
    with pytest.raises(ImportRefused, match=r"bomb\.arrow cannot be read within 768 MiB of memory"):
        within_memory([*others, bomb])


@given(st.sampled_from(STARTS), st.binary(max_size=200))
def test_any_bytes_are_imported_or_refused(tmp_path_factory: pytest.TempPathFactory, start: bytes, rest: bytes) -> None:
    path = written(tmp_path_factory.mktemp("any"), start + rest)
    try:
        loaded(path)
    except ImportRefused as refusal:
        assert str(path) in str(refusal)
