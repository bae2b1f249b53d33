"""How far back `up` fills in history when it starts."""

import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from analytics_service.errors import SourceError
from analytics_service.market.prices import Price
from analytics_service.server.past import _wait_for_first_snapshots, fill_past, past_batches, past_instants
from analytics_service.sources.base import Source
from analytics_service.sources.simulated.source import SimulatedSource
from jobs.registry import JOBS
from tests.doubles import FakeStore

NOW = datetime(2026, 3, 1, 12, 34, 56, tzinfo=UTC)
HOUR = timedelta(hours=1)


class Small(Source):
    """Three hours of history; its beginning is given."""

    def __init__(self, since: datetime | None, history: timedelta | None = 3 * HOUR) -> None:
        self._since = since
        self._history = history

    @property
    def spec(self) -> str:
        return "small"

    @property
    def history(self) -> timedelta | None:
        return self._history

    @property
    def since(self) -> datetime | None:
        return self._since


HOURS = [datetime(2026, 3, 1, hour, tzinfo=UTC) for hour in (10, 11, 12)]
MIDNIGHTS = [datetime(2026, 2, 28, tzinfo=UTC), datetime(2026, 3, 1, tzinfo=UTC)]


def test_prices_have_each_hour_and_each_midnight_since_the_beginning() -> None:
    assert past_instants(Small(datetime(2026, 2, 27, 6, tzinfo=UTC)), JOBS["prices"], NOW) == [*MIDNIGHTS, *HOURS]


def test_a_midnight_within_the_hours_is_one_of_them() -> None:
    source = Small(datetime(2026, 2, 28, tzinfo=UTC), history=13 * HOUR)
    assert past_instants(source, JOBS["prices"], NOW)[:3] == [*MIDNIGHTS, MIDNIGHTS[1] + HOUR]


@pytest.mark.parametrize("name", ["rates", "markets", "loans"])
def test_other_jobs_have_the_hours_only(name: str) -> None:
    assert past_instants(Small(MIDNIGHTS[0]), JOBS[name], NOW) == HOURS


@pytest.mark.parametrize(("name", "recent"), [("positions", 7), ("ptoken", 2), ("routes", 2)])
def test_state_has_the_hours_of_some_days_and_midnights_among_the_hours_of_markets(name: str, recent: int) -> None:
    begin = datetime(2026, 3, 1, 13, tzinfo=UTC) - timedelta(days=recent)
    days = [begin - (number * 24 + 13) * HOUR for number in (1, 0)]
    hours = [begin + number * HOUR for number in range(recent * 24)]
    assert past_instants(Small(None, history=(recent + 2) * 24 * HOUR), JOBS[name], NOW) == [*days, *hours]
    assert past_instants(Small(None), JOBS[name], NOW) == HOURS


def test_there_is_no_past_without_history() -> None:
    for job in JOBS.values():
        assert past_instants(Small(MIDNIGHTS[0], history=None), job, NOW) == []
    assert past_instants(Small(None), JOBS["prices"], NOW) == HOURS


def test_the_newest_batch_of_each_dataset_comes_before_older_batches() -> None:
    batches = past_batches(Small(None, history=timedelta(days=25)), NOW)
    assert [job.name for job, _ in batches] == [*JOBS, "prices", "rates", "markets", "loans"]
    hours = past_instants(Small(None, history=timedelta(days=25)), JOBS["rates"], NOW)
    assert [[*instants] for job, instants in batches if job.name == "rates"] == [hours[-500:], hours[:-500]]


def test_the_past_waits_for_the_first_snapshots_of_all_datasets(monkeypatch: pytest.MonkeyPatch) -> None:
    heads = iter([{}, dict.fromkeys([*JOBS][1:]), dict.fromkeys(JOBS)])
    stop = threading.Event()
    monkeypatch.setattr(stop, "wait", lambda seconds: False)
    monkeypatch.setattr("analytics_service.server.past.read_heads", lambda store: next(heads))
    _wait_for_first_snapshots(FakeStore(), stop)
    assert next(heads, None) is None


def test_a_source_is_not_asked_for_what_is_before_a_past_that_it_does_not_know() -> None:
    asked: list[datetime] = []

    class Forgetful(SimulatedSource):
        def prices(self, at: datetime) -> Sequence[Price]:
            asked.append(at)
            raise SourceError("The node is pruned.")

    batches = [(JOBS["prices"], [hour]) for hour in reversed(HOURS)]
    fill_past(Forgetful("1"), FakeStore(), batches, threading.Event())
    assert asked == HOURS[-1:]


def test_no_event_of_the_simulated_protocol_is_older_than_its_prices() -> None:
    source = SimulatedSource("1")
    first, *_ = past_instants(source, JOBS["prices"], NOW)
    assert source.events(datetime(1970, 1, 1, tzinfo=UTC), first + timedelta(minutes=2))
    assert not source.events(datetime(1970, 1, 1, tzinfo=UTC), first)
