"""Bounds the time of a source's answers, so that a call that hangs costs a single snapshot."""

import logging
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from datetime import datetime
from itertools import islice
from typing import Any, TypeVar

from analytics_service.concurrency import in_thread
from analytics_service.errors import SourceError
from analytics_service.market.positions import Position
from analytics_service.sources.base import Source

log = logging.getLogger(__name__)

_T = TypeVar("_T")
# When this many calls hang, the source is not called any more: each call occupies a thread, which nothing can end.
_MAX_HANGING = 8
# Positions per call: a source may yield them one by one.
_POSITIONS_AT_ONCE = 1_000
# Seconds in which a source must close, and must answer once the process is about to end.
_LAST_SECONDS = 5.0


class Calls:
    """Calls into a source, each in a thread of its own. One that exceeds the time limit is abandoned in its thread."""

    def __init__(self, source: str, seconds: float) -> None:
        self._source = source
        self._seconds = seconds
        self._hanging: set[Future[Any]] = set()
        self._hurry: Future[None] = Future()

    def __call__(self, subject: str, call: Callable[[], _T], within: float | None = None) -> _T:
        """The result of the call, or its error. SourceError when it takes too long, or when too many others hang."""
        seconds = self._seconds if within is None else within
        if len(self._hanging) >= _MAX_HANGING:
            raise SourceError(
                f"{self._source} is not asked for {subject}: {len(self._hanging)} calls have not come back. "
                "If they never do, start the process again."
            )
        future = in_thread(call)
        # `result` with a time-out would raise TimeoutError, which could also be the source's own.
        either: list[Future[Any]] = [future, self._hurry]
        wait(either, seconds, FIRST_COMPLETED)
        if self._hurry.done():
            seconds = min(seconds, _LAST_SECONDS)
            wait([future], seconds)
        if future.done():
            return future.result()
        self._hanging.add(future)
        future.add_done_callback(self._hanging.discard)
        raise SourceError(f"{self._source} has taken more than {seconds:g} s for {subject}.")

    def hurry(self) -> None:
        """From now on calls, also those under way, may take only some seconds."""
        if not self._hurry.done():
            self._hurry.set_result(None)


class BoundedSource(Source):
    """Wraps a source so that each of its answers must come in time, including answers that are generated lazily; see
    Calls. Its spec and its sample addresses are read directly; whatever this class does not define is added below."""

    def __init__(self, source: Source, calls: Calls) -> None:
        self.has_markets = source.has_markets
        self.at_ends = source.at_ends
        self._source = source
        self._calls = calls

    @property
    def spec(self) -> str:
        return self._source.spec

    @property
    def sample_account(self) -> str:
        return self._source.sample_account

    def hurry(self) -> None:
        self._calls.hurry()
        self._source.hurry()

    def close(self) -> None:
        """Close the source. If it does not close in time, it is left to the end of the process."""
        try:
            self._calls("closing", self._source.close, _LAST_SECONDS)
        except SourceError as error:
            log.warning("%s", error)

    def positions(self, at: datetime) -> Iterator[Position]:
        """The positions of the source. Each batch of a thousand must come in time."""
        positions = iter(self._calls("positions", lambda: self._source.positions(at)))
        while batch := self._calls("positions", lambda: list(islice(positions, _POSITIONS_AT_ONCE))):
            yield from batch


def _bounded(name: str) -> Callable[..., Any]:
    """Gets a property of the source, or calls its method, within the time limit."""

    def ask(bounded: BoundedSource, *instants: datetime) -> Any:
        def answer() -> Any:
            value = getattr(bounded._source, name)
            value = value(*instants) if callable(value) else value
            return list(value) if isinstance(value, Iterable) else value

        return bounded._calls(name, answer)

    ask.__name__ = name
    return ask


for _name, _member in vars(Source).items():
    if not _name.startswith("_") and _name not in vars(BoundedSource):
        if isinstance(_member, property):
            setattr(BoundedSource, _name, property(_bounded(_name)))
        elif callable(_member):
            setattr(BoundedSource, _name, _bounded(_name))
