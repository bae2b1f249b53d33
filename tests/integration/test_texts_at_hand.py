"""Pages that are cut out of kept texts equal those that are made anew, and what changes a value changes its text."""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl
import pytest

from analytics_service.config import Settings
from analytics_service.history.buckets import Buckets
from analytics_service.history.candles import Aggregate
from analytics_service.history.formats.registry import FORMATS
from analytics_service.history.grid import Period
from analytics_service.history.memory import Loader, Memory
from analytics_service.history.page import Query, read_page
from analytics_service.history.reader import HistoryReader
from analytics_service.history.states import State
from analytics_service.history.text_file import TextFile
from analytics_service.store.connection import Store
from analytics_service.store.histories import PRICES
from analytics_service.store.ledger import read_heads
from tests import oracle
from tests.doubles import WatchedStore
from tests.files import no_file_larger_than, opened
from tests.integration.pages import Observations, commit

HOUR, DAY = 3600, 86_400
# 2025-02-17 00:00 UTC. Clocks go forward in New York 20 days later, in London 41 days later.
FIRST = 1_739_750_400
NEWEST = FIRST + 60 * DAY + 1207


class Counting(HistoryReader):
    """Counts the buckets whose points are read for a page, rather than for a block of texts."""

    buckets = 0

    def points(
        self, state: State, ids: Sequence[str], buckets: Buckets, agg: Aggregate, *, numbers: bool = False
    ) -> pl.DataFrame:
        """Count them, and read the points."""
        self.buckets += buckets.count
        return super().points(state, ids, buckets, agg, numbers=numbers)


def observations() -> Observations:
    """Of one asset every hour, of another now and then, and of a third from the tenth day on."""
    hours = range(FIRST, NEWEST, HOUR)
    return {
        "token;a": [(second + 7, Decimal(number) / 8) for number, second in enumerate(hours)],
        "token;b": [(second + number % HOUR, Decimal(number * 97 % 1000)) for number, second in enumerate(hours[::31])],
        "token;c": [(second + 5, Decimal(second * 7919 % 10**9) / 10**8) for second in hours[240::7]],
    }


@dataclass
class Service:
    """A reader of prices with a large memory, one with none, and what was observed."""

    store: Store
    loaders: Sequence[Loader] = field(default_factory=lambda: [Loader(Memory(10**9)), Loader(Memory(10**9))])
    file: TextFile = field(default_factory=TextFile)
    seen: Observations = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.reader = Counting(self.store, PRICES, *self.loaders, self.file)
        self.plain = HistoryReader(self.store, PRICES, *[Loader(Memory(0))] * 2, TextFile())

    def write(self, observations: Observations) -> None:
        """Complete a run of observations, and show the readers the new head."""
        commit(self.store, observations)
        for asset_id, seen in observations.items():
            self.seen[asset_id] = [*self.seen.get(asset_id, []), *seen]
        self.reader.at(read_heads(self.store)["prices"])
        self.wait()

    def wait(self) -> None:
        """Return when everything that was requested is loaded."""
        for loader in self.loaders:
            loader.wait()

    def page(self, query: Query, reader: HistoryReader | None = None) -> bytes:
        """The bytes of a page."""
        return read_page(reader or self.reader, query, read_heads(self.store)["prices"], {"token;a": "A"}).body()

    def made(self, query: Query) -> int:
        """How many buckets of a page are made anew. Its bytes are those of a page that is made anew as a whole."""
        self.reader.buckets = 0
        assert self.page(query) == self.page(query, self.plain), query
        return self.reader.buckets

    def settled(self, query: Query) -> int:
        """The same once memory has all that it can have for the page."""
        # The blocks that texts are made from, and the texts.
        for _ in range(3):
            self.page(query)
            self.wait()
        return self.made(query)

    def by_hand(self, query: Query) -> list[list[dict[str, object]]]:
        """The points of each series, by the oracle."""
        known, ids = oracle.Oracle(self.seen), query.ids or sorted(self.seen)
        grid = oracle.begins(query.start, query.end, query.period, query.interval, query.zone.key)
        agg = query.agg.value
        return [known.page(one, grid, query.end, query.offset, query.limit, query.carry, agg) for one in ids]


@pytest.fixture
def service(store: Store) -> Iterator[Service]:
    service = Service(store)
    service.write(observations())
    yield service


def query(period: Period, begin: int, end: int, zone: str = "UTC", **more: Any) -> Query:
    """A page of all buckets between two seconds, counted from the first observation."""
    page = {"interval": 1, "limit": 10_000, "offset": 0, "carry": True, "ids": None} | more
    return Query(FIRST + begin, FIRST + end - 1, period, zone=ZoneInfo(zone), **page)


@pytest.mark.parametrize("agg", Aggregate)
def test_pages_of_hours_and_days_that_are_over_are_cut_out_in_every_wording(service: Service, agg: Aggregate) -> None:
    ranges = (query(Period.HOUR, 2 * DAY, 12 * DAY), query(Period.DAY, 0, 59 * DAY))
    for asked, name, carry, digits in product(ranges, ("json", "columns"), (True, False), (None, 3)):
        page = replace(asked, agg=agg, format=FORMATS[name], carry=carry, digits=digits)
        assert service.settled(page) == 0
        # What was kept for that page serves others, of other ranges and series.
        for ids in (["token;c", "token;a"], ["token;b"]):
            assert service.made(replace(page, offset=7, limit=30, ids=ids)) == 0


@pytest.mark.parametrize("agg", Aggregate)
def test_texts_are_those_of_the_observations(service: Service, agg: Aggregate) -> None:
    for asked in (
        query(Period.HOUR, 8 * DAY, 14 * DAY, agg=agg),
        query(Period.DAY, 0, 61 * DAY, "Europe/London", agg=agg),
    ):
        service.settled(asked)
        assert [one["points"] for one in json.loads(service.page(asked))] == service.by_hand(asked)


@pytest.mark.parametrize(
    ("asked", "made"),
    [
        # The hour and the day that are not over.
        (query(Period.HOUR, 50 * DAY, 60 * DAY + 1208), 1),
        (query(Period.DAY, 0, 60 * DAY + 1208), 1),
        # An hour that the range ends in, and what comes after the newest observation.
        (query(Period.HOUR, 20 * DAY, 30 * DAY + 60), 1),
        (query(Period.HOUR, 59 * DAY, 61 * DAY), 24),
        # What was before the first observation.
        (query(Period.HOUR, -5 * HOUR, 3 * DAY), 5),
        # Hours of a zone that is a quarter of an hour off, and its days.
        (query(Period.HOUR, 20 * DAY, 30 * DAY, "Asia/Kathmandu"), 1),
        (query(Period.DAY, 20 * DAY, 30 * DAY, "Asia/Kathmandu"), 1),
        # Days of zones whose clocks go forward and back by an hour, and the day that the range ends in.
        (query(Period.DAY, DAY, 59 * DAY, "Europe/London"), 1),
        (query(Period.DAY, DAY, 59 * DAY, "America/Santiago"), 1),
        # The day on which clocks go back by half an hour.
        (query(Period.DAY, DAY, 58 * DAY + 13 * HOUR + 1800, "Australia/Lord_Howe"), 1),
        # Days that are asked for as hours.
        (query(Period.HOUR, 7 * HOUR, 50 * DAY + 7 * HOUR, interval=24), 0),
        # Buckets of other widths, and few buckets.
        (query(Period.HOUR, 0, 50 * DAY, interval=2), 600),
        (query(Period.MINUTE, DAY, 2 * DAY, interval=30), 48),
        (query(Period.HOUR, 0, 23 * 20 * HOUR, interval=23), 20),
        (query(Period.HOUR, DAY, DAY + 7 * HOUR), 7),
        (query(Period.HOUR, DAY, DAY + 8 * HOUR), 0),
    ],
)
def test_other_buckets_of_a_page_are_made_anew(service: Service, asked: Query, made: int) -> None:
    assert service.settled(asked) == made
    assert [one["points"] for one in json.loads(service.page(asked))] == service.by_hand(asked)


def test_an_hour_that_is_over_later_is_kept_from_then_on(service: Service) -> None:
    asked = query(Period.HOUR, 50 * DAY, 60 * DAY + HOUR)
    assert service.settled(asked) == 1
    service.write({"token;b": [(NEWEST + HOUR, Decimal(5))]})
    assert service.settled(asked) == 0
    assert [one["points"] for one in json.loads(service.page(asked))] == service.by_hand(asked)


def test_a_correction_is_in_the_texts_after_it_and_in_none_before(service: Service) -> None:
    asked = query(Period.HOUR, 2 * DAY, 50 * DAY)
    assert service.settled(asked) == 0
    service.write({"token;a": [(FIRST + 40 * DAY, Decimal(99))]})
    # Hours of the blocks before the correction are still there.
    assert 0 < service.made(asked) < 48 * 24
    assert service.settled(asked) == 0
    assert [one["points"] for one in json.loads(service.page(asked))] == service.by_hand(asked)


def test_an_asset_that_is_new_has_texts_too(service: Service) -> None:
    asked = query(Period.HOUR, 2 * DAY, 50 * DAY)
    service.settled(asked)
    service.write({"token;aa": [(NEWEST + 1, Decimal(1))]})
    assert service.made(asked) > 0
    assert service.settled(asked) == 0
    points = [one["points"] for one in json.loads(service.page(asked))]
    assert points == service.by_hand(asked)
    assert {point["v"] for point in points[1]} == {None}


def test_blocks_for_texts_push_out_none_that_pages_use(store: Store, settings: Settings) -> None:
    """Memory holds what the page needs: 34 days. Its texts are made together with those of earlier days, whose blocks
    do not fit as well."""
    asked = query(Period.DAY, 10 * DAY, 44 * DAY, agg=Aggregate.OHLC)
    with closing(WatchedStore(settings)) as watched:
        service = Service(watched, [Loader(Memory(300_000, clock=lambda: 0.0)), Loader(Memory(10**9))])
        service.write(observations())
        for _ in range(4):
            service.page(asked)
            service.wait()
        before = watched.queries.copy()
        service.page(asked)
        service.wait()
        # Which head there is.
        assert watched.queries - before == {"ledger": 1}


def test_pages_are_right_while_the_file_cannot_be_written(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    asked = query(Period.HOUR, 2 * DAY, 12 * DAY)
    with no_file_larger_than(0):
        assert service.settled(asked) == 240
    assert "its temporary file cannot be written: [Errno 27] File too large" in caplog.text
    # It is not tried again within a minute.
    assert service.settled(asked) == 240
    assert len(caplog.messages) == 1


def test_pages_are_right_when_the_file_cannot_be_read(
    service: Service, temporary: Path, caplog: pytest.LogCaptureFixture
) -> None:
    asked = query(Period.HOUR, 2 * DAY, 12 * DAY)
    assert service.settled(asked) == 0
    (path,) = opened(temporary)
    os.truncate(path, 0)
    assert service.made(asked) == 240
    assert "its temporary file cannot be read: it ends too soon" in caplog.text
    assert service.settled(asked) == 0
