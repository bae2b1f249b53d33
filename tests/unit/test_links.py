"""Queries of pages, made from those of requests."""

from urllib.parse import parse_qsl

from falcon.uri import parse_query_string
from hypothesis import given
from hypothesis import strategies as st

from analytics_service.http.links import replaced


def test_values_are_replaced_where_they_were_and_new_ones_come_last() -> None:
    given = {"start": "now", "period": "auto", "points": "50", "tz": "Asia/Tokyo"}
    changes = {"start": 5, "period": "h", "points": None, "offset": 10}
    assert replaced(given, changes) == "start=5&period=h&tz=Asia%2FTokyo&offset=10"


def test_a_plus_sign_that_came_as_a_space_stays_one() -> None:
    given = parse_query_string("end=2026-01-01T12:00+05:30")
    assert replaced(given, {}) == "end=2026-01-01T12%3A00%2005%3A30"


@given(st.dictionaries(st.text(min_size=1), st.text(min_size=1)))
def test_any_text_is_the_same_when_it_is_read_again_and_fits_a_header(given: dict[str, str]) -> None:
    query = replaced(given, {})
    assert dict(parse_qsl(query)) == given
    assert query.isascii()
    assert not {*query} & {*'<>"; ,\r\n'}
