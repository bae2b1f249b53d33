"""The bucket grid against an independent walk through the calendar."""

from datetime import date, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analytics_service.errors import ParameterInvalid
from analytics_service.history.calendar import midnights
from analytics_service.history.formats.csv import times
from analytics_service.history.grid import Grid, Period, fit_grid, make_grid
from tests import oracle


def second(*at: int, zone: str = "UTC") -> int:
    return int(datetime(*at, tzinfo=ZoneInfo(zone)).timestamp())  # type: ignore[misc, arg-type]


def grid(start: int, end: int, period: str, interval: int = 1, zone: str = "UTC") -> Grid:
    return make_grid(start, end, Period(period), interval, ZoneInfo(zone))


@given(
    zone=st.sampled_from(oracle.ZONES),
    start=st.integers(second(1972, 1, 1), second(2036, 1, 1)),
    length=st.integers(0, 90 * 86_400),
    period=st.sampled_from(["h", "d", "w", "m", "y"]),
    interval=st.integers(1, 7),
)
@example(zone="America/Santiago", start=second(2026, 9, 5), length=3 * 86_400, period="d", interval=1)
@example(zone="America/Havana", start=second(2026, 10, 31), length=3 * 86_400, period="d", interval=1)
@example(zone="Pacific/Apia", start=second(2011, 12, 28), length=5 * 86_400, period="d", interval=1)
@example(zone="America/Sao_Paulo", start=second(2018, 11, 3), length=3 * 86_400, period="d", interval=1)
@example(zone="Australia/Lord_Howe", start=second(2026, 4, 3), length=3 * 86_400, period="d", interval=1)
# It ends at 23:30, after clocks went from 00:01 of the next day back to 23:01.
@example(zone="America/St_Johns", start=second(2007, 11, 3), length=27 * 3600, period="d", interval=1)
# Years in which clocks changed four times, a day was left out, or midnight was.
@example(zone="Africa/Casablanca", start=second(2013, 5, 5), length=800 * 86_400, period="d", interval=1)
@example(zone="Pacific/Apia", start=second(2011, 1, 1), length=730 * 86_400, period="d", interval=1)
@example(zone="America/Sao_Paulo", start=second(2017, 12, 31), length=400 * 86_400, period="d", interval=1)
def test_every_begin_is_where_a_walk_through_the_calendar_finds_it(
    zone: str, start: int, length: int, period: str, interval: int
) -> None:
    end = start + length
    expected = oracle.begins(start, end, period, interval, zone)
    mine = grid(start, end, period, interval, zone)
    assert mine.count == len(expected) - 1
    assert [*mine.page(0, mine.count)] == expected


@given(
    zone=st.sampled_from(oracle.ZONES),
    start=st.integers(0, second(2036, 1, 1)),
    length=st.integers(0, 86_400),
    interval=st.integers(1, 10_000),
)
def test_minutes_begin_with_the_one_that_holds_the_start_in_any_zone(
    zone: str, start: int, length: int, interval: int
) -> None:
    mine = grid(start, start + length, "min", interval, zone)
    assert [*mine.page(0, mine.count)] == oracle.begins(start, start + length, "min", interval, zone)


@given(offset=st.integers(0, 40), limit=st.integers(1, 40))
def test_a_page_is_a_slice_of_the_whole(offset: int, limit: int) -> None:
    whole = grid(second(2026, 3, 1), second(2026, 3, 30), "d", 1, "Europe/London")
    everything = whole.page(0, whole.count)
    assert whole.page(offset, limit) == (everything[offset : offset + limit + 1] if offset < whole.count else [])


@pytest.mark.parametrize(
    ("day", "zone", "expected"),
    [
        # The 30th never came: it begins when the 29th ends.
        (date(2011, 12, 30), "Pacific/Apia", second(2011, 12, 30, 10)),
        # 44 minutes and 30 seconds behind until 1972.
        (date(1971, 6, 1), "Africa/Monrovia", second(1971, 6, 1, 0, 44, 30)),
        # That zone's clocks skipped from midnight to 00:44:30.
        (date(1972, 1, 7), "Africa/Monrovia", second(1972, 1, 7, 0, 44, 30)),
    ],
)
def test_midnight_of_days_whose_midnight_is_odd(day: date, zone: str, expected: int) -> None:
    assert midnights(ZoneInfo(zone), [day.toordinal()]) == [expected]


@pytest.mark.parametrize(
    ("zone", "start", "expected"),
    [
        # 01:30 the second time, at 06:30 UTC: that hour began at 06:00, not at 05:00.
        ("America/New_York", second(2026, 11, 1, 6, 30), second(2026, 11, 1, 6)),
        # 02:00 to 02:30 were skipped: the hour of 02:45 began with 02:30, at 15:30 UTC.
        ("Australia/Lord_Howe", second(2026, 10, 3, 15, 45), second(2026, 10, 3, 15, 30)),
        # From 03:45 back to 02:45, at 14:00 UTC: 03:45 occurs once, but its hour began twice, at 13:15 and at 14:15.
        ("Pacific/Chatham", second(2026, 4, 4, 15), second(2026, 4, 4, 14, 15)),
        ("Pacific/Chatham", second(2026, 4, 4, 13, 45), second(2026, 4, 4, 13, 15)),
        # From 00:01 back to 23:01: midnight is at 02:30 and at 03:30 UTC.
        ("America/St_Johns", second(2007, 11, 4, 3, 31), second(2007, 11, 4, 3, 30)),
    ],
)
def test_the_hour_of_a_moment_near_a_change_of_clocks(zone: str, start: int, expected: int) -> None:
    assert grid(start, start, "h", 1, zone).page(0, 1)[0] == expected


@pytest.mark.parametrize(
    ("zone", "period"),
    [("UTC", "d"), ("UTC", "w"), ("UTC", "m"), ("UTC", "y"), ("America/New_York", "d"), ("Pacific/Apia", "y")],
)
def test_the_widest_bucket_with_the_last_second_ends_after_it(zone: str, period: str) -> None:
    """10,000 years later, Python has no dates."""
    page = grid(4_294_967_295, 4_294_967_295, period, 10_000, zone).page(0, 100)
    assert len(page) == 2
    assert page[0] <= 4_294_967_295 < page[1]


def test_the_epoch_in_a_zone_west_of_utc_begins_on_the_day_before() -> None:
    assert grid(0, 0, "d", 1, "America/New_York").page(0, 1) == [second(1969, 12, 31, 5), second(1970, 1, 1, 5)]


def test_a_reversed_range_is_refused() -> None:
    with pytest.raises(ParameterInvalid, match="must not be later"):
        grid(2, 1, "d")


def test_a_range_of_more_than_a_million_buckets_is_refused_and_says_so() -> None:
    hours = 1_000_000
    assert grid(0, hours * 3600 - 1, "h").count == hours
    with pytest.raises(ParameterInvalid, match="1,000,001 buckets, more than 1,000,000"):
        grid(0, hours * 3600, "h")


# Widths that only a request may ask for, besides those of automatic buckets.
ALIGNED = [*oracle.WIDTHS, ("min", 90), ("h", 8), ("h", 24), ("d", 10), ("w", 4), ("m", 5), ("m", 6), ("y", 3)]
# The longest ranges that a walk through the calendar divides quickly, seconds.
SPANS = {"min": 4 * 86_400, "h": 8 * 86_400, "d": 20 * 86_400, "w": 60 * 86_400, "m": 200 * 86_400, "y": 800 * 86_400}


@given(
    zone=st.sampled_from(oracle.ZONES),
    start=st.integers(second(1972, 2, 1), second(2036, 1, 1)),
    share=st.floats(0, 1),
    width=st.sampled_from(ALIGNED),
)
@example(zone="America/Santiago", start=second(2026, 9, 5, 20), share=0.2, width=("h", 12))
@example(zone="Australia/Lord_Howe", start=second(2026, 4, 4, 20), share=0.2, width=("h", 1))
@example(zone="America/Havana", start=second(2026, 10, 31, 20), share=0.4, width=("h", 4))
@example(zone="Australia/Lord_Howe", start=second(2026, 4, 3, 20), share=0.6, width=("min", 30))
@example(zone="Australia/Lord_Howe", start=second(2026, 10, 2, 20), share=0.6, width=("h", 1))
@example(zone="Asia/Kathmandu", start=second(1985, 12, 31), share=0.4, width=("min", 30))
@example(zone="Pacific/Apia", start=second(2011, 12, 28), share=0.3, width=("d", 2))
@example(zone="Pacific/Apia", start=second(2011, 12, 28), share=1, width=("h", 8))
# The year changes in the range, and right after it.
@example(zone="Asia/Kolkata", start=second(2026, 12, 30), share=0.5, width=("h", 6))
@example(zone="America/New_York", start=second(2026, 12, 31), share=0.15, width=("h", 24))
def test_aligned_buckets_are_where_a_walk_through_the_calendar_finds_them(
    zone: str, start: int, share: float, width: tuple[str, int]
) -> None:
    period, interval = width
    end = start + int(SPANS[period] * share)
    mine = make_grid(start, end, Period(period), interval, ZoneInfo(zone), is_aligned=True)
    expected = oracle.aligned_begins(start, end, period, interval, zone)
    assert mine.count == len(expected) - 1
    assert [*mine.page(0, mine.count)] == expected
    assert mine.page(1, 2) == (expected[1:4] if len(expected) > 2 else [])


@given(
    zone=st.sampled_from(oracle.ZONES),
    start=st.integers(second(1972, 2, 1), second(2036, 1, 1)),
    length=st.integers(0, 30 * 86_400),
    points=st.integers(10, 60),
)
def test_a_range_is_divided_into_the_finest_buckets_that_are_few_enough(
    zone: str, start: int, length: int, points: int
) -> None:
    mine = fit_grid(start, start + length, points, ZoneInfo(zone))
    # Boundaries of the finer widths would be counted far beyond the number that is allowed.
    finer = oracle.WIDTHS[: oracle.WIDTHS.index((mine.period, mine.interval))]
    expected = oracle.aligned_begins(start, start + length, mine.period, mine.interval, zone)
    assert (mine.start, mine.end) == (expected[0], expected[-1] - 1)
    assert mine.page(0, points) == expected
    assert len(expected) - 1 <= points
    for width in finer[-2:]:
        assert len(oracle.aligned_begins(start, start + length, *width, zone)) - 1 > points


def test_aligned_weeks_begin_on_monday_whatever_the_start_is() -> None:
    """Clocks went forward on Sunday the 8th of March."""
    zone = "America/New_York"
    mondays = [second(2026, 3, 2, 5), second(2026, 3, 9, 4), second(2026, 3, 16, 4)]
    for day in range(2, 9):
        start, end = second(2026, 3, day, 15), second(2026, 3, 9, 12)
        mine = make_grid(start, end, Period.WEEK, 1, ZoneInfo(zone), is_aligned=True)
        assert [*mine.page(0, 9)] == mondays


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
@pytest.mark.parametrize(("period", "interval"), [("d", 10_000), ("w", 10_000), ("m", 10_000), ("y", 3), ("y", 10_000)])
@pytest.mark.parametrize("at", [0, 4_294_967_295])
def test_the_widest_aligned_bucket_holds_the_first_and_the_last_second(
    zone: str, period: str, interval: int, at: int
) -> None:
    """Python has no dates for the year 0, from which years are counted, nor for the year 10,000."""
    page = make_grid(at, at, Period(period), interval, ZoneInfo(zone), is_aligned=True).page(0, 100)
    assert len(page) == 2
    assert page[0] <= at < page[1]
    times(page, ZoneInfo(zone))


@pytest.mark.parametrize(("period", "interval"), [("h", 5), ("h", 48), ("min", 7), ("min", 2_880)])
def test_aligned_minutes_and_hours_must_divide_a_day(period: str, interval: int) -> None:
    with pytest.raises(ParameterInvalid, match="must divide a day with align=calendar") as caught:
        make_grid(0, 1, Period(period), interval, ZoneInfo("UTC"), is_aligned=True)
    assert caught.value.parameter == "interval"


def test_a_range_of_too_many_years_is_refused_and_says_so() -> None:
    with pytest.raises(ParameterInvalid, match="has 11 years, more than 10") as caught:
        fit_grid(second(2000, 1, 1), second(2010, 1, 1), 10, ZoneInfo("UTC"))
    assert caught.value.parameter == "points"
    assert fit_grid(second(2000, 1, 1), second(2010, 1, 1) - 1, 10, ZoneInfo("UTC")).count == 10
