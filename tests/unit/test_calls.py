"""What is asked of a source, and how long its answers are waited for."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from analytics_service.config.settings import Settings
from analytics_service.errors import SourceError
from analytics_service.market.positions import Position
from analytics_service.market.prices import Price
from analytics_service.sources.base import Source
from analytics_service.sources.calls import Calls, OpenSource
from analytics_service.sources.registry import open_source
from analytics_service.sources.simulated.source import SimulatedSource
from tests.doubles import QUESTIONS, FakeStore
from tests.processes import until

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
NOON = r"2026-03-01T12:00:00Z\."


class Oracle(Source):
    """Hangs while `is_stuck`, until it is let `go_on`. It notes the threads that call it."""

    spec = "oracle"

    def __init__(self) -> None:
        self.is_stuck = False
        self.go_on = threading.Event()
        self.callers: list[threading.Thread] = []
        self.calls = 0

    def prices(self, at: datetime) -> list[Price]:
        self._answer()
        return []

    def positions(self, at: datetime) -> Iterator[Position]:
        for number in range(2_500):
            if number == 2_000:
                self._answer()
            yield Position(f"address {number}")

    def close(self) -> None:
        self._answer()

    def _answer(self) -> None:
        self.calls += 1
        self.callers.append(threading.current_thread())
        if self.is_stuck:
            self.go_on.wait(30)


@pytest.fixture
def oracle() -> Iterator[Oracle]:
    one = Oracle()
    yield one
    one.go_on.set()


def bounded(source: Source, seconds: float | None) -> OpenSource:
    """The source, whose answers are waited for so long."""
    return OpenSource(source, Calls(source.spec, seconds))


@pytest.mark.parametrize("seconds", [60, None], ids=["in time", "direct"])
def test_every_answer_is_that_of_the_source(seconds: float | None) -> None:
    simulated = SimulatedSource("1")
    source = bounded(simulated, seconds)
    constants = ("simulated", "at_ends", "spec", "history", "since", "sample_account")
    assert [getattr(source, name) for name in constants] == [getattr(simulated, name) for name in constants]
    assert source.events(AT.replace(hour=0), AT) == [*simulated.events(AT.replace(hour=0), AT)] != []
    for name in {*QUESTIONS} - {"events"}:
        ours, theirs = getattr(source, name)(AT), getattr(simulated, name)(AT)
        is_list = name not in ("config", "ptoken", "rates", "totals", "activity", "risk", "complete_until")
        assert [*ours] == [*theirs] != [] if is_list else ours == theirs, name


def test_an_answer_that_does_not_come_is_an_error_after_the_seconds(oracle: Oracle) -> None:
    calls = Calls("oracle", 0.3)
    oracle.is_stuck = True
    begun = time.monotonic()
    with pytest.raises(SourceError, match=f"^oracle has taken more than 0.3 s for prices as of {NOON}$"):
        OpenSource(oracle, calls).prices(AT)
    assert 0.3 <= time.monotonic() - begun < 10
    oracle.is_stuck = False
    assert calls("prices", lambda: oracle.prices(AT), 60) == []


def test_errors_of_the_source_are_its_own_and_name_the_instant() -> None:
    class Broken(Oracle):
        def prices(self, at: datetime) -> list[Price]:
            # Those of a source's own time-outs, too.
            raise TimeoutError("no route to the node")

    source = bounded(Broken(), 60)
    for _ in range(2):
        with pytest.raises(TimeoutError, match="no route") as error:
            source.prices(AT)
        assert error.value.__notes__ == ["oracle was asked for prices as of 2026-03-01T12:00:00Z."]
    with pytest.raises(SourceError, match=f"^oracle has no markets: .* asked for markets as of {NOON}$"):
        source.markets(AT)


def test_after_eight_calls_that_hang_nothing_is_asked_until_one_comes_back(oracle: Oracle) -> None:
    calls = Calls("oracle", 0.01)
    oracle.is_stuck = True
    for _ in range(8):
        with pytest.raises(SourceError, match="more than"):
            calls("prices", lambda: oracle.prices(AT))
    with pytest.raises(SourceError, match="8 calls are still waiting"):
        calls("prices", lambda: oracle.prices(AT))
    until(lambda: oracle.calls == 8)
    oracle.is_stuck = False
    oracle.go_on.set()
    for thread in oracle.callers:
        thread.join(30)
    assert calls("prices", lambda: oracle.prices(AT), 60) == []


def test_positions_that_come_one_by_one_are_waited_for_on_their_way(oracle: Oracle) -> None:
    assert [one.address for one in bounded(oracle, 60).positions(AT)] == [f"address {n}" for n in range(2_500)]
    oracle.is_stuck = True
    positions = bounded(oracle, 1).positions(AT)
    assert [next(positions).address for _ in range(2_000)][-1] == "address 1999"
    with pytest.raises(SourceError, match="positions"):
        next(positions)


def test_an_answer_that_is_made_as_it_is_read_is_waited_for_no_longer(oracle: Oracle) -> None:
    class Lazy(Oracle):
        """Looks up each price when it is asked for the next one, and when it is asked how far back it goes."""

        def prices(self, at: datetime) -> Iterator[Price]:  # type: ignore[override]
            oracle.prices(at)
            yield Price("token;a", at, Decimal(1))

        @property
        def history(self) -> timedelta | None:
            oracle.prices(AT)
            return timedelta(days=1)

    lazy = Lazy()
    source = bounded(lazy, 60)
    assert (source.prices(AT), source.history) == ([Price("token;a", AT, Decimal(1))], timedelta(days=1))
    oracle.is_stuck = True
    source = bounded(lazy, 0.1)
    with pytest.raises(SourceError, match="prices"):
        source.prices(AT)
    with pytest.raises(SourceError, match="history"):
        source.history  # noqa: B018


def test_a_source_that_does_not_close_keeps_nobody(oracle: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analytics_service.sources.calls._LAST_SECONDS", 0.05)
    source = bounded(oracle, 60)
    oracle.is_stuck = True
    source.close()
    assert oracle.calls == 1


def test_a_process_ends_while_a_call_hangs() -> None:
    """At its end Python waits for threads that are no daemons, and for those of executors."""
    calls = "from analytics_service.sources.calls import Calls; calls = Calls('oracle', 0.1)"
    code = f"import time; {calls}; calls('prices', lambda: time.sleep(1000))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert "oracle has taken more than 0.1 s for prices." in ended.stderr


def test_a_source_that_does_not_open_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()

    def opener(name: str) -> object:
        return lambda rest: go_on.wait(30)

    monkeypatch.setattr("analytics_service.sources.registry._opener", opener)
    with pytest.raises(SourceError, match=r"simulated has taken more than 1 s for opening\."):
        open_source("simulated", replace(Settings(), source_timeout=1), FakeStore())
    go_on.set()
