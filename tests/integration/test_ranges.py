"""Ranges are half-open, [start, end): those that adjoin have each value once, and together what the whole range has."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import accumulate, pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from analytics_service.admin.remove import Removal, remove
from analytics_service.cli.main import cli
from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.errors import UserError
from analytics_service.market.events import Action, Event
from analytics_service.market.instants import format_instant, from_unix, unix_second
from analytics_service.market.prices import Price
from analytics_service.store.datasets.histories import PRICES
from jobs.recompute import day_by_day, plan, recompute, replace_snapshots
from jobs.registry import JOBS
from jobs.runner import backfill, instants_to_fill, take_snapshot
from tests.doubles import Silent
from tests.integration.databases import database, reserve
from tests.integration.handmade import HandMade
from tests.integration.imports import IDS, NOW, contents, observations, prices_file, query, run
from tests.integration.routes import client_of

# Random ranges; the default run has the first and last seconds of each.
pytestmark = pytest.mark.slow
# All lies in two hours: from BEGIN to before END.
LENGTH = 7_200
END = unix_second(NOW)
BEGIN = END - LENGTH
SECONDS = st.integers(0, LENGTH - 1).map(BEGIN.__add__)
# Where one range ends and the next begins, between BEGIN and END.
CUTS = st.lists(SECONDS.filter(lambda second: second > BEGIN), max_size=3, unique=True)
LOANS = JOBS["loans"]
# An example takes a hundred statements.
few = examples(max_examples=4)


def ranges(cuts: Sequence[int]) -> list[tuple[int, int]]:
    """Ranges that adjoin, from BEGIN to END."""
    return [*pairwise([BEGIN, *sorted(cuts), END])]


@contextmanager
def own(server: Settings) -> Iterator[tuple[Settings, Store]]:
    settings = replace(server, clickhouse_database=reserve(server, views=False))
    with database(settings) as store:
        yield settings, store


def sums_of(settings: Settings) -> dict[int, Decimal]:
    """The loans of all assets at the second of each of their events."""
    rows = query(
        settings,
        "SELECT toUnixTimestamp(observed_at), value FROM observation FINAL WHERE history = 'loans_originated' "
        "AND asset_id = '' AND observed_at IN (SELECT at FROM event_version FINAL WHERE NOT removed)",
    )
    return {int(str(second)): Decimal(str(usd)) for second, usd in rows}


@few
@given(
    loans=st.lists(st.tuples(SECONDS, st.integers(1, 10**6)), min_size=1, max_size=8, unique_by=lambda loan: loan[0]),
    cuts=CUTS,
    order=st.randoms(use_true_random=False),
    late=st.integers(0, 7),
)
def test_events_of_adjoining_ranges_are_each_one_event(
    server: Settings, loans: list[tuple[int, int]], cuts: list[int], order: object, late: int
) -> None:
    """Of jobs up to each cut, in any order; then of a backfill of each range, which brings one that came late."""
    loans = sorted(loans)
    events = [
        Event(f"loan {number}", Action.BORROW, "token;lend", "0x" + "a" * 40, from_unix(second), 1, Decimal(usd))
        for number, (second, usd) in enumerate(loans)
    ]
    missing = events[late % len(events)]
    source = HandMade(events_=[event for event in events if event is not missing])
    ends = [end for _, end in ranges(cuts)]
    order.shuffle(ends)  # type: ignore[attr-defined]
    with own(server) as (settings, store):
        for end in ends:
            take_snapshot(LOANS, source, store, from_unix(end - 1))

        def expect(listed: Sequence[Event]) -> None:
            stored = query(
                settings, "SELECT toUnixTimestamp(at) FROM event_version FINAL WHERE NOT removed ORDER BY at"
            )
            assert stored == [(unix_second(event.at),) for event in listed]
            usd = accumulate(event.usd for event in listed if event.usd is not None)
            assert sums_of(settings) == dict(zip((unix_second(event.at) for event in listed), usd, strict=True))

        expect(source.events_)
        source.events_ = events
        for start, end in ranges(cuts):
            for portion in plan(store, "loans", from_unix(start), from_unix(end)):
                replace_snapshots(LOANS, source, store, portion)
        expect(events)
        assert (
            sum(recompute(store, each) for each in day_by_day(store, ["loans"], from_unix(BEGIN), from_unix(END))) == 0
        )


@dataclass
class Imported:
    """A store with prices of one asset, by second."""

    settings: Settings
    store: Store
    folder: Path
    prices: dict[int, int]

    def seconds(self) -> list[int]:
        """Those that are there."""
        return sorted(second for _, second in observations(self.settings))


@pytest.fixture(scope="module")
def imported(server: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imported]:
    """Prices at the first and the last second, at those of a minute, and about quarters of an hour."""
    folder = tmp_path_factory.mktemp("ranges")
    offsets = {
        0,
        LENGTH - 1,
        *range(0, LENGTH, 420),
        *(900 * number + near for number in (1, 4) for near in (-1, 0, 1)),
    }
    prices = {BEGIN + offset: offset + 1 for offset in offsets}
    with own(server) as (settings, store):
        run(store, prices_file(folder, [(IDS[0], second, f"{usd}") for second, usd in prices.items()]))
        yield Imported(settings, store, folder, prices)


@examples(max_examples=8)
@given(minutes=st.integers(1, 40), buckets=st.integers(2, 30), data=st.data())
def test_pages_of_adjoining_ranges_are_one_page(
    imported: Imported, minutes: int, buckets: int, data: st.DataObject
) -> None:
    """The `end` of a request is a second that belongs to it."""
    width = 60 * minutes
    # Buckets begin at whole minutes.
    start = data.draw(SECONDS) // 60 * 60
    middle, end = start + width * data.draw(st.integers(1, buckets - 1)), start + width * buckets
    client = client_of(imported.settings, imported.store, now=END + 30)

    def page(start: int, end: int) -> list[tuple[str, str | None]]:
        asked = f"start={start}&end={end - 1}&period=min&interval={minutes}&asset_ids={IDS[0]}&limit=200"
        (series,) = client.simulate_get("/api/v1/assets/price-history", query_string=asked).json["data"]["series"]
        return [(point["t"], point["v"]) for point in series["points"]]

    whole = page(start, end)
    assert page(start, middle) + page(middle, end) == whole
    newest = max(imported.prices)
    expected = [
        str(imported.prices[max(second for second in imported.prices if second < begin + width)])
        if begin <= newest
        else None
        for begin in range(start, end, width)
    ]
    assert [value for _, value in whole] == expected


@few
@given(cuts=CUTS, by_command=st.booleans())
def test_removing_takes_the_seconds_of_its_range_and_no_others(
    imported: Imported, cuts: list[int], by_command: bool
) -> None:
    """`remove --end` names the last second. The files bring all back."""
    before, left = contents(imported.settings), set(imported.prices)
    store, folder = imported.store, imported.folder
    for start, end in ranges(cuts)[:-1]:
        gone = {second for second in left if start <= second < end}
        if by_command:
            arguments = [
                "price",
                "--start",
                format_instant(from_unix(start)),
                "--end",
                format_instant(from_unix(end - 1)),
            ]
            environment = imported.settings.to_environment({})
            done = CliRunner().invoke(cli, ["remove", *arguments, "--into", str(folder)], env=environment)
            assert done.exit_code == (0 if gone else 2), done.output
        elif gone:
            assert remove(store, Removal("prices", PRICES, start, end), folder, Silent()).snapshots == 0
        else:
            with pytest.raises(UserError):
                remove(store, Removal("prices", PRICES, start, end), folder, Silent())
        left -= gone
        assert imported.seconds() == sorted(left)
    for file in folder.glob("price-*.csv"):
        run(store, file)
        file.unlink()
    after = contents(imported.settings)
    assert [after[name] for name in ("prices", "rollups")] == [before[name] for name in ("prices", "rollups")]


class Rising(HandMade):
    """Each second another price."""

    def prices(self, at: datetime) -> Sequence[Price]:
        return [Price("token;lend", at, Decimal(unix_second(at) - BEGIN + 1))]


@pytest.fixture(scope="module")
def whole(server: Settings) -> Iterator[object]:
    """What the tables have after a backfill of the whole range."""
    with own(server) as (settings, store):
        fill(store, [(BEGIN, END)])
        yield filled(settings)


def fill(store: Store, parts: Sequence[tuple[int, int]]) -> None:
    for name in ("prices", "markets"):
        for start, end in parts:
            instants = instants_to_fill(from_unix(start), from_unix(end), timedelta(minutes=20))
            backfill(JOBS[name], Rising(), store, instants)


def filled(settings: Settings) -> object:
    observed = query(settings, "SELECT * EXCEPT version FROM observation FINAL ORDER BY ALL")
    taken = query(settings, "SELECT dataset, at FROM snapshot FINAL ORDER BY ALL")
    # In two hours, each 20 minutes.
    assert len(taken) == 2 * 6
    return observed, taken, contents(settings)["rollups"]
