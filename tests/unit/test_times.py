"""Times as callers write them, against every second that the standard library knows near them."""

import re
from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analytics_service.errors import ParameterInvalid
from analytics_service.history.times import SCHEMA, Edge, parse_time
from tests import oracle

NEW_YORK = "America/New_York"
NOW = int(datetime(2026, 3, 31, 12, 0, 5, tzinfo=UTC).timestamp())


def utc(*at: int) -> int:
    return int(datetime(*at, tzinfo=UTC).timestamp())  # type: ignore[misc, arg-type]


def naive(*at: int) -> datetime:
    return datetime(*at, tzinfo=UTC).replace(tzinfo=None)  # type: ignore[misc, arg-type]


def second(text: str, zone: str = "UTC", edge: Edge = Edge.START, now: int = NOW) -> int:
    return parse_time(text).second(ZoneInfo(zone), now, edge)


@given(
    zone=st.sampled_from(oracle.ZONES),
    at=st.datetimes(naive(1972, 2, 1), naive(2036, 1, 1)),
    edge=st.sampled_from(Edge),
)
@example(zone="America/Santiago", at=naive(2026, 9, 6, 0, 30), edge=Edge.START)
@example(zone="America/Havana", at=naive(2026, 11, 1, 0, 30), edge=Edge.END)
@example(zone="Australia/Lord_Howe", at=naive(2026, 4, 5, 1, 45), edge=Edge.AT)
@example(zone="Pacific/Apia", at=naive(2011, 12, 30, 9, 15), edge=Edge.END)
def test_a_wall_time_is_the_second_at_which_the_clocks_of_the_zone_show_it(zone: str, at: datetime, edge: Edge) -> None:
    expected = oracle.seconds_of(at.replace(microsecond=0), zone)
    assert second(f"{at:%Y-%m-%dT%H:%M:%S}", zone, edge) == expected[-1 if edge is Edge.END else 0]


@given(zone=st.sampled_from(oracle.ZONES), day=st.dates(date(1972, 2, 1), date(2036, 1, 1)))
@example(zone="America/Santiago", day=date(2026, 9, 6))
@example(zone="America/Havana", day=date(2026, 11, 1))
@example(zone="Pacific/Apia", day=date(2011, 12, 30))
def test_a_date_is_its_first_second_as_start_and_its_last_one_otherwise(zone: str, day: date) -> None:
    begin, end = oracle.day_begin(day, zone), oracle.day_begin(day + timedelta(days=1), zone)
    assert [second(str(day), zone, edge) for edge in Edge] == [begin, end - 1, end - 1]


@given(
    zone=st.sampled_from(oracle.ZONES),
    now=st.integers(utc(1990, 1, 1), utc(2036, 1, 1)),
    count=st.integers(1, 60),
    unit=st.sampled_from(["d", "w", "m", "y"]),
    edge=st.sampled_from(Edge),
)
@example(zone=NEW_YORK, now=utc(2026, 3, 9, 6, 30), count=1, unit="d", edge=Edge.START)
@example(zone=NEW_YORK, now=utc(2026, 11, 2, 6, 30), count=1, unit="d", edge=Edge.START)
@example(zone=NEW_YORK, now=utc(2026, 11, 2, 6, 30), count=1, unit="d", edge=Edge.END)
def test_units_of_the_calendar_keep_the_time_of_day(zone: str, now: int, count: int, unit: str, edge: Edge) -> None:
    wall = oracle.wall(now, zone)
    if unit in "dw":
        wall -= timedelta(days=count * (7 if unit == "w" else 1))
    else:
        year, month = divmod(wall.year * 12 + wall.month - 1 - count * (12 if unit == "y" else 1), 12)
        lengths = [31, 29 if year % 4 == 0 else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        wall = wall.replace(year=year, month=month + 1, day=min(wall.day, lengths[month]))
    if wall.year >= 1973:
        expected = oracle.seconds_of(wall, zone)[-1 if edge is Edge.END else 0]
        assert second(f"now-{count}{unit}", zone, edge, now) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("0001764547200", 1764547200),
        ("4294967295", 4294967295),
        ("2026-01-01T12:00", utc(2026, 1, 1, 17)),
        ("2026-01-01T12:00Z", utc(2026, 1, 1, 12)),
        ("2026-01-01T12:00 05:30", utc(2026, 1, 1, 6, 30)),
        ("2026-01-01T12:00:30.000Z", utc(2026, 1, 1, 12, 0, 30)),
        ("2026-01-01T12:00:30.0", utc(2026, 1, 1, 17, 0, 30)),
        ("1764547200.0", 1764547200),
        ("2026-01-01T12:00-0330", utc(2026, 1, 1, 15, 30)),
        ("2106-02-07T01:28:15", 4294967295),
        ("now", NOW),
        ("now-0d", NOW),
        ("now-90min", NOW - 5400),
        ("now-36h", NOW - 36 * 3600),
        # 08:00:05 in summer time; on the 7th of March clocks were still an hour behind.
        ("now-24d", utc(2026, 3, 7, 13, 0, 5)),
        # The 28th, because February has no 31st.
        ("now-1m", utc(2026, 2, 28, 13, 0, 5)),
    ],
)
def test_all_forms_in_new_york(text: str, expected: int) -> None:
    assert second(text, NEW_YORK) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1764547200000", "must be from 0 to 4294967295: unix seconds, not milliseconds"),
        ("4294967296", "must be from 0 to 4294967295"),
        ("-1", "must be from 0 to 4294967295"),
        ("0" * 5_000 + "9" * 100, "must be from 0 to 4294967295"),
        ("1764547200.5", "must be a whole second, without a fraction"),
        ("2026-01-01T12:00:00.001Z", "must be a whole second, without a fraction"),
        ("2026-01-01T12:00:00.", "must be a whole second, without a fraction"),
        ("2026-01-01T12:00:00,5+05:30", "must be a whole second, without a fraction"),
        ("2026-02-30", "must be a date and a time that exist"),
        ("2026-01-01T12:00+24:00", "must have an offset from UTC of less than a day"),
        ("yesterday", "must be unix seconds, a date such as 2026-01-31"),
        ("now+1d", "a time before now such as now-7d (units min, h, d, w, m, y)"),
        ("now-1s", "a time before now such as now-7d"),
        ("2026-01-01+01:00", "must be unix seconds, a date such as 2026-01-31"),
        ("2026-01-01 12:00", "must be unix seconds, a date such as 2026-01-31"),
        ("²", "must be unix seconds"),
    ],
)
def test_other_texts_are_refused_with_what_is_allowed(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_time(text)


@pytest.mark.parametrize(
    ("text", "zone", "edge"),
    [
        ("1969-12-31T23:59:59", "UTC", Edge.START),
        ("0001-01-01", NEW_YORK, Edge.START),
        ("0001-01-01T00:00", "Asia/Kolkata", Edge.END),
        ("2106-02-07T01:28:16", NEW_YORK, Edge.START),
        ("9999-12-31", NEW_YORK, Edge.END),
        ("9999-12-31T23:59", NEW_YORK, Edge.AT),
        ("now-999999999y", "UTC", Edge.AT),
        ("now-999999999w", "UTC", Edge.END),
    ],
)
def test_a_second_beyond_the_limits_is_refused_and_the_parameter_is_named(text: str, zone: str, edge: Edge) -> None:
    with pytest.raises(ParameterInvalid, match="must be from 0 to 4294967295 in unix seconds") as caught:
        second(text, zone, edge)
    assert caught.value.parameter == edge


@pytest.mark.parametrize("text", ["2026-01-01T12:00", "2026-01-01", "1764547200"])
def test_only_times_before_now_mean_another_second_later(text: str) -> None:
    assert not parse_time(text).is_relative
    assert second(text) == second(text, now=NOW + 1)
    assert parse_time("now-1h").is_relative
    assert second("now-1h", now=NOW + 1) == second("now-1h") + 1


@given(at=st.datetimes(naive(1970, 1, 2), naive(2106, 2, 5)), offset=st.integers(-1439, 1439))
def test_an_offset_is_that_from_utc(at: datetime, offset: int) -> None:
    at = at.replace(microsecond=0)
    text = f"{at:%Y-%m-%dT%H:%M:%S}{'-' if offset < 0 else '+'}{abs(offset) // 60:02}:{abs(offset) % 60:02}"
    expected = at.replace(tzinfo=timezone(timedelta(minutes=offset)))
    if expected.timestamp() >= 0:
        assert second(text, NEW_YORK) == expected.timestamp()


@given(st.from_regex(SCHEMA["anyOf"][1]["pattern"].replace("$", r"\Z"), alphabet="0123456789-:TZ+ nowmihdy"))  # type: ignore[index]
def test_texts_of_the_schema_are_read_or_do_not_exist(text: str) -> None:
    try:
        parse_time(text)
    except ValueError as error:
        assert "that exist" in str(error) or "offset" in str(error)
