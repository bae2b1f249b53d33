"""Which cells of blocks the candles of buckets consist of."""

from itertools import pairwise
from zoneinfo import ZoneInfo

from hypothesis import assume, given
from hypothesis import strategies as st

from analytics_service.history.buckets import Buckets
from analytics_service.history.candle_blocks import CandleLookup, hours_of_days, look_up_candles
from analytics_service.history.grid import Period, make_grid
from analytics_service.history.slots import Run

HOUR, DAY = 3600, 86_400
COLUMNS = ("open",)
ZONES = ("UTC", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia", "Africa/Monrovia")


def cells(found: CandleLookup) -> list[tuple[int, int]]:
    """Where each cell of a lookup begins, and its width."""
    return [
        (run.slot.begin + cell * run.slot.step, run.slot.width)
        for run in found.runs
        for cell in run.cells
        if 0 <= cell < run.slot.cells
    ]


@given(
    zone=st.sampled_from(ZONES).map(ZoneInfo),
    start=st.integers(0, 1_900_000_000),
    period=st.sampled_from([Period.HOUR, Period.DAY, Period.WEEK, Period.MONTH]),
    interval=st.integers(1, 40),
    count=st.integers(1, 60),
    until=st.floats(0, 1.2),
    series=st.sampled_from([1, 37, 500]),
)
def test_the_cells_of_a_bucket_follow_each_other_from_its_start_to_its_end(
    zone: ZoneInfo, start: int, period: Period, interval: int, count: int, until: float, series: int
) -> None:
    """The last bucket ends with the last observation, and what is left of an hour there is told."""
    begins = make_grid(start, start, period, interval, zone).begins(0, count + 1)
    last = begins[0] + int((begins[-1] - begins[0]) * until)
    found = look_up_candles(Buckets(begins, last), COLUMNS, series)
    assume(found is not None)
    assert found is not None
    left = iter(cells(found))
    for (begin, end), size in zip(pairwise(begins), found.counts, strict=False):
        for _ in range(size):
            cell, width = next(left)
            assert cell == begin
            begin += width
        assert begin == (end if end <= last else last if found.open_from is None else found.open_from)
    assert next(left, None) is None
    assert len(found.counts) == sum(begin < last for begin in begins[:-1])
    assert found.open_from is None or last - HOUR < found.open_from < last


def test_local_days_are_cells_of_their_own_unless_clocks_change() -> None:
    """New York, 200 days from 2025-01-15: 53 at five hours from UTC, one of 23 hours, 146 at four."""
    begins = make_grid(1_736_917_200, 1_736_917_200, Period.DAY, 1, ZoneInfo("America/New_York")).begins(0, 201)
    found = look_up_candles(Buckets(begins, begins[-1]), COLUMNS, 37)
    assert found is not None
    assert found.counts == [1] * 53 + [23] + [1] * 146
    assert [run.slot.slides for run in found.runs if run.slot.width == DAY] == [True] * (len(found.runs) - 1)


def test_days_of_all_zones_with_whole_hours_are_in_the_same_blocks() -> None:
    slots = []
    for zone in ("UTC", "America/New_York", "Asia/Tokyo"):
        begins = make_grid(1_736_917_200, 1_736_917_200, Period.DAY, 1, ZoneInfo(zone)).begins(0, 31)
        found = look_up_candles(Buckets(begins, begins[-1]), COLUMNS, 37)
        assert found is not None
        slots.append({run.slot for run in found.runs})
    assert slots[0] == slots[1] == slots[2]


@given(
    start=st.integers(0, 10**6).map(lambda quarter: quarter * 900),
    count=st.integers(1, 200),
    series=st.sampled_from([1, 37, 500, 10**5]),
)
def test_the_hours_of_a_run_of_days_are_all_in_the_blocks_of_its_first_day(start: int, count: int, series: int) -> None:
    begins = range(start, start + count * DAY + 1, DAY)
    found = look_up_candles(Buckets(begins, begins[-1]), COLUMNS, series)
    assert found is not None
    for run in found.runs:
        hours = hours_of_days(run)
        there = [one.slot.begin + hour * HOUR for one in hours for hour in one.cells]
        begin = run.slot.begin + run.cells[0] * HOUR
        assert there == [*range(begin, begin + (len(run.cells) - 1) * DAY + DAY, HOUR)]
        first = hours_of_days(Run(run.slot, run.cells[:1]))
        assert [one.slot for one in hours] == [one.slot for one in first]
    assert cells(found) == [(begin, DAY) for begin in begins[:-1]]


def test_buckets_wider_than_a_day_need_many_days_at_each_time_of_day() -> None:
    """Buckets of 54 hours begin at four times of day: days are worth their blocks only where there are many."""
    for count, widths in ((9, {HOUR}), (40, {HOUR, DAY})):
        begins = range(0, count * 54 * HOUR + 1, 54 * HOUR)
        found = look_up_candles(Buckets(begins, begins[-1]), COLUMNS, 37)
        assert found is not None
        assert {run.slot.width for run in found.runs} == widths
        assert not any(run.slot.slides for run in found.runs)


def test_a_bucket_of_odd_length_is_not_in_memory() -> None:
    """As where a zone has left its local mean time."""
    begins = [0, HOUR, 2 * HOUR + 30, 3 * HOUR]
    assert look_up_candles(Buckets(begins, begins[-1]), COLUMNS, 37) is None
