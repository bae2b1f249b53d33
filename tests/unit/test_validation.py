"""Rows of price files: which are accepted, which are rejected, and why."""

import re
import tempfile
from decimal import Decimal, InvalidOperation
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics_service.errors import ImportRefused, OutOfRange
from analytics_service.imports.validation import Names
from analytics_service.market.kinds import Price
from tests.unit.price_files import HEADER, NOON, judge, written


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("", "the row is empty"),
        (" , ,", "the row is empty"),
        ("AAA,100,1,2", "the row has more than 3 fields"),
        ("AAA,100,1, ,,5,", "the row has more than 3 fields"),
        (",100,1", "symbol is empty"),
        ("CCC,100,1", "unknown symbol: neither in the assets file (--assets) nor in the store"),
        ("aaa,100,1", "unknown symbol: neither in the assets file (--assets) nor in the store"),
        ("token;0xa,100,1", "unknown symbol: neither in the assets file (--assets) nor in the store"),
        ("AAA,,1", "timestamp is empty"),
        ("AAA", "timestamp is empty"),
        ("AAA,-1,1", "timestamp is negative"),
        ("AAA,100.5,1", "timestamp is not a whole number"),
        ("AAA,1_000,1", "timestamp is not a whole number"),
        ("AAA,99999999999999999999,1", "timestamp is in the future"),
        ("AAA,100,", "USD_price is empty"),
        ("AAA,100,inf", "USD_price is infinite"),
        ("AAA,100,-Infinity", "USD_price is infinite"),
        ("AAA,100,-1e-30", "USD_price is negative"),
        ("AAA,100,-1e30", "USD_price is negative"),
        ("AAA,100,1e20", "USD_price is not below 10^20"),
        ("AAA,100,99999999999999999999.9999999999999999995", "USD_price is not below 10^20"),
        ("AAA,100,nan", "USD_price is not a number"),
        ("AAA,100,1.2.3", "USD_price is not a number"),
        ('"AAA,100,1', "a quote is not closed on the line; fields may not have line ends in them"),
    ],
)
def test_a_bad_row_is_rejected_alone_and_with_its_reason(tmp_path: Path, row: str, reason: str) -> None:
    path = written(tmp_path, f"{HEADER}AAA,100,1\n{row}\nBBB,100,2\nBBB,101,3\nBBB,102,4\n")
    good, bad = judge(path)
    assert bad == [(3, reason)]
    assert [second for _, second, _ in good] == [100, 100, 101, 102]


@pytest.mark.parametrize(
    ("text", "price"),
    [
        ("-0.0", "0"),
        ("+2.5", "2.5"),
        (".5", "0.5"),
        ("5.", "5"),
        (" 1.5 ", "1.5"),
        ('"1.5"', "1.5"),
        ("3.7e-05", "0.000037"),
        ("1E3", "1000"),
        # Half to even at the 19th decimal.
        ("0.0000000000000000005", "0"),
        ("0.0000000000000000015", "0.000000000000000002"),
        ("0.00000000000000000050000000001", "0.000000000000000001"),
        ("99999999999999999999.999999999999999999", "99999999999999999999.999999999999999999"),
    ],
)
def test_a_price_is_read_exactly(tmp_path: Path, text: str, price: str) -> None:
    good, bad = judge(written(tmp_path, f"{HEADER}AAA,100,{text}\n"))
    assert (good, bad) == ([("token;0xa", 100, Decimal(price))], [])


@pytest.mark.parametrize("end", [",", ", ,\t"])
def test_empty_fields_at_the_end_of_a_row_are_ignored(tmp_path: Path, end: str) -> None:
    good, bad = judge(written(tmp_path, f"{HEADER}AAA,100,1{end}\nBBB,100,2\n"))
    assert good == [("token;0xa", 100, Decimal(1)), ("token;0xb", 100, Decimal(2))]
    assert bad == []


@pytest.mark.parametrize("time", ["100.0", "+100", " 100 ", '"100"'])
def test_a_whole_second_may_be_written_in_several_ways(tmp_path: Path, time: str) -> None:
    assert judge(written(tmp_path, f"{HEADER}AAA,{time},1\n")) == ([("token;0xa", 100, Decimal(1))], [])


def test_times_up_to_a_day_ahead_are_accepted(tmp_path: Path) -> None:
    good, bad = judge(written(tmp_path, f"{HEADER}AAA,0,1\nAAA,{NOON + 86_400},1\nAAA,{NOON + 86_401},1\n"))
    assert [second for _, second, _ in good] == [0, NOON + 86_400]
    assert [line for line, _ in bad] == [4]


def test_milliseconds_are_floored_to_seconds(tmp_path: Path) -> None:
    good, bad = judge(written(tmp_path, f"{HEADER}AAA,1609460825963,1\nAAA,1609460826000,2\n"), "ms")
    assert [second for _, second, _ in good] == [1_609_460_825, 1_609_460_826]
    assert bad == []


def test_negative_milliseconds_are_not_floored_to_zero(tmp_path: Path) -> None:
    good, bad = judge(written(tmp_path, f"{HEADER}AAA,-1,1\nAAA,1609460825963,1\nAAA,1609460825964,1\n"), "ms")
    assert bad == [(2, "timestamp is negative")]
    assert len(good) == 2


def test_a_file_of_milliseconds_read_as_seconds_is_refused_with_the_remedy(tmp_path: Path) -> None:
    path = written(tmp_path, f"{HEADER}AAA,100,1\nAAA,1609460825963,1\n")
    with pytest.raises(ImportRefused, match=r"look like milliseconds.*1609460825963.*--time-unit ms"):
        judge(path)


def test_a_file_of_seconds_read_as_milliseconds_is_refused_with_the_remedy(tmp_path: Path) -> None:
    path = written(tmp_path, f"{HEADER}AAA,1609460825,1\n")
    with pytest.raises(ImportRefused, match=r"look like seconds.*1609460825.*without --time-unit ms"):
        judge(path, "ms")


def test_rows_in_milliseconds_are_bad_where_they_are_less_than_half(tmp_path: Path) -> None:
    _, bad = judge(written(tmp_path, f"{HEADER}AAA,100,1\nAAA,1609460825963,1\nAAA,101,1\n"))
    assert bad == [(3, "timestamp is in the future")]


def test_the_form_with_ids_may_have_its_columns_in_any_order_and_case(tmp_path: Path) -> None:
    path = written(tmp_path, "Price,TS,Asset_ID\n1.5,100,token;0xb\n2,100,BBB\n")
    good, bad = judge(path)
    assert good == [("token;0xb", 100, Decimal("1.5"))]
    assert bad == [(3, "unknown asset_id: neither in the assets file (--assets) nor in the store")]


def test_without_any_asset_every_row_is_unknown(tmp_path: Path) -> None:
    _, bad = judge(written(tmp_path, f"{HEADER}AAA,100,1\n"), names=Names.of([], []))
    assert bad == [(2, "unknown symbol: neither in the assets file (--assets) nor in the store")]


# What a field may contain: plausible values, near misses and noise, but no comma or quote.
# Nor control characters: some are space to Python but not to Polars.
noise = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"], exclude_characters=',"'), max_size=6)
digits = st.text("0123456789", min_size=1, max_size=25)
numbers = st.builds(
    lambda sign, whole, fraction, exponent: f"{sign}{whole}{fraction}{exponent}",
    st.sampled_from(["", "-", "+"]),
    digits,
    st.just("") | digits.map(lambda text: f".{text}"),
    st.just("") | st.integers(-45, 25).map(lambda power: f"e{power}"),
)
symbols = st.sampled_from(["AAA", "BBB", " AAA", "CCC", ""]) | noise
times = st.integers(-10, NOON + 200_000).map(str) | st.integers().map(str) | numbers | noise
prices = numbers | st.floats().map(repr) | st.sampled_from(["", "inf", "NaN", "1_0", ".", "1e"]) | noise


def plain_price(text: str) -> Decimal | None:
    """The price as Python's decimals read it; None when it is none."""
    # Decimal also reads underscores and the digits of other scripts, which price files do not use.
    if not text.isascii() or "_" in text:
        return None
    try:
        value = Decimal(text)
        return None if value < 0 else Price.encode(value)
    except (InvalidOperation, OutOfRange):
        return None


def plain_second(text: str) -> int | None:
    """The second as Python's integers read it; None when it is none."""
    if not re.fullmatch(r"[+-]?[0-9]+(\.0)?", text):
        return None
    second = int(text.removesuffix(".0"))
    return second if 0 <= second <= NOON + 86_400 else None


@given(st.lists(st.tuples(symbols, times, prices), max_size=8))
def test_the_accepted_rows_are_those_that_python_can_read(rows: list[tuple[str, str, str]]) -> None:
    # Enough plain rows, so that the file's times do not look like milliseconds. They are last, as blank last lines are
    # ignored.
    plain = [("BBB", "7", "1")] * 9
    table = [*rows, *plain]
    expected = []
    for symbol, time, price in table:
        second, usd = plain_second(time.strip()), plain_price(price.strip())
        if symbol.strip() in ("AAA", "BBB") and second is not None and usd is not None:
            expected.append((f"token;0x{symbol.strip()[0].lower()}", second, usd))
    with tempfile.TemporaryDirectory() as folder:
        good, bad = judge(written(Path(folder), HEADER + "".join(",".join(row) + "\n" for row in table)))
    assert good == expected
    assert len(bad) == len(table) - len(expected)
