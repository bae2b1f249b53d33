"""Measures two things side by side: in turns, in one run, so that the machine's mood falls on both."""

import http.client
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit


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
        """Whether the figure keeps its bounds."""
        return (self.at_least or 0) <= self.value <= (self.at_most or float("inf"))

    def __str__(self) -> str:
        bound = f">= {self.at_least:,g}" if self.at_least else f"<= {self.at_most:,g}" if self.at_most else ""
        return f"{self.name:66} {self.value:14,.2f} {self.unit:7} {bound:12} {'' if self.kept else 'MISSED'}".rstrip()


def compare(
    name: str, mine: Callable[[int], object], peer: Callable[[int], object], bar: float | None, rounds: int = 60
) -> list[Figure]:
    """Medians of two calls made in turns, and their ratio. Each call gets the round's number, so none need be alike."""
    for warm_up in range(5):
        mine(-1 - warm_up)
        peer(-1 - warm_up)
    taken: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds):
        for call, seconds in ((mine, taken[0]), (peer, taken[1])):
            begun = time.perf_counter()
            call(number)
            seconds.append(time.perf_counter() - begun)
    ours, theirs = statistics.median(taken[0]), statistics.median(taken[1])
    return [
        Figure(f"{name}: median", ours * 1000, "ms"),
        Figure(f"{name}: peer's median", theirs * 1000, "ms"),
        Figure(f"{name}: ratio", ours / theirs, "x", at_most=bar),
    ]


@contextmanager
def connection(url: str) -> Iterator[Callable[..., bytes]]:
    """A kept-alive HTTP connection: request(path, body=None) -> the body of a 200."""
    parts = urlsplit(url)
    kept = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)

    def request(path: str, body: str | None = None) -> bytes:
        kept.request("GET" if body is None else "POST", path, body)
        answer = kept.getresponse()
        content = answer.read()
        if answer.status != http.client.OK:
            raise RuntimeError(f"{path} answered {answer.status}: {content[:300]!r}")
        return content

    try:
        yield request
    finally:
        kept.close()
