"""From when values of files hold: what their times name, intervals, and the four observations of a candle."""

from pathlib import Path

import pytest

from analytics_service.cli.import_report import understood
from analytics_service.errors import ImportRefused
from analytics_service.imports.history_files import load_history
from analytics_service.imports.holding import Holding, parse_interval
from analytics_service.imports.layout import ColumnChoice
from analytics_service.imports.presets import PRICES
from analytics_service.imports.reading import HistoryRequest
from analytics_service.imports.times import TimeRules
from tests.doubles import Silent
from tests.unit.history_files import AT, loaded, written

# 2024-01-01T00:00:00Z, a Monday.
MONDAY, HOUR, DAY = 1_704_067_200, 3600, 86_400
NOTHING, BEGIN, END = Holding(), Holding("begin"), Holding("end")
OHLC = "time,open,high,low,close\n"


def held(
    folder: Path, text: str, holding: Holding, zone: str = "UTC", *, candles: bool = False
) -> list[tuple[int, str]]:
    """The seconds and values of a file of one asset."""
    path, times = written(folder, text), TimeRules(zone)
    choice = ColumnChoice(symbol=None if text.startswith("t,time") else "A", candles=candles)
    request = HistoryRequest(PRICES, [path], choice, times, holding=holding, new_assets=True)
    rows = load_history(None, request, AT, Silent(), keep_rejected=False).rows
    return [(second, f"{value.normalize():f}") for _, second, value in rows.iter_rows()]


def hours(*values: int, step: int = HOUR) -> str:
    return "time,price\n" + "".join(f"{MONDAY + n * step},{value}\n" for n, value in enumerate(values))


@pytest.mark.parametrize(
    ("text", "holding", "zone", "seconds"),
    [
        (hours(1, 2), NOTHING, "UTC", [MONDAY, MONDAY + HOUR]),
        (hours(1, 2), END, "UTC", [MONDAY, MONDAY + HOUR]),
        (hours(1, 2).replace("price", "close"), NOTHING, "UTC", [MONDAY, MONDAY + HOUR]),
        ("time,close\n2024-01-01 16:00,1\n2024-01-02 00:00,2\n", NOTHING, "UTC", [MONDAY + 16 * HOUR, MONDAY + DAY]),
        ("begin,end,price\n2024-01-01 00:00,2024-01-01 01:00,1\n", NOTHING, "UTC", [MONDAY + HOUR]),
        (hours(1, 2), BEGIN, "UTC", [MONDAY + HOUR - 1, MONDAY + 2 * HOUR - 1]),
        (hours(1), Holding("begin", "1m"), "UTC", [MONDAY + 59]),
        # Months are those of the calendar: January has 31 days, February 29.
        ("time,price\n2024-01-01,1\n2024-02-01,2\n", BEGIN, "UTC", [MONDAY + 31 * DAY - 1, MONDAY + 60 * DAY - 1]),
        ("time,price\n2024-01,1\n2024-02,2\n", BEGIN, "UTC", [MONDAY + 31 * DAY - 1, MONDAY + 60 * DAY - 1]),
        ("time,price\n2024-01-01,1\n2024-01-08,2\n", BEGIN, "UTC", [MONDAY + 7 * DAY - 1, MONDAY + 14 * DAY - 1]),
        # Clocks of New York went forward on 2024-03-10, so that day had 23 hours.
        (
            "time,price\n2024-03-10 00:00,1\n2024-03-11 00:00,2\n", BEGIN, "America/New_York",
            [1_710_129_599, 1_710_215_999],
        ),
        # As the service writes days of New York around that day: no bucket may reach into the next.
        (
            "t,v\n1709960400,1\n1710046800,2\n1710129600,3\n", NOTHING, "UTC",
            [1_710_043_199, 1_710_129_599, 1_710_212_399],
        ),
        # Elsewhere no value may hold too early.
        (
            "date,price\n2024-03-09T00:00-05:00,1\n2024-03-10T00:00-05:00,2\n2024-03-11T00:00-04:00,3\n", BEGIN, "UTC",
            [1_710_046_799, 1_710_133_199, 1_710_215_999],
        ),
        # The times of closing count, whatever an option says of others.
        ("open_time,close_time,close\n1704067200000,1704070799999,1\n", BEGIN, "UTC", [MONDAY + HOUR - 1]),
        # Buckets of an own page; an hour that is not over holds from now.
        (f"t,time,asset_id,symbol,v\n{MONDAY},,,A,1\n{MONDAY + HOUR},,,A,\n", NOTHING, "UTC", [MONDAY + HOUR - 1]),
        (hours(1, 2, step=400 * DAY), Holding("begin", "999d"), "UTC", [MONDAY + 999 * DAY - 1, int(AT.timestamp())]),
    ],
)  # fmt: skip
def test_a_value_holds_from_the_end_of_its_interval(
    tmp_path: Path, text: str, holding: Holding, zone: str, seconds: list[int]
) -> None:
    assert [second for second, _ in held(tmp_path, text, holding, zone)] == seconds


OWN = f"t,time,asset_id,symbol,o,h,l,c,n\n{MONDAY},,,A,1,9,0.5,2,7\n{MONDAY + 60},,,A,2,2,2,2,0\n"


@pytest.mark.parametrize(
    ("text", "holding", "length"),
    [
        (f"{OHLC}2024-01-01,1,9,0.5,2\n", NOTHING, DAY),
        (f"{OHLC}{MONDAY},1,9,0.5,2\n", Holding("begin", "1m"), 60),
        (f"{OHLC}{MONDAY + 59},1,9,0.5,2\n", Holding("end", "1m"), 60),
        (f"open_time,close_time,open,high,low,close\n{MONDAY},{MONDAY + 60},1,9,0.5,2\n", NOTHING, 60),
        (OWN, NOTHING, 60),
    ],
)
def test_a_candle_is_four_observations(tmp_path: Path, text: str, holding: Holding, length: int) -> None:
    """At its first second, after a third, after two thirds, and at its last second."""
    expected = [(0, "1"), (length // 3, "9"), (length * 2 // 3, "0.5"), (length - 1, "2")]
    assert held(tmp_path, text, holding, candles=True) == [(MONDAY + at, value) for at, value in expected]
    assert [value for _, value in held(tmp_path, text, holding)] == ["2"]


@pytest.mark.parametrize(
    ("text", "holding", "candles", "message"),
    [
        (f"{OHLC}{MONDAY},1,9,0.5,2\n", NOTHING, False, f"line 2: '{MONDAY}'.*--stamp begin or --stamp end"),
        (hours(1).replace("time,price", "open_time,close"), NOTHING, False, "--stamp begin or --stamp end"),
        (hours(1), BEGIN, False, "one time of each asset.*--interval 1d"),
        (hours(1, 2), Holding(None, "1h"), False, "An interval changes nothing.*--stamp begin"),
        # A week or month that begins, or one that ends.
        (f"{OHLC}2024-01-01,1,9,0.5,2\n2024-01-08,1,9,0.5,2\n", NOTHING, False, "values at dates.*--stamp begin or"),
        (f"{OHLC}2024-01-01,1,9,0.5,2\n2024-02-01,1,9,0.5,2\n", NOTHING, True, "values at dates.*--stamp begin or"),
        # Times named as an opening, of the file or by the caller.
        ("open time,close\n2024-01-01,1\n2024-01-02,2\n", NOTHING, False, "values at dates.*--stamp begin or"),
        ("window_start,price\n2024-01-01 10:00,1\n", NOTHING, False, "line 2: '2024-01-01 10:00'.*--stamp begin or"),
        # Closes of days, which many sources write at the first second.
        ("time,close\n2024-01-01 00:00:00,1\n2024-01-02 00:00:00,2\n", NOTHING, False, "--stamp begin or"),
        ("time,close\n2024-03-10T00:00-05:00,1\n2024-03-11T00:00-04:00,2\n", NOTHING, False, "--stamp begin or"),
        (hours(1, 2, step=DAY).replace("price", "Close/Last"), NOTHING, False, "--stamp begin or"),
        (f"{OHLC}{MONDAY},1,9,0.5,2\n", Holding("begin", "3s"), True, "candles of less than 4 seconds"),
        ("time,price\n2024-01-01,1\n2024-01-01 01:00,2\n", NOTHING, False, "mixes dates .* and times without a zone"),
    ],
)
def test_what_leaves_open_when_a_value_holds_is_refused(
    tmp_path: Path, text: str, holding: Holding, candles: bool, message: str
) -> None:
    with pytest.raises(ImportRefused, match=message):
        held(tmp_path, text, holding, candles=candles)


@pytest.mark.parametrize("text", ["0h", "1", "h", "1y", "-1h", "1.5h"])
def test_an_interval_has_a_number_and_a_unit(text: str) -> None:
    with pytest.raises(ValueError, match="must be a whole number followed by s, min, h, d, w or mo"):
        parse_interval(text)


def test_dates_a_week_apart_are_taken_as_they_are_with_a_hint(tmp_path: Path) -> None:
    def shown(*days: str) -> str:
        text = "date,price\n" + "".join(f"{day},1\n" for day in days)
        content = loaded(written(tmp_path, text), choice=ColumnChoice(symbol="A"), times=TimeRules("UTC"))
        return "\n".join(understood(content))

    assert "; --stamp begin is for dates that name the beginning of a week" in shown("2024-01-01", "2024-01-08")
    assert "--stamp" not in shown("2024-01-01", "2024-01-02", "2024-01-09") + shown("2024-01", "2024-02")


def test_a_candle_of_dates_that_end_is_as_long_as_their_distance(tmp_path: Path) -> None:
    """January and February, whose last days are 29 days apart."""
    text = f"{OHLC}2024-01-31,1,9,0.5,2\n2024-02-29,3,9,0.5,4\n"
    opens = [second for second, value in held(tmp_path, text, END, candles=True) if value in "13"]
    assert opens == [MONDAY, MONDAY + 31 * DAY]


def test_the_value_of_a_candle_is_its_close(tmp_path: Path) -> None:
    """By whatever name; it needs columns of the others."""
    text = "time,Price,Open,High,Low\n2024-01-01,2,1,9,0.5\n"
    assert [value for _, value in held(tmp_path, text, NOTHING, candles=True)] == ["1", "9", "0.5", "2"]
