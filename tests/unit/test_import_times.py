"""Times in files of histories. The oracle is datetime with zoneinfo."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics_service.imports.times import UNITS, TimeRules, TimeStyle, Unit, read_times
from tests.oracle import ZONES

# 2024-01-02T03:04:05Z
SECOND = 1_704_164_645
MIDNIGHT = 1_704_153_600
AS_WRITTEN = TimeRules()
IN_UTC = TimeRules("UTC")
WALLS = st.datetimes(datetime.fromisoformat("1971-01-01"), datetime.fromisoformat("2037-12-31"))


def read(text: str, rules: TimeRules = AS_WRITTEN) -> tuple[int | None, TimeStyle | None, bool]:
    row = read_times(pl.Series([text]), rules).row(0, named=True)
    return row["second"], row["kind"], row["twice"]


def instants(wall: datetime, zone: ZoneInfo) -> set[int]:
    """The seconds at which the clocks of a zone show a wall time: none in a gap, two where they are set back."""
    seconds = {int(wall.replace(tzinfo=zone, fold=fold).timestamp()) for fold in (0, 1)}
    return {second for second in seconds if datetime.fromtimestamp(second, zone).replace(tzinfo=None) == wall}


def seconds_of(day: date, zone: ZoneInfo) -> tuple[int, int] | tuple[None, None]:
    """The first and last second of a day, found by going through the quarters of an hour around it."""
    noon = int(datetime(day.year, day.month, day.day, 12, tzinfo=UTC).timestamp())
    quarters = range(noon - 36 * 3600, noon + 36 * 3600, 900)
    own = [second for second in quarters if datetime.fromtimestamp(second, zone).date() == day]
    return (own[0], own[-1] + 899) if own else (None, None)


@pytest.mark.parametrize(
    ("text", "second"),
    [
        ("2024-01-02T03:04:05Z", SECOND),
        ("2024-01-02 03:04:05 UTC", SECOND),
        ("2024-01-02 03:04:05.999999999+00", SECOND),
        ("2024-01-02T03:04:05,5+0000", SECOND),
        ("2024-01-02T08:49:05+05:45", SECOND),
        ("2024-01-01T22:04:05-0500", SECOND),
        ("2024/1/2 3:04:05 gmt", SECOND),
        ("Jan 2, 2024 03:04:05 UTC", SECOND),
        ("2 january 2024 03:04:05Z", SECOND),
        ("2024-01-02Z", MIDNIGHT + 86_399),
        ("2024-01-02T03:04Z", SECOND - 5),
        ("2024-01-02 3:04:05 am UTC", SECOND),
        ("Jan 2, 2024 12:00 AM UTC", MIDNIGHT),
        ("2024-01-02 12:00:00PMZ", MIDNIGHT + 12 * 3600),
        ("Tue, 02 Jan 2024 03:04:05 GMT", SECOND),
        ("Tue, 2 Jan 2024 04:04:05 +0100", SECOND),
        ("Tue Jan 02 03:04:05 UTC 2024", SECOND),
        ("Tue Jan 02 2024 04:04:05 GMT+0100 (Central European Standard Time)", SECOND),
        ("20240102T030405Z", SECOND),
        ("2024-01-02 03:04:05 +0000 UTC", SECOND),
        ("2024.01.02 03:04:05Z", SECOND),
        ("2024-01-01 22:04:05 EST", SECOND),
        ("2024-01-01 23:04:05 EDT", SECOND),
        ("2024-01-01T22:04:05-05:00[America/New_York]", SECOND),
        ("2024-01-01T22:04:05[America/New_York]", SECOND),
        ("2024-01-01 22:04:05.000 America/New_York", SECOND),
        ("2024-01-02T03:04:05Z[UTC]", SECOND),
    ],
)
def test_a_time_with_a_zone_needs_no_option(text: str, second: int) -> None:
    assert read(text) == (second, TimeStyle.ZONED, False)
    assert read(text, TimeRules("Asia/Kolkata")) == (second, TimeStyle.ZONED, False)


@pytest.mark.parametrize(
    ("text", "rules", "second", "kind"),
    [
        ("2024-01-02 03:04:05", IN_UTC, SECOND, TimeStyle.LOCAL),
        ("2024-01-02", IN_UTC, MIDNIGHT + 86_399, TimeStyle.DATE),
        ("Jan 2, 2024", IN_UTC, MIDNIGHT + 86_399, TimeStyle.DATE),
        ("01/02/2024", TimeRules("UTC", order="mdy"), MIDNIGHT + 86_399, TimeStyle.DATE),
        ("02.01.2024", TimeRules("UTC", order="dmy"), MIDNIGHT + 86_399, TimeStyle.DATE),
        ("01/02/2024", IN_UTC, None, TimeStyle.ORDERLESS),
        ("2024-01-02", AS_WRITTEN, None, TimeStyle.DATE),
        ("2024-01-02 03:04:05", AS_WRITTEN, None, TimeStyle.LOCAL),
        # Years, days of Excel, and dates without marks might all be unix seconds.
        ("2024", IN_UTC, None, TimeStyle.SMALL),
        ("45293.5", IN_UTC, None, TimeStyle.SMALL),
        ("20240102", IN_UTC, None, TimeStyle.SMALL),
        ("20240102", TimeRules("UTC", order="ymd"), MIDNIGHT + 86_399, TimeStyle.DATE),
        ("01/02/2024", TimeRules("UTC", order="ymd"), None, TimeStyle.ORDERLESS),
        ("20240102030405", TimeRules("UTC", order="ymd"), SECOND, TimeStyle.LOCAL),
        ("45293", TimeRules(unit="s"), 45293, TimeStyle.SECONDS),
        ("1.704164645e+9", AS_WRITTEN, SECOND, TimeStyle.SECONDS),
        ("1.7041536E12", AS_WRITTEN, MIDNIGHT, TimeStyle.MILLISECONDS),
        ("20240102 030405", IN_UTC, SECOND, TimeStyle.LOCAL),
        ("20240102 0304", IN_UTC, SECOND - 5, TimeStyle.LOCAL),
        ("2024.01.02", IN_UTC, MIDNIGHT + 86_399, TimeStyle.DATE),
        ("Tuesday, January 2, 2024", IN_UTC, MIDNIGHT + 86_399, TimeStyle.DATE),
        ("Tue Jan  2 03:04:05 2024", IN_UTC, SECOND, TimeStyle.LOCAL),
        ("2024-01-02 08:49:05", TimeRules("+05:45"), SECOND, TimeStyle.LOCAL),
        ("2024-01-01 22:04:05", TimeRules("-05:00"), SECOND, TimeStyle.LOCAL),
        ("01/02/24", IN_UTC, None, TimeStyle.ORDERLESS),
        ("02/01/24", TimeRules("UTC", order="dmy"), MIDNIGHT + 86_399, TimeStyle.DATE),
        ("01/02/24", TimeRules("UTC", order="mdy"), MIDNIGHT + 86_399, TimeStyle.DATE),
        ("24/01/02", TimeRules("UTC", order="ymd"), MIDNIGHT + 86_399, TimeStyle.DATE),
        ("02-Jan-2024", IN_UTC, MIDNIGHT + 86_399, TimeStyle.DATE),
        ("02-Jan-24", IN_UTC, None, TimeStyle.ORDERLESS),
        ("02-Jan-24", TimeRules("UTC", order="dmy"), MIDNIGHT + 86_399, TimeStyle.DATE),
        ("02-Jan-24", TimeRules("UTC", order="mdy"), MIDNIGHT + 86_399, TimeStyle.DATE),
        ("24-Jan-02", TimeRules("UTC", order="ymd"), MIDNIGHT + 86_399, TimeStyle.DATE),
        ("02-Jan-71", TimeRules("UTC", order="dmy"), 367 * 86_400 - 1, TimeStyle.DATE),
        # A month holds from its last second.
        ("2018-08", IN_UTC, 1_535_759_999, TimeStyle.MONTH),
        ("2018M08", IN_UTC, 1_535_759_999, TimeStyle.MONTH),
        ("08/2018", IN_UTC, 1_535_759_999, TimeStyle.MONTH),
        ("Aug 2018", IN_UTC, 1_535_759_999, TimeStyle.MONTH),
        ("2018-08", AS_WRITTEN, None, TimeStyle.MONTH),
        ("Aug-18", IN_UTC, None, TimeStyle.ORDERLESS),
        ("Aug-18", TimeRules("UTC", order="dmy"), 1_535_759_999, TimeStyle.MONTH),
    ],
)
def test_what_a_time_leaves_open_follows_from_the_rules(
    text: str, rules: TimeRules, second: int | None, kind: TimeStyle
) -> None:
    assert read(text, rules) == (second, kind, False)


@pytest.mark.parametrize(
    "text",
    [
        "2024-02-30 00:00Z",
        "2023-02-29",
        "2024-01-01T24:00Z",
        "2016-12-31T23:59:60Z",
        "2024-01-01T12:60Z",
        "2024-01-01T00:00+25:00",
        "2024-01-01T00:00+15:00",
        "2024-01-01T00:00+05:99",
        "2024-01-01 13:00 PM",
        "2024-01-01 0:30 AM",
        "13/13/24",
        "Mayhem 1, 2024",
        "1 Jan 2, 2024",
        "2024-01-01 00:00 CST",
        "2024-01-01 00:00 Moon/Base",
        "2024-13",
        "2024-W01-1",
        "13/13/2024",
        "1704067200,5",
        "-5",
        "NaT",
        "null",
        "٢٠٢٤-01-01",
        "17040672001704067200",
    ],
)
def test_what_is_no_time_for_certain_is_no_time(text: str) -> None:
    assert read(text, TimeRules("UTC", order="mdy")) == (None, None, False)


@given(st.sampled_from(list(UNITS)), st.integers(10**8, 2**32 - 1), st.data())
def test_the_unit_of_a_number_follows_from_its_size_and_fractions_are_floored(
    unit: Unit, second: int, data: st.DataObject
) -> None:
    text = (
        f"{second * UNITS[unit] + data.draw(st.integers(0, UNITS[unit] - 1))}{data.draw(st.sampled_from(['', '.9']))}"
    )
    assert read(text) == read(text, TimeRules("Asia/Tokyo", unit))
    assert read(text)[0] == second


@given(WALLS, st.integers(-12 * 60, 14 * 60))
def test_any_offset_is_that_of_datetime(wall: datetime, minutes: int) -> None:
    sign, (hours, rest) = "-" if minutes < 0 else "+", divmod(abs(minutes), 60)
    text = f"{wall:%Y-%m-%dT%H:%M:%S.%f}{sign}{hours:02}:{rest:02}"
    assert read(text)[0] == int(
        (datetime.fromisoformat(text) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)
    )


@given(WALLS.map(lambda wall: wall.replace(microsecond=0)), st.sampled_from(ZONES))
def test_a_wall_time_is_read_only_if_its_zone_has_it_once(wall: datetime, name: str) -> None:
    expected = instants(wall, ZoneInfo(name))
    second, _, twice = read(str(wall), TimeRules(name))
    assert (second, twice) == ((*expected, False) if len(expected) == 1 else (None, True))


def days_near_changes(first: date, years: int, zone: ZoneInfo) -> list[date]:
    """Those on which the clocks of a zone change, with two on either side, and the first of each month."""
    days = [first + timedelta(days=n) for n in range(366 * years)]
    offsets = [datetime(day.year, day.month, day.day, 12, tzinfo=zone).utcoffset() for day in days]
    changes = [place for place, pair in enumerate(pairwise(offsets)) if pair[0] != pair[1]]
    near = {place + beside for place in changes for beside in range(-2, 4)}
    return [day for place, day in enumerate(days) if place in near or day.day == 1]


@pytest.mark.parametrize("name", ZONES)
def test_wall_times_around_every_change_of_clocks(name: str) -> None:
    zone = ZoneInfo(name)
    days = [datetime(day.year, day.month, day.day) for day in days_near_changes(date(2011, 1, 1), 2, zone)]  # noqa: DTZ001
    hours = [day + timedelta(minutes=30 * n) for day in days for n in range(48)]
    rows = read_times(pl.Series(map(str, hours)), TimeRules(name))
    for wall, second, twice in zip(hours, rows["second"], rows["twice"], strict=True):
        expected = instants(wall, zone)
        assert (second, twice) == ((*expected, False) if len(expected) == 1 else (None, True)), wall


@pytest.mark.parametrize("name", ZONES)
def test_a_date_holds_from_its_last_second_in_the_zone(name: str) -> None:
    """Also where midnight is skipped or doubled. Samoa had no 2011-12-30."""
    days = [*days_near_changes(date(2009, 1, 1), 4, ZoneInfo(name)), date(2026, 9, 6), date(2026, 11, 1)]
    rows = read_times(pl.Series(map(str, days)), TimeRules(name))
    for day, begin, second, twice in zip(days, rows["begin"], rows["second"], rows["twice"], strict=True):
        expected = seconds_of(day, ZoneInfo(name))
        assert (begin, second, twice) == (*expected, expected[0] is None), day
    assert (name == "Pacific/Apia") == (None in rows["second"].to_list())


def test_times_in_scientific_notation_with_few_digits_were_rounded() -> None:
    assert read("1.70407E+12")[1] == TimeStyle.ROUNDED
    kinds = read_times(pl.Series(["1.7040672E+12", "1.7E+12"]), AS_WRITTEN)["kind"].to_list()
    assert kinds == [TimeStyle.MILLISECONDS, TimeStyle.MILLISECONDS]


# Clocks of New York were set back from 02:00 to 01:00 on 2024-11-03, which was 06:00 in UTC.
HOUR_BACK = ["00:30", "01:00", "01:30", "01:00", "01:30", "02:00"]
AT_SIX = 1_730_613_600
IN_ORDER = [AT_SIX + minutes * 60 for minutes in (-90, -60, -30, 0, 30, 60)]


def in_new_york(clocks: list[str], assets: list[str] | None = None) -> list[int | None]:
    texts = pl.Series([f"2024-11-03 {clock}" for clock in clocks])
    return read_times(texts, TimeRules("America/New_York"), assets and pl.Series(assets))["second"].to_list()


def test_the_order_of_rows_tells_which_of_two_equal_wall_times_is_meant() -> None:
    assert in_new_york(HOUR_BACK) == IN_ORDER
    assert in_new_york(HOUR_BACK[::-1]) == IN_ORDER[::-1]
    assert in_new_york(["00:00", "01:00", "01:00"]) == [AT_SIX - 7200, AT_SIX - 3600, AT_SIX]
    twice = [clock for clock in HOUR_BACK for _ in range(2)]
    assert in_new_york(twice, ["a", "b"] * 6) == [second for second in IN_ORDER for _ in range(2)]


@pytest.mark.parametrize(
    "clocks",
    [
        ["00:00", "01:00", "02:00"],
        ["00:30", "01:00", "01:30", "02:00"],
        ["03:00", "00:30", "01:30", "01:00", "05:00"],
        ["00:30", "01:30", "01:00", "01:30", "01:00", "02:00"],
    ],
)
def test_without_such_an_order_a_repeated_hour_is_not_read(clocks: list[str]) -> None:
    read_at = dict(zip(clocks, in_new_york(clocks), strict=True))
    assert all((second is None) == clock.startswith("01") for clock, second in read_at.items())
