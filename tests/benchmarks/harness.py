"""Measures two things in turns, in one run, so that variations of the machine's speed affect both."""

import http.client
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit


class NotMeasured(Exception):
    """A figure cannot be measured here; the message says what to do about it."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured figure and the bound it must keep."""

    name: str
    value: float
    unit: str
    at_least: float | None = None
    at_most: float | None = None

    @property
    def kept(self) -> bool:
        """Whether the figure is within its bounds."""
        return (self.at_least or 0) <= self.value <= (self.at_most or float("inf"))

    def __str__(self) -> str:
        bound = f">= {self.at_least:,g}" if self.at_least else f"<= {self.at_most:,g}" if self.at_most else ""
        return f"{self.name:76} {self.value:14,.2f} {self.unit:9} {bound:12} {'' if self.kept else 'MISSED'}".rstrip()


def in_turns(
    calls: dict[str, Callable[[int], object]],
    rounds: int,
    warm_up: int = 5,
    before: Callable[[int], object] = lambda number: None,
) -> dict[str, float]:
    """Median seconds of calls made in turns, by name. Each call gets the number of the round, so that it can differ.

    The warm-up's numbers are negative. `before` is called ahead of each round; its time does not count.
    """
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(-warm_up, rounds):
        before(number)
        for name, call in calls.items():
            begun = time.perf_counter()
            call(number)
            if number >= 0:
                taken[name].append(time.perf_counter() - begun)
    return {name: statistics.median(seconds) for name, seconds in taken.items()}


@contextmanager
def connection(url: str) -> Iterator[Callable[..., bytes]]:
    """A kept-alive HTTP connection: request(path, body=None) -> the body of a 2xx."""
    parts = urlsplit(url)
    kept = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=600)

    def request(path: str, body: str | bytes | None = None) -> bytes:
        kept.request("GET" if body is None else "POST", path, body)
        answer = kept.getresponse()
        content = answer.read()
        if not http.client.OK <= answer.status < http.client.MULTIPLE_CHOICES:
            raise RuntimeError(f"{path} answered {answer.status}: {content[:300]!r}")
        return content

    try:
        yield request
    finally:
        kept.close()
