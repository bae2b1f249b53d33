"""Files become the same rows of text in every format, or are refused by their first line that differs."""

import gzip
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
from backports import zstd

from analytics_service.errors import UserError
from analytics_service.importing.readers import RECIPES, open_table

ROWS = [(3, "1704067200", "1.5"), (4, "1704067260", None), (6, "x,y", "0.123456789012345678")]
CSV = 'time,note,value\n\n1704067200,a,1.5\r\n1704067260,b,\n\n"x,y",c,0.123456789012345678\n'
NDJSON = (
    '{"time": 1704067200, "value": 1.5, "note": {"a": [1]}}\n{"time": "1704067260", "value": null}\n\n'
    '{"time": "x,y", "value": 0.123456789012345678}'
)

ARRAY = "[" + NDJSON.replace("}\n\n", "},").replace("}\n", "},") + "]"


def read(path: Path, *columns: str, separator: str = ",") -> list[tuple[object, ...]]:
    return [row for rows, _ in open_table(path, separator).batches(columns) for row in rows.iter_rows()]


@pytest.mark.parametrize(
    ("name", "content", "lines"),
    [
        pytest.param("a.csv", CSV.encode(), (3, 4, 6), id="csv"),
        pytest.param("a.csv", b"\xef\xbb\xbf" + CSV.rstrip().encode(), (3, 4, 6), id="csv with a byte order mark"),
        pytest.param("a.csv.gz", gzip.compress(CSV.encode()), (3, 4, 6), id="gzip"),
        pytest.param("a.csv.zst", zstd.compress(CSV.encode()), (3, 4, 6), id="zstd"),
        pytest.param("a.json", NDJSON.encode(), (1, 2, 4), id="ndjson"),
        pytest.param("a.json", ARRAY.encode(), (1, 2, 3), id="json"),
    ],
)
def test_rows_of_text_files_have_their_lines(tmp_path: Path, name: str, content: bytes, lines: tuple[int, ...]) -> None:
    (tmp_path / name).write_bytes(content)
    assert read(tmp_path / name, "time", "value") == [(n, *row[1:]) for n, row in zip(lines, ROWS, strict=True)]


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "arrows"])
def test_typed_values_become_text_that_says_the_same(tmp_path: Path, suffix: str) -> None:
    """Floats are their shortest text, whole ones without an exponent; times with a zone are in UTC."""
    frame = pl.DataFrame(
        {
            "float": [0.1, 1.7040672e12, 1e-7],
            "decimal": pl.Series([Decimal("1.50"), None, Decimal(2)], dtype=pl.Decimal(38, 2)),
            "zoned": pl.Series([datetime(2024, 7, 1, 12, tzinfo=UTC)] * 3).dt.convert_time_zone("Europe/Berlin"),
            "local": [datetime(2024, 7, 1, 12, 0, 0, 500_000, UTC).replace(tzinfo=None)] * 3,
            "list": [[1]] * 3,
        }
    )
    path = tmp_path / f"a.{suffix}"
    {"parquet": frame.write_parquet, "arrow": frame.write_ipc, "arrows": frame.write_ipc_stream}[suffix](path)
    zoned, local = "2024-07-01T12:00:00Z", "2024-07-01T12:00:00.500"
    texts = read(path, "float", "decimal", "zoned", "local")
    assert [row[:3] for row in texts] == [(1, "0.1", "1.50"), (2, "1704067200000", None), (3, "1e-7", "2.00")]
    assert {row[3:] for row in texts} == {(zoned, local)}
    with pytest.raises(UserError, match=r"column list: is of type List\(Int64\); write text or numbers\."):
        read(path, "list")


@pytest.mark.parametrize(
    ("content", "refusal"),
    [
        (b"a,b\n1,2\n1,2,3\n", "{}, line 3 has 3 fields, but line 1 has 2 columns: '1,2,3'."),
        (b"a,b\n1,2\n\n1\n", "{}, line 4 has 1 fields, but line 1 has 2 columns: '1'."),
        (b'a,b\n"1,0",2\n1\n', "{}, line 3 has 1 fields, but line 1 has 2 columns: '1'."),
        (b"a,b,c\n1,2\n1,2,3,4\n", "{}, line 2 has 2 fields, but line 1 has 3 columns: '1,2'."),
        (b'a,b\n1,2\n1,"2\n3"\n', "{}, line 3 has an unclosed quote, or text next to a quoted field."),
        (b"a,b\n1,\xff\n", "{}, line 2 is not UTF-8; `iconv -f LATIN1 -t UTF-8` converts it from Latin-1."),
        (b"\xff\xfea\x00", "{} is not text in UTF-8, Parquet or Arrow."),
        (b'{"a": 1}\nb\n', "{}, line 2 is not a JSON object: 'b'."),
        (b'[{"a": 1}, [2, 3]]', '{}, row 2 is not an object: ["2", "3"].'),
        (b'{"prices":\n[[1, 2]]}', "{} is neither an object a line nor an array of flat objects."),
    ],
)  # fmt: skip
def test_a_file_of_another_layout_is_refused_by_its_first_line_that_differs(
    tmp_path: Path, content: bytes, refusal: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(UserError) as refused:
        read(path, "a")
    assert f"{refused.value}" == f"{refusal.format(path)} See how to convert such files: {RECIPES}."


def test_a_long_file_is_read_in_batches_that_number_its_lines(tmp_path: Path) -> None:
    """Each batch takes some 8 MiB."""
    path, count = tmp_path / "long.tsv", 1_500_000
    path.write_text("n\tm\n" + "".join(f"{n}\t0\n" for n in range(count)) + "x\n")
    table, lines = open_table(path, "\t"), []
    with pytest.raises(UserError, match=f"line {count + 2} has 1 fields"):
        for rows, _ in table.batches(["n"]):
            assert (rows["line"] == rows["n"].cast(pl.UInt32) + 2).all()
            lines.append(rows.height)
    assert len(lines) > 0
