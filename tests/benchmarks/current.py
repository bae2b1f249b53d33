"""Repeated answers, each beside a bare Falcon application under the same gunicorn that sends as many bytes."""

import random
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.market.instants import multiples_between
from analytics_service.market.positions import Position
from analytics_service.sources.simulated.source import SimulatedSource
from jobs.registry import JOBS
from jobs.runner import backfill, take_snapshot
from tests.benchmarks.bench import Bench
from tests.benchmarks.gunicorn import gunicorn
from tests.benchmarks.harness import Figure, connection, in_turns
from tests.benchmarks.positions import crowd_address

_ACCOUNTS = 100_000
_HOURS = 200
_ROUNDS = 300
_ALL = "with_text=true&with_value=true"
# The most that an answer may take, to the bare application's.
_SHARED, _ONE_USER = 1.4, 4.0


class Residents(SimulatedSource):
    """The simulated protocol with any number of users: its own, repeated under other addresses."""

    def __init__(self, count: int) -> None:
        super().__init__("1")
        self._count = count

    def positions(self, at: datetime) -> Iterable[Position]:
        """All positions, generated while they are read."""
        known = list(super().positions(at))
        return (replace(known[number % len(known)], address=crowd_address(number)) for number in range(self._count))


def run(bench: Bench) -> Iterator[Figure]:
    """Current state, a history page, and positions among 100,000 accounts."""
    at = datetime.now(UTC).replace(second=0, microsecond=0)
    with bench.database("current") as settings:
        _fill(settings, at)
        with gunicorn(settings) as service, connection(service.url) as ask:
            sizes = {path: len(ask(path)) for path, _ in _cases(at).values()}
            lengths = ",".join(str(size) for size in {*sizes.values()})
            bare = gunicorn(settings, "tests.benchmarks.bare:app", f"/{lengths.split(',')[0]}", BENCHMARK_SIZES=lengths)
            with bare as peer, connection(peer.url) as ask_bare:
                for name, (path, bar) in _cases(at).items():
                    same = f"/{sizes[path]}"
                    calls = {"mine": lambda _, path=path: ask(path), "bare": lambda _, path=same: ask_bare(path)}
                    medians = in_turns(calls, _ROUNDS, warm_up=20)
                    yield Figure(f"{name}, {sizes[path]:,} bytes: median", medians["mine"] * 1000, "ms")
                    yield Figure(f"{name}: to bare Falcon's", medians["mine"] / medians["bare"], "x", at_most=bar)


def _fill(settings: Settings, at: datetime) -> None:
    source, hour = Residents(_ACCOUNTS), timedelta(hours=1)
    with closing(Store(settings)) as store:
        for job in JOBS.values():
            if job.name in ("prices", "rates", "markets"):
                backfill(job, source, store, multiples_between(at - _HOURS * hour, at, hour))
            take_snapshot(job, source, store, at)


def _cases(at: datetime) -> dict[str, tuple[str, float]]:
    """Path and bound of each case, by name."""
    hours = {"start": int(at.timestamp()) - (_HOURS - 1) * 3600, "end": int(at.timestamp()), "period": "h"}
    user = crowd_address(random.Random("users").randrange(_ACCOUNTS))
    return {
        "assets": ("/api/v1/assets", _SHARED),
        "prices": ("/api/v1/assets/prices?with_text=true", _SHARED),
        "markets, all flags": (f"/api/v1/markets?{_ALL}", _SHARED),
        "ptoken state, all flags": (f"/api/v1/ptoken/state?{_ALL}", _SHARED),
        f"a page of {_HOURS} hours": (f"/api/v1/assets/price-history?{urlencode(hours)}", _SHARED),
        f"a position of {_ACCOUNTS:,}, all flags": (f"/api/v1/users/{user}/user?{_ALL}&with_percent=true", _ONE_USER),
    }
