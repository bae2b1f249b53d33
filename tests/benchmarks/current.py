"""Repeated requests to two workers, compared with a bare Falcon application that sends constant bytes."""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from statistics import median, median_low
from urllib.parse import urlencode

from analytics_service.config.settings import Settings
from analytics_service.market.instants import multiples
from analytics_service.market.positions import Position
from analytics_service.sources.simulated.source import SimulatedSource
from analytics_service.store.connection import Store
from analytics_service.store.histories import HISTORIES
from jobs.registry import JOBS
from jobs.runner import backfill, run_once
from tests.benchmarks.bench import Bench
from tests.benchmarks.gunicorn import Gunicorn, gunicorn
from tests.benchmarks.harness import Figure, connection
from tests.benchmarks.load import load
from tests.benchmarks.positions import crowd_address

ACCOUNTS = 100_000
_HOURS = 200
_TINY = 100
_ROUNDS = 11
_ROUND_SECONDS = 0.4
_ALL = "with_text=true&with_value=true"
_SHARED, _ONE_USER = 0.70, 0.25


class Residents(SimulatedSource):
    """The simulated protocol with any number of users: its own, repeated under other addresses."""

    def __init__(self, count: int) -> None:
        super().__init__("1")
        self._count = count

    def positions(self, at: datetime) -> Iterable[Position]:
        """All positions, generated while they are read."""
        known = list(super().positions(at))
        return (replace(known[number % len(known)], address=crowd_address(number)) for number in range(self._count))


@dataclass(frozen=True, slots=True)
class Repeated:
    """Paths that are requested repeatedly, and the lowest allowed ratio to the rate of the bare application."""

    name: str
    paths: Sequence[str]
    at_least: float | None


def run(bench: Bench) -> Iterator[Figure]:
    """Requests per second: current state, a history page, and positions among 100,000 accounts."""
    at = datetime.now(UTC).replace(second=0, microsecond=0)
    with bench.database("current") as own:
        _fill(own, at)
        settings = replace(own, workers=2)
        with gunicorn(settings) as service:
            cases = [*_state(at), *_users(service.url)]
            sizes = _sizes(service.url, cases)
            wanted = ",".join(str(size) for size in {_TINY, *sizes.values()})
            with gunicorn(settings, "tests.benchmarks.bare:app", f"/{_TINY}", BENCHMARK_SIZES=wanted) as bare:
                for case in cases:
                    yield from _compared(case, sizes[case.name], service, bare)


def _fill(settings: Settings, at: datetime) -> None:
    source, hour = Residents(ACCOUNTS), timedelta(hours=1)
    shown = {history.family for history in HISTORIES}
    with closing(Store(settings)) as store:
        for job in JOBS.values():
            if job.family in shown:
                backfill(job, source, store, multiples(at - _HOURS * hour, at - hour, hour))
            run_once(job, source, store, at)


def _state(at: datetime) -> list[Repeated]:
    hours = {"start": int(at.timestamp()) - (_HOURS - 1) * 3600, "end": int(at.timestamp()), "period": "h"}
    paths = {
        "assets": "/api/v1/assets",
        "prices": "/api/v1/assets/prices?with_text=true",
        "markets, all flags": f"/api/v1/markets?{_ALL}",
        "merged markets, all flags": f"/api/v1/markets/merged?{_ALL}",
        "ptoken state, all flags": f"/api/v1/ptoken/state?{_ALL}",
        f"a page of {_HOURS} hours": f"/api/v1/assets/price-history?{urlencode(hours)}",
    }
    return [Repeated(name, [path], _SHARED) for name, path in paths.items()]


def _users(url: str) -> list[Repeated]:
    """Positions with all flags: one whose answer has the median length of a sample, and random ones."""
    chance = random.Random("users")
    drawn = [_user(number) for number in chance.sample(range(ACCOUNTS), 51)]
    with connection(url) as ask:
        drawn.sort(key=lambda path: len(ask(path)))
    anyone = [_user(number) for number in chance.sample(range(ACCOUNTS), 50_000)]
    return [
        Repeated(f"one position of {ACCOUNTS:,}, all flags", [drawn[len(drawn) // 2]], _ONE_USER),
        Repeated(f"any position of {ACCOUNTS:,}, all flags", anyone, None),
    ]


def _user(number: int) -> str:
    return f"/api/v1/users/{crowd_address(number)}/user?{_ALL}&with_percent=true"


def _sizes(url: str, cases: Sequence[Repeated]) -> Mapping[str, int]:
    """The length of the answer of each case, by name; the median if a case has many paths."""
    with connection(url) as ask:
        return {case.name: int(median_low([len(ask(path)) for path in case.paths[:51]])) for case in cases}


def _compared(case: Repeated, size: int, service: Gunicorn, bare: Gunicorn) -> Iterator[Figure]:
    loads = {"mine": (service, case.paths), "bare": (bare, [f"/{size}"]), "tiny": (bare, [f"/{_TINY}"])}
    rates: dict[str, list[float]] = {name: [] for name in loads}
    costs: dict[str, list[float]] = {name: [] for name in loads}
    for number in range(_ROUNDS + 1):
        for name, (server, paths) in loads.items():
            rate, cost = _measure(server, paths)
            # The first round warms up.
            if number:
                rates[name].append(rate)
                costs[name].append(cost)
    yield Figure(f"{case.name}: {size:,} bytes", median(rates["mine"]), "answers/s")
    yield Figure(f"{case.name}: bare Falcon, as many bytes", median(rates["bare"]), "answers/s")
    alike = _ratio(rates["mine"], rates["bare"])
    yield Figure(f"{case.name}: to bare Falcon, as many bytes", alike, "x", at_least=case.at_least)
    yield Figure(f"{case.name}: the same by processor time", _ratio(costs["bare"], costs["mine"]), "x")
    yield Figure(f"{case.name}: to bare Falcon, {_TINY} bytes", _ratio(rates["mine"], rates["tiny"]), "x")


def _measure(server: Gunicorn, paths: Sequence[str]) -> tuple[float, float]:
    """Answers per second, and processor seconds of the server for each answer."""
    before = server.processor_seconds()
    answers, seconds = load(server.url, paths, _ROUND_SECONDS)
    return answers / seconds, (server.processor_seconds() - before) / answers


def _ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median ratio of measurements that were made one right after the other."""
    return median(our / their for our, their in zip(ours, theirs, strict=True))
