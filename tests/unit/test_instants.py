"""Unix seconds, aware datetimes, and multiples of an interval."""

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from analytics_service.market.instants import floor_to, format_instant, from_unix, multiples_between, unix_second

NOON = datetime(2025, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
aware = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.timezones())  # noqa: DTZ001 - made aware


def at(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)


@given(aware)
def test_a_unix_second_contains_its_instant_also_before_1970(when: datetime) -> None:
    start = from_unix(unix_second(when))
    assert start <= when < start + timedelta(seconds=1)
    assert start.utcoffset() == timedelta()


def test_an_instant_is_shown_in_utc() -> None:
    assert (unix_second(NOON), from_unix(1_740_830_400)) == (1_740_830_400, NOON)
    assert format_instant(NOON) == format_instant(NOON + timedelta(microseconds=999_999)) == "2025-03-01T12:00:00Z"


@given(aware, st.integers(1, 10**6))
def test_a_floor_is_the_last_multiple_that_is_not_later(when: datetime, seconds: int) -> None:
    step = timedelta(seconds=seconds)
    found = floor_to(when, step)
    assert found <= when < found + step
    assert unix_second(found) % seconds == 0


def test_multiples_are_whole_and_the_range_includes_its_start() -> None:
    tick = timedelta(microseconds=1)
    assert multiples_between(NOON, NOON + HOUR, HOUR) == [NOON]
    assert multiples_between(NOON + tick, NOON + HOUR + tick, HOUR) == [NOON + HOUR]
    assert multiples_between(NOON + tick, NOON + HOUR, HOUR) == multiples_between(NOON, NOON, HOUR) == []


def test_multiples_are_in_utc_whatever_zone_the_range_is_given_in() -> None:
    """12:30 in Kathmandu (+5:45) is 06:45 UTC, so the next whole hour is 07:00 UTC."""
    start = datetime(2025, 3, 1, 12, 30, tzinfo=timezone(timedelta(hours=5, minutes=45)))
    (found,) = multiples_between(start, start + timedelta(minutes=59), HOUR)
    assert (found, found.utcoffset()) == (datetime(2025, 3, 1, 7, tzinfo=UTC), timedelta())


@given(st.integers(0, 2_000_000_000), st.integers(0, 10_000), st.integers(1, 86_400))
def test_multiples_are_those_seconds_of_the_range_that_the_interval_divides(start: int, width: int, every: int) -> None:
    found = multiples_between(at(start), at(start + width), timedelta(seconds=every))
    assert found == [at(second) for second in range(start, start + width) if second % every == 0]
