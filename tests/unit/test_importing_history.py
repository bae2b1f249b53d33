"""Files of the stated shape become exact rows; what differs is refused in a sentence that says what to do."""

# A case is a line, so that the tables can be read.
# ruff: noqa: E501

from decimal import ROUND_HALF_EVEN, Context, Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analytics_service.errors import UserError
from analytics_service.importing.numbers import ValueRules, parse_values
from analytics_service.importing.readers import RECIPES
from analytics_service.importing.time_parsing import parse_format
from analytics_service.importing.timestamps import parse_interval
from analytics_service.store.datasets import histories
from tests.unit.history_files import AT, loaded, rows_of, written

HEAD = "time,asset,value\n"
DAY1, DAY2 = "2024-01-01 23:59:59", "2024-01-02 23:59:59"
D, EXACT = Decimal, Context(prec=400, rounding=ROUND_HALF_EVEN)


def case(id: str, text: str, rows: list[tuple[str, str, str]], **options: Any) -> Any:
    return pytest.param(text, options, [(asset, time, D(value)) for asset, time, value in rows], id=id)


def one(id: str, time: str, stored: str, **options: Any) -> Any:
    """A file of one time."""
    return case(id, f"{HEAD}{time},A,1\n", [("A", stored, "1")], **options)


@pytest.mark.parametrize(
    ("text", "options", "rows"),
    [
        # Times.
        one("seconds", "1704067200", "2024-01-01 00:00:00"),
        one("seconds with a fraction", "1704067200.9", "2024-01-01 00:00:00"),
        one("small seconds", "99", "1970-01-01 00:01:39", unit="s"),
        one("milliseconds", "1704067200999", "2024-01-01 00:00:00", unit="ms"),
        one("microseconds", "1704067200000001", "2024-01-01 00:00:00", unit="us"),
        one("nanoseconds", "1704067200999999999", "2024-01-01 00:00:00", unit="ns"),
        one("iso", "2024-01-01T12:34:56Z", "2024-01-01 12:34:56"),
        one("iso with a space, without seconds", "2024-01-01 12:34", "2024-01-01 12:34:00"),
        one("iso with an offset", "2024-01-01T12:34:56.789+05:30", "2024-01-01 07:04:56"),
        one("iso with a short offset", "2024-01-01 00:00:00-03", "2024-01-01 03:00:00"),
        one("iso in a zone", "2024-07-01 12:00:00", "2024-07-01 16:00:00", zone="America/New_York"),
        one("date", "2024-01-01", DAY1),
        one("date in a zone", "2024-01-01", "2024-01-02 04:59:59", zone="America/New_York"),
        # Clocks went forward that day, and it began at 01:00.
        one("date without midnight", "2026-09-06", "2026-09-07 02:59:59", zone="America/Santiago"),
        one("strptime", "02.01.2024", DAY2, format=parse_format("%d.%m.%Y")),
        one("strptime with a clock", "01/02/24 05:06 PM", "2024-01-02 17:06:00", format=parse_format("%m/%d/%y %I:%M %p")),
        one("strptime with a fraction", "2024-01-02 00:00:07.5 UTC", "2024-01-02 00:00:07", format=parse_format("%Y-%m-%d %H:%M:%S.%f UTC")),
        one("strptime with an offset", "2024-01-02 00:00 +0100", "2024-01-01 23:00:00", format=parse_format("%Y-%m-%d %H:%M %z")),
        # Values.
        case("values", f"{HEAD}2024-01-01,A, 1.50 \n2024-01-02,A,1e-7\n", [("A", DAY1, "1.5"), ("A", DAY2, "1e-7")]),
        case("no values", f"{HEAD}2024-01-01,A,1\n2024-01-02,A,\n2024-01-02,A,\\N\n2024-01-03,A,n/a\n2024-01-04,A,.\n2024-01-04,A,NaN\n2024-01-04,A,Null\n", [("A", DAY1, "1")]),
        case("decimal commas", 'time;asset;value\n2024-01-01;A;1234,5\n', [("A", DAY1, "1234.5")], separator=";", comma=True),
        case("percent", f"{HEAD}2024-01-01,A,150\n2024-01-02,A,0.0000000000000001\n", [("A", DAY1, "1.5"), ("A", DAY2, "1e-18")], percent=True, history=histories.LEND_RATES),
        case("fractions", f"{HEAD}2024-01-01,A,0.05\n2024-01-02,A,-0.5\n", [("A", DAY1, "0.05"), ("A", DAY2, "-0.5")], history=histories.LEND_RATES),
        # Columns and assets.
        case("names in another case", "Time,ASSET,Value\n2024-01-01,A,1\n", [("A", DAY1, "1")]),
        case("named columns", "t,sym,p\n2024-01-01,A,1\n", [("A", DAY1, "1")], time="t", asset_column="sym", value="p"),
        case("one asset", "time,value\n2024-01-01,1\n", [("A", DAY1, "1")], asset="A"),
        case("wide", "time,A,B\n2024-01-01,1,2\n2024-01-02,3,\n", [("A", DAY1, "1"), ("A", DAY2, "3"), ("B", DAY1, "2")], wide=True),
        case("wide with an asset named as a column", "time,value\n2024-01-01,1\n", [("value", DAY1, "1")], wide=True),
        case("pairs in USD", f"{HEAD}2024-01-01,A/USDT,1\n2024-01-01,B-USD,2\n", [("A", DAY1, "1"), ("B", DAY1, "2")]),
        case("symbols that are no pairs", f"{HEAD}2024-01-01,sUSD,1\n2024-01-01,UNI-V2,2\n", [("UNI-V2", DAY1, "2"), ("sUSD", DAY1, "1")]),
        case("an address", f"{HEAD}2024-01-01,0x{'a' * 40},1\n", [("0x" + "a" * 40, DAY1, "1")]),
        case("a sum over all", "time,value\n2024-01-01,1\n", [("", DAY1, "1")], history=histories.NET_TVL),
        # Rows of one second.
        case("the latest of a second", f"{HEAD}2024-01-01T00:00:00.900Z,A,3\n2024-01-01T00:00:00.500Z,A,2\n2024-01-01T00:00:00.1Z,A,1\n", [("A", "2024-01-01 00:00:00", "3")]),
        case("the latest of a unix second", f"{HEAD}1704067200.9,A,3\n1704067200.1,A,1\n", [("A", "2024-01-01 00:00:00", "3")]),
        case("equal rows", f"{HEAD}2024-01-01,A,1\n2024-01-01,A,1.0\n", [("A", DAY1, "1")]),
        case("the last wins", f"{HEAD}2024-01-01,A,1\n2024-01-01,A,2\n", [("A", DAY1, "2")], last_wins=True),
        # Stamps.
        case("end", f"{HEAD}2024-01-01T01:00:00Z,A,1\n2024-01-01T02:00:00Z,A,2\n", [("A", "2024-01-01 01:00:00", "1"), ("A", "2024-01-01 02:00:00", "2")], stamp="end"),
        case("begin", f"{HEAD}2024-01-01T01:00:00Z,A,1\n2024-01-01T02:00:00Z,A,2\n", [("A", "2024-01-01 01:59:59", "1"), ("A", "2024-01-01 02:59:59", "2")], stamp="begin"),
        case("begin and interval", f"{HEAD}2024-01-01T01:00:00Z,A,1\n", [("A", "2024-01-01 01:14:59", "1")], stamp="begin", interval=parse_interval("15min")),
        # January has 31 days, February 29.
        case("months", f"{HEAD}2024-01-01,A,1\n2024-02-01,A,2\n", [("A", "2024-01-31 23:59:59", "1"), ("A", "2024-02-29 23:59:59", "2")], stamp="begin"),
        # Clocks went forward on 2024-03-10, so that day of New York had 23 hours.
        case("days of a zone", f"{HEAD}2024-03-10 00:00,A,1\n2024-03-11 00:00,A,2\n", [("A", "2024-03-11 03:59:59", "1"), ("A", "2024-03-12 03:59:59", "2")], stamp="begin", zone="America/New_York"),
        case("an interval that is not over", f"{HEAD}2026-09-30T23:00Z,A,1\n", [("A", "2026-10-01 00:00:00", "1")], stamp="begin", interval="1d"),
        case("closes of dates", "time,asset,open,high,low,close\n2024-01-01,A,100,120,90,110\n", [("A", DAY1, "110")], value="close"),
        # Own files.
        case("an own page", "t,time,asset_id,symbol,v\n1704067200,2024-01-01T00:00:00Z,native;A,A,1\n1704070800,,native;A,A,\n", [("A", "2024-01-01 00:59:59", "1")]),
        # Days of New York as the service writes them around the day of 23 hours: no bucket reaches into the next.
        case("own days", "t,v\n1709960400,1\n1710046800,2\n1710129600,3\n", [("", "2024-03-10 03:59:59", "1"), ("", "2024-03-11 03:59:59", "2"), ("", "2024-03-12 02:59:59", "3")], history=histories.NET_TVL),
        case("an own view", "asset_id,symbol,observed_at,apr,value_exact\nnative;A,A,2024-01-01 00:00:00,1.1,1.100000000000000001\n", [("A", "2024-01-01 00:00:00", "1.100000000000000001")], history=histories.LEND_RATES),
        case("own totals", "history,observed_at,usd\ntvl,2024-01-01 00:00:00,5\nnet_tvl,2024-01-01 00:00:00,4\n", [("", "2024-01-01 00:00:00", "4")], history=histories.NET_TVL),
    ],
)  # fmt: skip
def test_files_of_the_shape_are_read_exactly(
    tmp_path: Path, text: str, options: dict[str, Any], rows: list[tuple[str, str, Decimal]]
) -> None:
    assert sorted(rows_of(loaded(written(tmp_path, text), **options))) == sorted(rows)


def refused(text: str, sentence: str, **options: Any) -> Any:
    return pytest.param(text, options, sentence, id=sentence[:60])


def refused_time(time: str, sentence: str, **options: Any) -> Any:
    return refused(f"{HEAD}{time},A,1\n", f", line 2, column time: {time!r} {sentence}.", **options)


def refused_value(value: str, sentence: str, **options: Any) -> Any:
    return refused(
        f"{HEAD}2024-01-01,A,1\n2024-01-02,A,{value}\n", f", line 3, column value: {value!r} {sentence}.", **options
    )


def refused_asset(asset: str, sentence: str, **options: Any) -> Any:
    return refused(f"{HEAD}2024-01-01,{asset},1\n", f", line 2, column asset: {asset!r} {sentence}.", **options)


OHLC = "time,asset,open,high,low,close\n"
WRITE = "write it like 2026-01-31T12:00:00Z, add --time-format or --time-unit, or see the recipes"
SHAPE = "ISO 8601, or unix seconds after 1973"
NO_TIME = f"is not a time in {SHAPE}, or occurs twice or never in UTC; {WRITE}"


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        # Times.
        *(
            refused_time(time, NO_TIME)
            for time in (
                "yesterday", "01/02/2024", "2024-02-30", "20240131T000000", "2024-01-01T00:00:00 EST",
                "20240131", "45292",
            )
        ),
        refused_time("1969-12-30", "is before 1970"),
        refused_time("2026-10-03", "is in the future, after 2026-10-01T00:00:00Z"),
        refused_time("1704067200000", "is in the future, after 2026-10-01T00:00:00Z; for milliseconds, add --time-unit ms"),
        refused_time("1704067200", NO_TIME.replace(SHAPE, "unix ms after 1973"), unit="ms"),
        refused_time("06/13/2018", NO_TIME.replace(SHAPE, "%d/%m/%Y"), format="%d/%m/%Y"),
        *(
            refused_time(time, NO_TIME.replace("UTC", zone), zone=zone)
            for zone, time in (
                ("America/New_York", "2024-11-03 01:30:00"), ("America/New_York", "2024-03-10 02:30:00"),
                ("Pacific/Apia", "2011-12-30"),
            )
        ),
        refused(f"{HEAD}2024-01-01,A,1\n2024-01-02 00:00,A,1\n", ", line 3, column time: '2024-01-02 00:00' is not a date as in earlier rows; use one style for all times."),
        refused(f"{HEAD},A,1\n", f", line 2, column time: {NO_TIME}."),
        # Values.
        *(
            refused_value(value, "is not a plain decimal from 0 to 10^20; correct it, add --decimal, or see the recipes")
            for value in ("1.5x", "-", "-1", "123456789012345678901")
        ),
        refused_value("1.234", "is not a plain decimal from 0 to 10^20; correct it, add --decimal, or see the recipes", comma=True),
        *(
            refused_value(value, f"is not a plain decimal from {span}; correct it, add --decimal or --percent, or see the recipes", history=histories.LEND_RATES, percent=span == "-100 to 10000")
            for value, span in (("5", "-1 to 1"), ("-1.1", "-1 to 1"), ("10001", "-100 to 10000"))
        ),
        refused("time,value\n2024-01-01,x\n", ", line 2, column value: 'x' is not a plain decimal from -10^20 to 10^20; correct it, add --decimal, or see the recipes.", history=histories.NET_TVL),
        refused(f"{HEAD}2024-01-01,A,1\n", ", column asset: cannot be imported: net-tvl has no values of assets, only sums.", history=histories.NET_TVL),
        refused("time,asset,apyBase\n2024-01-01,A,0.03\n", ", column apyBase: may be in percent; add --percent, or rename the column if its values are fractions.", history=histories.LEND_RATES, value="apyBase"),
        # Money.
        refused("time,asset,price_eur\n2024-01-01,A,1\n", ", column price_eur: is in EUR by its name; convert the values to USD.", value="price_eur"),
        refused("time,asset,price_eth\n2024-01-01,A,1\n", ", column price_eth: is in ETH by its name; convert the values to USD.", value="price_eth"),
        refused("time,asset,value,currency\n2024-01-01,A,1,USD\n2024-01-02,A,1,CHF\n", ", line 3, column currency: 'CHF' is not USD; convert the values."),
        refused_asset("BTC/EUR", "is BTC in EUR, not in USD; convert the prices, or describe such an asset with --assets"),
        refused_asset("BTCEUR", "is BTC in EUR, not in USD; convert the prices, or describe such an asset with --assets"),
        refused("time,value\n2024-01-01,1\n", ": 'btc-eur' is btc in eur, not in USD; convert the prices, or describe such an asset with --assets.", asset="btc-eur"),
        # Columns and assets.
        refused("time,asset,price\n2024-01-01,A,1\n", f" has no column 'value', or several; it has 'time, asset, price'. Name the column with --value, or the mark between columns with --separator; for files without a header, see {RECIPES}."),
        refused("time,value\n2024-01-01,1\n", f" has no column 'asset', or several; it has 'time, value'. Name the column with --asset-column, or add --asset SYMBOL, or the mark between columns with --separator; for files without a header, see {RECIPES}."),
        refused("time,asset,value,value\n2024-01-01,A,1,2\n", f" has no column 'value', or several; it has 'time, asset, value, value'. Name the column with --value, or the mark between columns with --separator; for files without a header, see {RECIPES}."),
        refused_asset("A", "is an unknown asset; add it with --new-assets, or describe it with --assets", new_assets=False),
        refused_asset("=A", "cannot be an asset: a symbol has 1 to 100 printable characters without commas, and does not begin with = + - @, which a spreadsheet would run as a formula"),
        refused("time,pair,value\n2024-01-01,A,1\n2024-01-02,B,1\n", ", line 3, column pair: 'B' differs from the asset 'A' of earlier rows; add --asset-column pair.", asset="A"),
        refused("time\n2024-01-01\n", " has only the column of times, or a repeated column. Name each asset once.", wide=True),
        # Rows that disagree.
        refused(f"{HEAD}2024-01-01,A,1\n2024-01-02,A,1\n2024-01-01,A,2\n", "Two rows have different values of native;A at 2024-01-01T23:59:59Z: {0}, line 2: 1.000000000000000000 and {0}, line 4: 2.000000000000000000. Delete the wrong row, or take the later row with --last-wins."),
        # Stamps and candles.
        refused(f"{OHLC}2024-01-01T00:00Z,A,100,120,90,110\n", ": the time of a candle may be the beginning or the end of its interval, and its close is known only at the end. Add --stamp begin or --stamp end.", value="close"),
        refused(f"{HEAD}2024-01-01T00:00Z,A,1\n", " has only one time for each asset. Add the interval, such as --interval 1d.", stamp="begin"),
        refused(f"{HEAD}2024-01-01T00:00Z,A,1\n", ": --interval has no effect here. Add --stamp begin, or leave out --interval.", interval="1h"),
        refused(f"{OHLC}2024-01-01,A,89,120,90,110\n", ", line 2, column open: '89' is not between low and high; check which column is which.", candles=True),
        refused(f"{OHLC}2024-01-01,A,100,120,90,121\n", ", line 2, column close: '121' is not between low and high; check which column is which.", candles=True),
        refused(f"{OHLC}2024-01-01T00:00Z,A,100,120,90,110\n", " has candles shorter than 4 seconds. Leave out --candles.", candles=True, stamp="begin", interval="3s"),
        refused(f"{HEAD}2024-01-01,A,1\n", " lacks some of the columns open, high and low. Leave out --candles.", candles=True, value="value"),
        # Nothing.
        refused(f"{HEAD}2024-01-01,A,null\n", ": there are no rows with a value."),
        refused("[]", " has no rows. See how to convert such files: " + RECIPES + "."),
        refused("{}", " has no rows. See how to convert such files: " + RECIPES + "."),
    ],
)  # fmt: skip
def test_what_differs_is_refused_with_what_to_do(
    tmp_path: Path, text: str, options: dict[str, Any], sentence: str
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(UserError) as refusal:
        loaded(path, **options)
    assert str(refusal.value) == (sentence if "{0}" in sentence or sentence[0] == "T" else f"{path}{sentence}").format(
        path
    )


@pytest.mark.parametrize(
    ("options", "length"),
    [
        ({"time": "date"}, 86_400),
        ({"stamp": "begin", "interval": "1m"}, 60),
        ({"time": "end", "stamp": "end", "interval": "1m"}, 60),
        ({"time": "next", "stamp": "end", "interval": "1m"}, 60),
    ],
)
def test_a_candle_is_four_observations(tmp_path: Path, options: dict[str, Any], length: int) -> None:
    """At its first second, after a third, after two thirds, and at its last second, however files name its end."""
    text = "date,time,end,next,Open,High,Low,Close\n2024-01-01,1704067200,1704067259.999,1704067260,1,9,0.5,2\n"
    content = loaded(written(tmp_path, text), candles=True, asset="A", **options)
    expected = [(0, D(1)), (length // 3, D(9)), (length * 2 // 3, D("0.5")), (length - 1, D(2))]
    assert [(second - 1_704_067_200, value) for _, second, value in content.rows.iter_rows()] == expected


@pytest.mark.parametrize(
    ("name", "pattern", "symbol"),
    [
        ("BTC-1d-2024.csv", "SYMBOL-1d*.csv", "BTC"),
        ("symbol=BTC/part-0.csv", "symbol=SYMBOL/*.csv", "BTC"),
        ("BTCUSDT.csv", "SYMBOLUSDT.csv", "BTC"),
        ("btc-usd.csv", "SYMBOL.csv", "btc"),
    ],
)
def test_the_symbol_may_be_in_the_name_of_a_file(tmp_path: Path, name: str, pattern: str, symbol: str) -> None:
    content = loaded(written(tmp_path, "time,value\n2024-01-01,1\n", name), symbol_from=pattern)
    assert rows_of(content) == [(symbol, DAY1, D(1))]


def test_bad_rows_are_counted_and_the_first_are_shown_if_they_may_be_left_out(tmp_path: Path) -> None:
    path = written(
        tmp_path, HEAD + "2024-01-01,A,1\n" + "".join(f"2024-01-02,A,bad{n}\n" for n in range(7)) + "2024-01-03,A,\n"
    )
    content = loaded(path, skip_invalid=True)
    assert [content.count(name) for name in ("read", "rejected", "empty")] == [9, 7, 1]
    assert [text.partition(" is ")[0] for text in content.rejections] == [
        f"{path}, line {n + 3}, column value: 'bad{n}'" for n in range(5)
    ]
    with pytest.raises(UserError, match=r"all 1 rows with a value are invalid. .*line 2, column value: 'bad'"):
        loaded(written(tmp_path, f"{HEAD}2024-01-01,A,bad\n"), skip_invalid=True)


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "ndjson", "json"])
def test_typed_files_are_read_as_text_files_are(tmp_path: Path, suffix: str) -> None:
    """Binary floats are what their shortest text says; dates with a type are dates."""
    frame = pl.DataFrame({"time": ["2024-01-01", "2024-01-02"], "asset": ["A", "A"], "value": [0.1, 1e-7]})
    typed = frame if "json" in suffix else frame.with_columns(pl.col("time").str.to_date())
    path = tmp_path / f"file.{suffix}"
    {"parquet": typed.write_parquet, "arrow": typed.write_ipc, "ndjson": typed.write_ndjson, "json": typed.write_json}[
        suffix
    ](path)
    assert rows_of(loaded(path)) == [("A", DAY1, D("0.1")), ("A", DAY2, D("1e-7"))]


def test_the_later_file_wins_and_a_disagreement_names_both(tmp_path: Path) -> None:
    files = [written(tmp_path, f"{HEAD}2024-01-01,A,{n}\n", f"{n}.csv") for n in (2, 1)]
    assert rows_of(loaded(*files, last_wins=True)) == [("A", DAY1, D(1))]
    with pytest.raises(UserError, match=r"2\.csv, line 2: 2\.0+ and .*1\.csv, line 2: 1\.0+\. Delete the"):
        loaded(*files)


def stored(text: str, exponent: int = 0) -> Decimal | None:
    """The number with 18 decimals, half to even; None if that is not below 10^20. The oracle is Decimal."""
    value = Decimal(text).scaleb(exponent, EXACT).quantize(Decimal("1e-18"), context=EXACT)
    return value if value.copy_abs() < 10**20 else None


@given(
    st.sampled_from(["", "-", "+"]),
    st.text("0123456789", max_size=22),
    st.text("0123456789", max_size=40),
    st.integers(-60, 25) | st.none(),
    st.booleans(),
)
@example("", "99999999999999999999", "9999999999999999995", None, False)
@example("", "0", "0000000000000000005000000000000000000000000001", None, False)
@example("-", "0", "0000000000000000015", None, False)
@example("", "1", "5", -18, True)
def test_any_number_is_rounded_once_and_half_to_even(
    sign: str, whole: str, decimals: str, exponent: int | None, percent: bool
) -> None:
    text = f"{sign}{whole or 0}.{decimals}" + ("" if exponent is None else f"e{exponent}")
    expected = stored(text, -2 if percent else 0)
    assert parse_values(pl.Series([text]), ValueRules(percent=percent)).item() == expected
    assert parse_values(pl.Series([text.replace(".", ",")]), ValueRules(comma=True, percent=percent)).item() == expected


TOKENS = [
    "1704067200",
    "1704067200000",
    "2024-01-01",
    "01/02/2024",
    "ETH",
    "0.5",
    "1,5",
    "5%",
    "1e400",
    "-1",
    '"',
    "=x",
]
FIELDS = st.sampled_from(["", "\0", "é", *TOKENS]) | st.text(max_size=6)


@given(
    st.lists(st.sampled_from(["time", "asset", "value", "t", "v", "", "ETH"]), max_size=5),
    st.lists(st.lists(FIELDS, max_size=5), max_size=6),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.booleans(),
    st.booleans(),
)
def test_any_text_is_imported_or_refused(
    tmp_path_factory: pytest.TempPathFactory, header: list[str], rows: list[list[str]], end: str, wide: bool, skip: bool
) -> None:
    """Nothing else is raised, and what is read is in range."""
    text = end.join(",".join(row) for row in [header, *rows]) + end
    path = written(tmp_path_factory.mktemp("any"), text.encode("utf-8", "surrogatepass"))
    try:
        content = loaded(path, wide=wide, skip_invalid=skip)
    except UserError:
        return
    assert all(
        0 <= second < AT.timestamp() + 86_400 and 0 <= value < 10**20 for _, second, value in content.rows.iter_rows()
    )


def test_times_that_a_type_has_rounded_are_refused(tmp_path: Path) -> None:
    pl.DataFrame({"time": [1704067200.0], "value": [1.0]}, {"time": pl.Float32, "value": pl.Float64}).write_parquet(
        tmp_path / "a.parquet"
    )
    with pytest.raises(UserError, match="column time: has 32-bit floats, in which times are rounded"):
        loaded(tmp_path / "a.parquet", asset="A")
