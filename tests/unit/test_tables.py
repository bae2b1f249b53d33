"""Price files as a whole: forms and formats, which files are refused, and the files of rejected rows."""

import gzip
import os
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from shutil import rmtree

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analytics_service.errors import ImportRefused
from analytics_service.imports.described_assets import read_described_assets
from analytics_service.imports.families import RATES
from analytics_service.imports.forms import recognized
from analytics_service.imports.opening import open_table
from analytics_service.imports.rejected import RejectedFile
from analytics_service.market.assets import Asset, AssetGroup
from tests.unit.price_files import HEADER, NOW, judge, opened, validated, written


def test_line_numbers_are_those_of_an_editor(tmp_path: Path) -> None:
    """With Windows line ends, a byte order mark, quotes, an empty line between rows and some at the end."""
    text = f"\ufeff{HEADER}" + '"AAA","100","1"\nX,1,1\n\n"BBB" , 100,"2"\nY,1,1\n \n\n'
    good, bad = judge(written(tmp_path, text.replace("\n", "\r\n")))
    assert [row[0] for row in good] == ["token;0xa", "token;0xb"]
    assert [line for line, _ in bad] == [3, 4, 6]


@pytest.mark.parametrize(("name", "pack"), [("a.csv", bytes), ("a.csv.gz", partial(gzip.compress, compresslevel=1))])
def test_a_long_file_is_read_in_blocks_with_continuous_line_numbers(
    tmp_path: Path, name: str, pack: Callable[[bytes], bytes]
) -> None:
    count = 1_000_000
    rows = (f"AAA,{second},{second}" if second % 100_000 else f"AAA,{second},bad" for second in range(count))
    path = tmp_path / name
    path.write_bytes(pack((HEADER + "\n".join(rows) + "\n" * 1000).encode()))
    sizes: list[int] = []
    bad: list[pl.DataFrame] = []
    table = opened(path)
    file = validated(table, bad.append, sizes.append)
    seconds = pl.concat(file.good)["observed_at"].to_list()
    assert seconds == [second for second in range(count) if second % 100_000]
    assert pl.concat(bad)["line"].to_list() == [second + 2 for second in range(0, count, 100_000)]
    assert len(sizes) > 1
    assert sum(sizes) == table.size == path.stat().st_size


def test_a_file_without_line_ends_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ImportRefused, match="no line ends within"):
        judge(written(tmp_path, HEADER + "x" * 70 * 10**6))


def test_a_file_may_have_no_rows(tmp_path: Path) -> None:
    assert judge(written(tmp_path, HEADER)) == judge(written(tmp_path, f"{HEADER}\n\n")) == ([], [])


def test_text_that_is_not_utf8_is_an_unknown_symbol(tmp_path: Path) -> None:
    path = tmp_path / "latin.csv"
    path.write_bytes(HEADER.encode() + b"caf\xe9,100,1\nAAA,100,1\n")
    good, bad = judge(path)
    assert (len(good), bad[0][0]) == (1, 2)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", "is empty"),
        ("a.csv", b"time,price\n1,2\n", r"columns 'time, price'.*symbol,timestamp,USD_price or asset_id,ts,price"),
        ("a.csv", b"symbol,timestamp,USD_price,note\n", "USD_price, note"),
        ("a.csv", b"symbol,symbol,timestamp,USD_price\n", "symbol, symbol"),
        ("a.csv.gz", b"\x1f\x8bnothing", "cannot be read"),
        ("a.csv.gz", gzip.compress(HEADER.encode() * 99, mtime=0)[:-9], "cannot be read"),
        ("a.csv.gz", gzip.compress(HEADER.encode() * 99, mtime=0)[:-8] + b"\0" * 8, "cannot be read"),
        ("a.parquet", b"not parquet", "cannot be read"),
    ],
)
def test_an_unusable_file_is_refused_by_name(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ImportRefused, match=message) as refusal:
        judge(path)
    assert str(path) in str(refusal.value)


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ImportRefused, match=r"nowhere\.csv is not a file"):
        opened(tmp_path / "nowhere.csv")


@pytest.mark.parametrize(
    ("times", "prices"),
    [
        (["100", "101"], ["1.5", "0.1"]),
        ([100, 101], [Decimal("1.5"), Decimal("0.1")]),
        # The double nearest to 0.1 is 0.1000000000000000055...; its shortest text is what the writer meant.
        ([100.0, 101.0], [1.5, 0.1]),
    ],
)
def test_parquet_is_read_as_exactly_as_its_types_allow(
    tmp_path: Path, times: list[object], prices: list[object]
) -> None:
    path = tmp_path / "prices.parquet"
    pl.DataFrame({"symbol": ["AAA", "BBB"], "timestamp": times, "USD_price": prices}).write_parquet(path)
    assert judge(path) == ([("token;0xa", 100, Decimal("1.5")), ("token;0xb", 101, Decimal("0.1"))], [])


def test_bad_rows_of_parquet_are_numbered_by_row(tmp_path: Path) -> None:
    path = tmp_path / "prices.parquet"
    count = 600_000
    prices = [1.0, None, float("inf"), float("nan"), *[1.0] * (count - 5), -1.0]
    pl.DataFrame({"asset_id": ["token;0xa"] * count, "ts": range(count), "price": prices}).write_parquet(path)
    good, bad = judge(path)
    assert [second for _, second, _ in good] == [0, *range(4, count - 1)]
    assert bad == [
        (2, "price is empty"),
        (3, "price is infinite"),
        (4, "price is not a number"),
        (count, "price is negative"),
    ]
    assert opened(path).row_label == "row"


def test_parquet_times_must_be_numbers(tmp_path: Path) -> None:
    path = tmp_path / "prices.parquet"
    pl.DataFrame({"symbol": ["AAA"], "timestamp": [NOW], "USD_price": [1.0]}).write_parquet(path)
    with pytest.raises(ImportRefused, match=r"Column timestamp .*Datetime.*unix times as numbers"):
        opened(path)


def test_parquet_times_of_32_bit_floats_are_refused(tmp_path: Path) -> None:
    """Near 1.6 billion they are 128 seconds apart."""
    path = tmp_path / "prices.parquet"
    rows = {"asset_id": ["token;0xa"], "ts": [1_600_000_001.0], "price": [1.0]}
    pl.DataFrame(rows, schema_overrides={"ts": pl.Float32}).write_parquet(path)
    with pytest.raises(ImportRefused, match=r"Column ts .* Float32, .*Write whole numbers"):
        opened(path)


def test_columns_that_an_import_ignores_may_be_of_any_type_and_decimals_may_end_in_a_zero(tmp_path: Path) -> None:
    path = tmp_path / "rates.parquet"
    rows = {
        "asset_address": ["0xa"],
        "timestamp": [100],
        "symbol": ["AAA"],
        "decimals": [6.0],
        "borrowing_enabled": [True],
        "current_liquidity_rate": [0.5],
        "current_variable_borrow_rate": [0.75],
        "tags": [["a", "b"]],
        "age": [timedelta(days=1)],
        "raw": [b"\xff"],
    }
    pl.DataFrame(rows).write_parquet(path)
    table = recognized(open_table(path), RATES.forms)
    ((block, count),) = table.blocks()
    assert (count, block["lend"].to_list()) == (1, ["0.5"])
    assert read_described_assets([table], []) == [Asset(AssetGroup.TOKEN, "0xa", "AAA", "AAA", "aaa", 6, 6)]


def test_parquet_decimals_of_more_digits_than_can_be_read_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "prices.parquet"
    price = pa.array([Decimal("1.5")], pa.decimal256(39, 18))
    pq.write_table(pa.table({"asset_id": ["token;0xa"], "ts": [int(NOW.timestamp())], "price": price}), path)
    with pytest.raises(ImportRefused, match=r"Column price .* decimals of 39 digits, and only 38 can be read"):
        opened(path)


def test_rejected_rows_have_the_columns_of_their_file_and_line_and_reason(tmp_path: Path) -> None:
    path = written(tmp_path, 'USD_price,symbol,timestamp\n1,AAA,100\n"-1", AAA,100\n1,AAA,100,7\n1,AAA,100,,7,8,\n')
    table = opened(path)
    with RejectedFile(table) as rejected:
        validated(table, rejected.add)
        assert not rejected.path.exists()
        assert rejected.keep() == [tmp_path / "prices.csv.rejected.csv"]
    assert rejected.path.read_text().splitlines() == [
        "USD_price,symbol,timestamp,line,reason",
        "-1,AAA,100,3,USD_price is negative",
        '1,AAA,"100,7",4,the row has more than 3 fields',
        '1,AAA,"100,,7,8",5,the row has more than 3 fields',
    ]
    assert sorted(tmp_path.iterdir()) == [path, rejected.path]


def test_rejected_rows_that_are_rejected_again_keep_their_columns(tmp_path: Path) -> None:
    """Files of rates may have further columns, such as those that were added the first time, or two of one name."""
    known = (
        "asset_address,timestamp,symbol,decimals,borrowing_enabled,current_liquidity_rate,current_variable_borrow_rate"
    )
    text = f"{known},line,reason,x,x\n0xa,100,AAA,18,true,-1,1,2,no,1,2\n"
    table = recognized(open_table(written(tmp_path, text)), RATES.forms)
    with RejectedFile(table) as rejected:
        validated(table, rejected.add)
        (path,) = rejected.keep()
    header = path.read_text().splitlines()[0].split(",")
    assert header[7:] == ["line_", "reason_", "x", "x_", "line", "reason"]


def replaced(path: Path) -> None:
    """Have a copy of a file take its place."""
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    copy.replace(path)


def grown(path: Path) -> None:
    """Append a line to a file."""
    with path.open("a") as file:
        file.write("AAA,200,2\n")


@pytest.mark.parametrize("name", ["prices.csv", "prices.parquet"])
@pytest.mark.parametrize("change", [replaced, grown])
def test_a_file_that_changes_while_it_is_read_is_refused(
    tmp_path: Path, name: str, change: Callable[[Path], None]
) -> None:
    path = tmp_path / name
    rows = pl.DataFrame({"symbol": "AAA", "timestamp": 100, "USD_price": "1"})
    rows.write_csv(path) if path.suffix == ".csv" else rows.write_parquet(path)
    blocks = opened(path).blocks()
    assert next(blocks)[0].height == 1
    change(path)
    with pytest.raises(ImportRefused, match="changed while it was read"):
        list(blocks)
    if change is replaced:
        assert [block.height for block, _ in opened(path).blocks()] == [1]


def test_a_file_whose_name_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.csv"))
    path.write_text(f"{HEADER}AAA,100,1\n")
    with pytest.raises(ImportRefused, match=r"is not UTF-8\. Rename it"):
        opened(path)


def test_an_abandoned_file_of_rejected_rows_leaves_nothing_behind(tmp_path: Path) -> None:
    table = opened(written(tmp_path, f"{HEADER}X,1,1\n"))
    with RejectedFile(table) as rejected:
        validated(table, rejected.add)
    assert list(tmp_path.iterdir()) == [table.path]


def test_an_import_is_refused_when_rejected_rows_cannot_be_written(tmp_path: Path) -> None:
    """Nor when their file cannot have its name."""
    table = opened(written(tmp_path, f"{HEADER}X,1,1\n"))
    (tmp_path / "prices.csv.rejected.csv").mkdir()
    bad: list[pl.DataFrame] = []
    validated(table, bad.append)
    with RejectedFile(table) as rejected:
        rejected.add(bad[0])
        with pytest.raises(ImportRefused, match="cannot be written to"):
            rejected.keep()
    assert sorted(tmp_path.iterdir()) == [table.path, rejected.path]
    rmtree(tmp_path)
    with RejectedFile(table) as rejected, pytest.raises(ImportRefused, match="cannot be written to"):
        rejected.add(bad[0])


def test_imports_of_a_file_at_the_same_time_do_not_mix_their_rejected_rows(tmp_path: Path) -> None:
    table = opened(written(tmp_path, f"{HEADER}X,1,1\n"))
    bad: list[pl.DataFrame] = []
    validated(table, bad.append)
    with RejectedFile(table) as last:
        last.add(bad[0])
        with RejectedFile(table) as first:
            first.add(bad[0])
            first.keep()
        last.add(bad[0])
        assert first.path.read_text().count("X,1,1") == 1
        last.keep()
    assert first.path.read_text().count("X,1,1") == 2
    assert sorted(tmp_path.iterdir()) == [table.path, first.path]
