"""How the rows of a file are read, and what is refused: rows by line and reason, files by what they leave open."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics_service.errors import ImportRefused
from analytics_service.imports.history_files import load_history
from analytics_service.imports.layout import ColumnChoice
from analytics_service.imports.numerals import Mark, NumberRules
from analytics_service.imports.presets import PRICES, preset_of
from analytics_service.imports.reading import HistoryRequest
from analytics_service.imports.times import TimeRules
from analytics_service.store.datasets import histories
from analytics_service.store.datasets.histories import History
from tests.doubles import Silent
from tests.unit.history_files import AS_WRITTEN, AT, BY_NAME, BY_SIZE, HEADER, IN_UTC, loaded, rows_of, written

TOO_LATE = AT + timedelta(days=1, seconds=1)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("1704067200,ETH,1,2", "more fields than columns"),
        ('1704067200,ETH,"1', "a quote is not closed on the line"),
        (",ETH,1", "the time is empty"),
        ("-1,ETH,1", "the time is negative"),
        ("1704067200.5.5,ETH,1", "the time cannot be read; write it such as 2026-01-31T12:00:00Z"),
        (f"{int(TOO_LATE.timestamp())},ETH,1", "the time is in the future"),
        ("1704067200,,1", "the asset is empty"),
        ("1704067200,=1+1,1", "a spreadsheet would run it"),
        ("1704067200,A B,1", "holds a space"),
        ('1704067200,"A,B",1', "holds a comma"),
        ("1704067200,A\ufffd,1", "bytes that are not UTF-8"),
        ("yesterday,ETH,", "the time cannot be read"),
        ("1704067200,ETH,\\N", "the value is not a number"),
        ("1704067200,ETH,-1e-30", "the value is negative"),
        ("1704067200,ETH,$-5", "the value is negative"),
        ("1704067200,ETH,1e20", "the value is not below 10^20"),
        ("1704067200,ETH," + "1" * 40, "the value is not below 10^20"),
        ("1704067200,ETH,5%", "the value is in percent"),
    ],
)
def test_a_bad_row_is_named_with_its_line_and_reason_and_nothing_is_imported(
    tmp_path: Path, row: str, reason: str
) -> None:
    path = written(tmp_path, f"{HEADER}1704067200,BTC,1\n{row}\n1704067201,BTC,2\n")
    with pytest.raises(ImportRefused) as refusal:
        loaded(path)
    message = str(refusal.value)
    assert f"{path}, line 3: " in message
    assert reason in message
    assert "1 of 3 rows" in message
    assert "--skip-invalid" in message
    request = HistoryRequest(PRICES, [path], new_assets=True, skip_invalid=True)
    content = load_history(None, request, AT, Silent(), keep_rejected=False)
    assert [row[1] for row in rows_of(content)] == [1_704_067_200, 1_704_067_201]
    assert [asset.symbol for asset in content.new] == ["BTC"]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("times", "rules", "message"),
    [
        (["1704067200", "1704067200000"], BY_SIZE, r"mixes unix seconds \(line 2: .*milliseconds \(line 3: "),
        (["1704067200", "2024-01-01T00:00Z"], IN_UTC, "mixes unix seconds .* and times with a zone"),
        (["45292"], BY_SIZE, "too small to tell their unit: line 2: '45292'.*--time-unit"),
        (["20240101"], IN_UTC, "--date-order ymd"),
        (["2024-01-01"], BY_SIZE, "has dates, line 2: '2024-01-01'.*--zone UTC"),
        (["2024-01-01T00:00Z", "2024-01-01 01:00"], BY_SIZE, "has times without a zone, line 3.*--zone UTC"),
        (["12/11/2024"], IN_UTC, "--date-order dmy or --date-order mdy"),
        (["02-Jan-24"], IN_UTC, "the day or year may come first.*--date-order dmy or --date-order ymd"),
        (["26/06/24"], IN_UTC, "--date-order dmy or --date-order ymd"),
        (["12/11/2024", "12/31/2024", "12/11/2024"], IN_UTC, "allow --date-order mdy only"),
        (["12.11.2024", "31.12.2024", "1.1.2024"], IN_UTC, "allow --date-order dmy only"),
        (["12/31/2024"], TimeRules(order="mdy"), "--zone UTC"),
        (["2024-10-27 01:30"], TimeRules("Europe/London"), "twice, at 2024-10-27T00:30:00Z and 2024-10-27T01:30:00Z"),
        (["2024-03-31 01:30"], TimeRules("Europe/London"), "Europe/London never has this time"),
        (["2024-01-01 09:30 CST"], IN_UTC, "CST, IST and BST are names of several zones; .*--zone"),
    ],
)
def test_times_that_can_be_read_in_two_ways_are_refused_with_the_option(
    tmp_path: Path, times: list[str], rules: TimeRules, message: str
) -> None:
    path = written(tmp_path, HEADER + "".join(f"{time},ETH,1\n" for time in times))
    with pytest.raises(ImportRefused, match=message):
        loaded(path, times=rules)


@pytest.mark.parametrize(
    ("values", "history", "message"),
    [
        (["1,234"], histories.PRICES, "line 2: '1,234'. Say which with --decimal-point or --decimal-comma"),
        (["1 234", "1,234"], histories.PRICES, "--decimal-point or --decimal-comma"),
        (["1.5", "1,5"], histories.PRICES, "line 3: '1,5'. If so, say --decimal-comma"),
        (["5%", "0.05"], histories.LEND_RATES, "values with and without %.*--percent"),
        (["0.05", "5.1"], histories.LEND_RATES, "line 2: '0.05'. Say which with --percent or --fraction"),
        (["1"], histories.UTILIZATION, "--percent or --fraction"),
        (["101"], histories.LEND_RATES, "--percent or --fraction"),
    ],
)
def test_numbers_that_can_be_read_in_two_ways_are_refused_with_the_option(
    tmp_path: Path, values: list[str], history: History, message: str
) -> None:
    path = written(tmp_path, HEADER + "".join(f'1704067200,ETH,"{value}"\n' for value in values))
    with pytest.raises(ImportRefused, match=message):
        loaded(path, history=history, choice=ColumnChoice(value="price"))


def test_points_in_a_file_with_semicolons_may_separate_thousands(tmp_path: Path) -> None:
    """Unless a number shows that they do not."""
    header, rows = "time;symbol;price\n", "1704067200;ETH;3.319\n1704067201;ETH;12.500\n"
    path = written(tmp_path, header + rows)
    with pytest.raises(ImportRefused, match=r"line 2: '3\.319'\. Say which with --decimal-point"):
        loaded(path)
    assert [value for *_, value in rows_of(loaded(path, numbers=NumberRules(Mark.COMMA)))] == [3319, 12500]
    shown = written(tmp_path, f"{header}{rows}1704067202;ETH;4.1\n")
    assert [value for *_, value in rows_of(loaded(shown))] == [Decimal("3.319"), Decimal("12.5"), Decimal("4.1")]


@pytest.mark.parametrize(
    ("values", "rules", "fraction", "expected"),
    [
        (["5.1", "0.05"], NumberRules(percent=True), False, ["0.051", "0.0005"]),
        (["5.1", "0.05"], AS_WRITTEN, True, ["5.1", "0.05"]),
        (["0.9", "0.05"], AS_WRITTEN, True, ["0.9", "0.05"]),
        (["5.1%", "0.05 %"], AS_WRITTEN, False, ["0.051", "0.0005"]),
        (["5,1 %"], NumberRules(Mark.COMMA), False, ["0.051"]),
    ],
)
def test_rates_are_fractions_or_percents_as_was_said(
    tmp_path: Path, values: list[str], rules: NumberRules, fraction: bool, expected: list[str]
) -> None:
    rows = "".join(f'{1704067200 + n},ETH,"{value}"\n' for n, value in enumerate(values))
    path = written(tmp_path, f"time,symbol,apr\n{rows}")
    content = loaded(path, history=histories.LEND_RATES, numbers=rules, fraction=fraction)
    assert [value for *_, value in rows_of(content)] == [Decimal(text) for text in expected]


def test_a_sign_in_the_name_of_a_column_is_one_in_each_value(tmp_path: Path) -> None:
    path = written(tmp_path, "time,symbol,Rate %\n1704067200,ETH,0.05\n")
    content = loaded(path, history=histories.LEND_RATES, choice=ColumnChoice(value="Rate %"))
    assert [value for *_, value in rows_of(content)] == [Decimal("0.0005")]


@pytest.mark.parametrize(
    ("names", "asset"),
    [
        (["eth", "ETH", " Eth "], "native;eth"),
        (["0x" + "Ab" * 20, "0x" + "ab" * 20, "0X" + "AB" * 20], "token;0x" + "Ab" * 20),
        (["token;0xAb", "token;0xab"], "token;0xAb"),
    ],
)
def test_an_asset_in_another_case_is_the_same(tmp_path: Path, names: list[str], asset: str) -> None:
    path = written(tmp_path, HEADER + "".join(f"{1704067200 + n},{name},1\n" for n, name in enumerate(names)))
    assert [row[0] for row in rows_of(loaded(path))] == [asset] * len(names)


def test_of_several_ticks_of_a_second_the_last_one_wins_over_all_files(tmp_path: Path) -> None:
    first = written(tmp_path, f"{HEADER}1704067200.9,ETH,1\n1704067200,eth,2\n1704067200,ETH,2.0\n", "b.csv")
    last = written(tmp_path, f"{HEADER}1704067200.5,ETH,3\n", "a.csv")
    assert rows_of(loaded(first)) == [("native;ETH", 1_704_067_200, Decimal(2))]
    assert rows_of(loaded(first, last)) == [("native;ETH", 1_704_067_200, Decimal(3))]


@pytest.mark.parametrize(
    ("contents", "choice", "message"),
    [
        (["t,symbol,price,currency\n9,A,1,USD\n10,A,1,USD\n10,A,2,EUR\n"], BY_NAME, "line 3.*line 4.*price, cu"),
        (["t,symbol,price\n10,btc,1\n10,BTC,2\n"], BY_NAME, "differ in symbol, price"),
        (["t,price\n10,1\n", "t,price\n11,1\n10,2\n"], ColumnChoice(symbol="A"), "0.csv, .*1.csv, line 3.*--symbol"),
        (["t,symbol,price\n10,A,1\n", "t,symbol,price\n11,B,1\n"], ColumnChoice(symbol="A"), "several assets"),
        (["t,symbol,price\n10,B,1\n"], ColumnChoice(symbol="A"), "line 2: 'B'. Leave out --symbol, or say --asset"),
        (["id,t,price\n1,10,5\n2,11,6\n"], BY_NAME, "another whole number as 'id' in each row.*--symbol.*--asset id"),
    ],
)  # fmt: skip
def test_rows_that_may_be_of_several_assets_or_kinds_are_refused(
    tmp_path: Path, contents: list[str], choice: ColumnChoice, message: str
) -> None:
    files = [written(tmp_path, content, f"{number}.csv") for number, content in enumerate(contents)]
    with pytest.raises(ImportRefused, match=message):
        loaded(*files, choice=choice, times=TimeRules(unit="s"))


def test_the_later_of_two_rows_that_disagree_wins_if_somebody_says_so(tmp_path: Path) -> None:
    path = written(tmp_path, f"{HEADER}1704067200,ETH,1\n1704067200,ETH,2\n")
    request = HistoryRequest(PRICES, [path], new_assets=True, last_wins=True)
    content = load_history(None, request, AT, Silent(), keep_rejected=False)
    assert rows_of(content) == [("native;ETH", 1_704_067_200, Decimal(2))]


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
    "$",
    '"',
    "=x",
]
CELLS = st.sampled_from(["", "\0", "é", *TOKENS]) | st.text(max_size=6)
ROWS = st.lists(st.lists(CELLS, max_size=5), max_size=6)
HEADERS = st.lists(st.sampled_from(["time", "symbol", "price", "apr", "t", "id", "", "ETH"]), max_size=5)


@given(HEADERS, ROWS, st.sampled_from(",;\t|"), st.sampled_from(["\n", "\r\n", "\r"]), st.booleans(), st.booleans())
def test_any_text_is_imported_or_refused(
    tmp_path_factory: pytest.TempPathFactory,
    header: list[str],
    rows: list[list[str]],
    delimiter: str,
    end: str,
    wide: bool,
    is_rate: bool,
) -> None:
    text = end.join(delimiter.join(row) for row in [header, *rows])
    path = written(tmp_path_factory.mktemp("any"), text.encode("utf-8", "surrogatepass") + end.encode())
    history = histories.LEND_RATES if is_rate else histories.PRICES
    request = HistoryRequest(preset_of(history), [path], ColumnChoice(wide=wide), IN_UTC, new_assets=True)
    for skip in (False, True):
        try:
            content = load_history(None, replace(request, skip_invalid=skip), AT, Silent(), keep_rejected=False)
        except ImportRefused:
            continue
        assert all(0 <= second <= TOO_LATE.timestamp() and 0 <= value < 10**20 for _, second, value in rows_of(content))
