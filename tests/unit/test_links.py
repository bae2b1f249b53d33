"""Links to next pages, made from the query of a request."""

from collections.abc import Mapping
from urllib.parse import parse_qsl
from zoneinfo import ZoneInfo

from falcon.uri import parse_query_string
from hypothesis import given
from hypothesis import strategies as st

from analytics_service.history.candles import Fill
from analytics_service.history.grid import Period
from analytics_service.history.page import Query
from analytics_service.resources.history import query_string

HOURS = Query(0, 7199, Period.HOUR, 1, ZoneInfo("UTC"), limit=1, offset=0, fill=Fill.PREVIOUS, ids=None)
RESOLVED = {"start": "0", "end": "7199", "period": "h", "interval": "1", "limit": "1", "offset": "1"}


def link(texts: Mapping[str, object]) -> str:
    """The query of the link from the first page of two hours, where the request had these texts."""
    return query_string(texts, HOURS, 1)


def test_values_are_replaced_where_they_were_and_new_ones_come_last() -> None:
    texts = {"start": "now-2h", "period": "auto", "points": "50", "tz": "Asia/Tokyo"}
    assert link(texts) == "start=0&period=h&tz=Asia%2FTokyo&end=7199&interval=1&limit=1&offset=1"


def test_a_plus_sign_that_came_as_a_space_stays_one() -> None:
    assert link(parse_query_string("tz=12:00+05:30")).startswith("tz=12%3A00%2005%3A30&")


@given(st.dictionaries(st.text(min_size=1), st.text(min_size=1)))
def test_any_text_is_the_same_when_it_is_read_again_and_fits_a_header(texts: dict[str, str]) -> None:
    query = link(texts)
    assert dict(parse_qsl(query)) == {name: text for name, text in texts.items() if name != "points"} | RESOLVED
    assert query.isascii()
    assert not {*query} & {*'<>"; ,\r\n'}
