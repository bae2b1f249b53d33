"""Ways to ask for a page of history: times, automatic buckets, symbols, digits, and links to the next page."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from urllib.parse import urlencode, urlsplit

import falcon.testing
import pytest

from analytics_service.app import create_app
from analytics_service.clickhouse.connection import Store
from analytics_service.concurrency import QuerySlots
from analytics_service.config.settings import Settings
from tests import oracle
from tests.doubles import FreshHeads
from tests.integration.databases import database
from tests.integration.pages import Observations, asset, commit
from tests.stored import write_assets

PRICES = "/api/v1/assets/price-history"
NEW_YORK = "America/New_York"
HOUR, DAY = 3600, 86_400
# Clocks went forward on the 8th of March.
FIRST, LAST = (int(datetime(2026, 3, day, tzinfo=UTC).timestamp()) for day in (5, 11))
HISTORY: Observations = {
    "token;eth": [(second, Decimal(second % 1000).scaleb(-4) * 7) for second in range(FIRST, LAST, 17 * 60 + 13)],
    "token;btc": [(second, Decimal(second % 7771) * 1000) for second in range(FIRST, LAST, 40 * 60 + 1)],
}


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.second = LAST

    def __call__(self) -> datetime:
        return datetime.fromtimestamp(self.second, UTC)


Get = Callable[..., falcon.testing.Result]


def asking(settings: Settings, store: Store, clock: Clock) -> Get:
    """Asks an application over a store for pages of prices."""
    client = falcon.testing.TestClient(create_app(settings, store, clock, heads=FreshHeads(store)))

    def get(query: str = "", *, method: str = "GET", headers: dict[str, str] | None = None, **more: object) -> object:
        words = query or urlencode(more)
        return client.simulate_request(method, PRICES, query_string=words, headers=headers or {})

    return get  # type: ignore[return-value]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="module")
def written(server: Settings) -> Iterator[tuple[Settings, Store]]:
    """The history, which no test changes."""
    settings = replace(server, clickhouse_database="test_questions")
    with database(settings) as store:
        commit(store, HISTORY)
        yield settings, store


@pytest.fixture
def get(written: tuple[Settings, Store], clock: Clock) -> Get:
    return asking(*written, clock)


def points(answer: falcon.testing.Result) -> dict[str, list[dict[str, object]]]:
    assert answer.status_code == 200, answer.json
    return {series["asset"]["id"]: series["points"] for series in answer.json["data"]["series"]}


def following(answer: falcon.testing.Result) -> str | None:
    """The query of the next page, from the header of an answer."""
    link = answer.headers.get("link")
    if link is None:
        return None
    address, relation = link.split(";")
    assert relation.strip() == 'rel="next"'
    parts = urlsplit(address[1:-1])
    assert (parts.scheme, parts.netloc, parts.path) == ("", "", "")
    return parts.query


def walk(get: Get, query: str) -> tuple[list[falcon.testing.Result], dict[str, list[dict[str, object]]]]:
    """All pages from one on, by their links, and their points together."""
    pages, together, following_one = [], {}, query
    while following_one is not None:
        pages.append(get(following_one))
        for name, some in points(pages[-1]).items():
            together.setdefault(name, []).extend(some)
        following_one = following(pages[-1])
    return pages, together


@pytest.mark.parametrize(("zone", "count"), [(NEW_YORK, 60), ("Australia/Lord_Howe", 300)])
def test_automatic_buckets_are_the_finest_aligned_ones_that_are_few_enough(
    get: Get, zone: str, count: int, draw: random.Random
) -> None:
    known = oracle.Oracle(HISTORY)
    start = draw.randint(FIRST, LAST - 1)
    end = draw.randint(start, LAST + DAY)
    answer = get(start=start, end=end, period="auto", points=count, tz=zone)
    given = answer.json["data"]["range"]
    width = given["interval"]["unit"], given["interval"]["value"]
    grid = oracle.aligned_begins(start, end, *width, zone)
    assert (given["start"], given["end"]) == (grid[0], grid[-1] - 1)
    finer = oracle.WIDTHS[: oracle.WIDTHS.index(width)][-1:]
    assert all(len(oracle.aligned_begins(start, end, *one, zone)) - 1 > count for one in finer)
    assert len(grid) - 1 <= count
    assert answer.json["data"]["pagination"] == {"interval_count": len(grid) - 1, "next_offset": None}
    for name, found in points(answer).items():
        assert found == known.page(name, grid, grid[-1] - 1, 0, count, "previous")


def test_a_chart_that_is_asked_for_a_second_later_has_the_same_answer_and_tag(get: Get, clock: Clock) -> None:
    first = get(start=LAST - DAY + 1, end=LAST - 30, period="auto", points=100)
    later = get(start=LAST - DAY + 2, end=LAST - 29, period="auto", points=100)
    assert (later.headers["etag"], later.content) == (first.headers["etag"], first.content)
    clock.second = LAST - 30
    relative = get(start="now-1d", end="now", period="auto", points=100)
    clock.second += 1
    again = get(
        start="now-1d", end="now", period="auto", points=100, headers={"If-None-Match": relative.headers["etag"]}
    )
    assert (again.status_code, again.headers["etag"]) == (304, relative.headers["etag"])


@pytest.mark.parametrize(
    ("query", "count"),
    [
        # Clocks change within the range, so hours from midnight are no grid from its start.
        ({"start": "2026-03-05", "end": "2026-03-10", "period": "auto", "points": 40, "tz": NEW_YORK}, 36),
        ({"start": "now-3d", "end": "now", "period": "h", "interval": 5, "tz": NEW_YORK, "fill": "none"}, 15),
        # From noon on, and four buckets also on the day that has 23 hours.
        (
            {"start": "2026-03-06T15:00", "end": "2026-03-08", "period": "h", "interval": 6, "align": "calendar"}
            | {"tz": NEW_YORK, "agg": "delta"},
            10,
        ),
    ],
)
def test_links_lead_through_the_same_range_page_by_page(get: Get, query: dict[str, object], count: int) -> None:
    whole = get(**query)
    pages, together = walk(get, urlencode({**query, "limit": 6}))
    assert together == points(whole)
    assert {len(found) for found in together.values()} == {count}
    assert [one.json["data"]["range"] for one in pages] == [whole.json["data"]["range"]] * len(pages)
    assert len(pages) == (count + 5) // 6


def test_head_and_304_have_the_link_and_the_last_page_has_none(get: Get) -> None:
    words = f"start={FIRST}&end={LAST}&period=d&limit=4"
    answer = get(words)
    assert answer.headers["link"]
    assert get(words, method="HEAD").headers["link"] == answer.headers["link"]
    known = get(words, headers={"If-None-Match": answer.headers["etag"]})
    assert (known.status_code, known.headers["link"]) == (304, answer.headers["link"])
    assert "link" not in get(f"{words}&offset=4").headers
    assert "link" not in get(f"{words}&offset=100").headers


def test_a_relative_time_means_the_second_of_each_request(get: Get, clock: Clock) -> None:
    def given(words: str) -> tuple[int, int]:
        found = get(words).json["data"]["range"]
        return found["start"], found["end"]

    words = "start=now-1d&end=now&period=h"
    # The same query percent-encoded must not be kept for longer either.
    encoded = "start=%6eow-1d&end=%6eow&period=h"
    for second in (LAST, LAST + 1, LAST + 4000):
        clock.second = second
        assert [given(words), given(words), given(encoded)] == [(second - DAY, second)] * 3


def test_a_page_may_be_cached_for_a_day_ten_minutes_after_its_end_even_if_observations_lie_ahead(
    get: Get, clock: Clock
) -> None:
    """The history goes on for 45 minutes after now, as imported history may, and no snapshot follows meanwhile. The
    cached answer must not stay one that may change."""
    end, found = LAST - HOUR, []
    for clock.second in (end + 300, end + 600, end + 601):
        found.append(get(f"start={FIRST}&end={end}&period=d").headers["cache-control"])
    assert found == ["public, max-age=1", "public, max-age=1", "public, max-age=86400"]


def test_the_last_value_is_carried_to_the_end_of_the_range_if_asked_for(get: Get, clock: Clock) -> None:
    """Also on a page that begins after it. Such a page may change, however long ago it ends."""
    clock.second = LAST + 2 * DAY
    query = {"start": LAST, "end": LAST + DAY, "period": "h", "fill": "last", "symbols": "ETH"}
    newest = oracle.text(HISTORY["token;eth"][-1][1])
    for page in ({}, {"offset": 20}, {"offset": 20, "agg": "mean"}):
        answer = get(**query, **page)
        assert {point["v"] for point in points(answer)["token;eth"]} == {newest}
        assert answer.headers["cache-control"] == "public, max-age=1"
    assert {point["v"] for point in points(get(**query, agg="delta"))["token;eth"]} == {"0"}
    assert {point["v"] for point in points(get(**{**query, "fill": "previous"}))["token;eth"]} == {None}


def test_dates_and_times_of_day_are_those_of_the_zone_and_the_range_is_in_unix_seconds(get: Get) -> None:
    answer = get(start="2026-03-07", end="2026-03-08", period="d", tz=NEW_YORK)
    midnight = int(datetime(2026, 3, 7, 5, tzinfo=UTC).timestamp())
    assert answer.json["data"]["range"] == {
        "start": midnight,
        "end": midnight + 47 * HOUR - 1,
        "interval": {"unit": "d", "value": 1},
    }
    assert [point["t"] for point in points(answer)["token;eth"]] == [midnight, midnight + DAY]
    # A plus sign that is not encoded arrives as a space.
    offset = get("start=2026-03-07T00:00-05:00&end=2026-03-08T05:00+01:00&period=d&tz=America/New_York")
    assert offset.json["data"]["range"]["start"] == midnight
    assert offset.json["data"]["range"]["end"] == midnight + 23 * HOUR


def test_symbols_name_assets_after_those_of_asset_ids(get: Get) -> None:
    query = {"start": FIRST, "end": LAST, "period": "d"}
    assert [*points(get(**query, symbols="ETH,Btc"))] == ["token;eth", "token;btc"]
    assert [*points(get(**query, symbols="ETH,eth", asset_ids="token;btc"))] == ["token;btc", "token;eth"]
    assert points(get(**query, symbols="BTC")) == points(get(**query, asset_ids="token;btc"))
    assert [*points(get(**query, asset_ids="eth, token;btc"))] == [*points(get(**query, symbols="token;eth,btc"))]


def test_a_symbol_that_no_asset_or_several_have_is_an_error_that_says_so(
    settings: Settings, store: Store, clock: Clock
) -> None:
    commit(store, HISTORY, version=1)
    get = asking(settings, store, clock)
    query = {"start": FIRST, "end": LAST, "period": "d"}
    unknown = get(**query, symbols="ETH,DOGE")
    assert (unknown.status_code, unknown.json["error"]["kind"]) == (404, "entity_not_found")
    assert "'DOGE'" in unknown.json["error"]["message"]
    # The next snapshot brings a second asset of that symbol.
    assert get(**query, symbols="eth").status_code == 200
    write_assets(store, [replace(asset("other"), symbol="ETH")], 2)
    commit(store, {"token;eth": [(LAST, Decimal(1))]}, version=2)
    double = get(**query, symbols="eth")
    assert (double.status_code, double.json["error"]["kind"]) == (400, "query_parameter_invalid")
    assert "token;eth, token;other" in double.json["error"]["message"]


def test_pages_of_more_than_50_000_points_take_a_slot_of_their_own(
    written: tuple[Settings, Store], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is none left, they are refused, and others are answered."""
    monkeypatch.setattr("analytics_service.app.QuerySlots", lambda width, most_waiting: QuerySlots(0, 0))
    get = asking(*written, clock)
    asked = {"start": FIRST, "period": "h", "format": "csv"}
    answers = [get(**asked, end=FIRST + hours * HOUR - 1) for hours in (25_000, 25_001)]
    assert [answer.status_code for answer in answers] == [200, 503]
