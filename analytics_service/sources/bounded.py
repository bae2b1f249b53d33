"""Bounds the time that a source may take for an answer: a call that hangs costs one snapshot, not all that follow."""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, TypeVar

from analytics_service.errors import SourceError
from analytics_service.market.assets import Asset
from analytics_service.market.events import Event
from analytics_service.market.markets import GlobalConfig, Market
from analytics_service.market.positions import Position, SwapContract
from analytics_service.market.prices import Price
from analytics_service.market.ptoken import Arrangement, Ptoken
from analytics_service.sources.base import Sample, Source

log = logging.getLogger(__name__)

_T = TypeVar("_T")
# Once so many calls hang, the source is not called any more: each call holds a thread, which nothing can end.
_MOST_HANGING = 8
# Positions that are asked for at once: a source may give them one by one.
_POSITIONS_AT_ONCE = 1_000
# Seconds that a source has to close, and for an answer once the process is to end.
_LAST_SECONDS = 5.0


class Calls:
    """Calls into a source, each in a thread of its own. A call that takes longer than some seconds is left in it.

    The threads are daemons, so the process may end meanwhile. It would wait for those of a ThreadPoolExecutor.
    """

    def __init__(self, source: str, seconds: float) -> None:
        self._source = source
        self._seconds = seconds
        self._hanging: set[Future[Any]] = set()
        self._hurry: Future[None] = Future()

    def __call__(self, what: str, call: Callable[[], _T]) -> _T:
        """What the call returns or raises. SourceError when it takes too long, or when too many others hang."""
        return self.within(self._seconds, what, call)

    def within(self, seconds: float, what: str, call: Callable[[], _T]) -> _T:
        """The same with another number of seconds."""
        if len(self._hanging) >= _MOST_HANGING:
            raise SourceError(
                f"{self._source} is not asked for {what}: {len(self._hanging)} calls have not come back. "
                "If they never do, start the process again."
            )
        future: Future[_T] = Future()
        threading.Thread(target=_run, args=(call, future), name="source", daemon=True).start()
        # Not `result` with a time-out: its TimeoutError could be the source's own.
        either: list[Future[Any]] = [future, self._hurry]
        wait(either, seconds, FIRST_COMPLETED)
        if self._hurry.done():
            seconds = min(seconds, _LAST_SECONDS)
            wait([future], seconds)
        if future.done():
            return future.result()
        self._hanging.add(future)
        future.add_done_callback(self._hanging.discard)
        raise SourceError(f"{self._source} has taken more than {seconds:g} s for {what}.")

    def hurry(self) -> None:
        """From now on a call may take some seconds only, also one under way."""
        if not self._hurry.done():
            self._hurry.set_result(None)


def _run(call: Callable[[], _T], future: "Future[_T]") -> None:
    try:
        future.set_result(call())
    except BaseException as error:
        future.set_exception(error)


class BoundedSource(Source):
    """Wraps a source so that each of its answers must come in time, also where it is made as it is read; see Calls.

    What it is called and its sample addresses must be known to it without asking anybody.
    """

    def __init__(self, source: Source, calls: Calls) -> None:
        self.simulated = source.simulated
        self._of = source
        self._calls = calls

    @property
    def spec(self) -> str:
        """That of the source."""
        return self._of.spec

    @property
    def history(self) -> timedelta | None:
        """That of the source."""
        return self._calls("history", lambda: self._of.history)

    @property
    def since(self) -> datetime | None:
        """That of the source."""
        return self._calls("since", lambda: self._of.since)

    @property
    def samples(self) -> Mapping[Sample, str]:
        """Those of the source."""
        return self._of.samples

    def hurry(self) -> None:
        """From now on the source may take some seconds only for an answer, also for one that is waited for already."""
        self._calls.hurry()

    def close(self) -> None:
        """Close the source. One that does not close is left to the end of the process."""
        try:
            self._calls.within(_LAST_SECONDS, "closing", self._of.close)
        except SourceError as error:
            log.warning("%s", error)

    def assets(self, at: datetime) -> Sequence[Asset]:
        """Those of the source."""
        return self._all("assets", lambda: self._of.assets(at))

    def prices(self, at: datetime) -> Sequence[Price]:
        """Those of the source."""
        return self._all("prices", lambda: self._of.prices(at))

    def markets(self, at: datetime) -> Sequence[Market]:
        """Those of the source."""
        return self._all("markets", lambda: self._of.markets(at))

    def config(self, at: datetime) -> GlobalConfig:
        """That of the source."""
        return self._calls("config", lambda: self._of.config(at))

    def events(self, after: datetime, until: datetime) -> Sequence[Event]:
        """Those of the source."""
        return self._all("events", lambda: self._of.events(after, until))

    def ptoken(self, at: datetime) -> Ptoken:
        """That of the source."""
        return self._calls("ptoken", lambda: self._of.ptoken(at))

    def arrangements(self, at: datetime) -> Sequence[Arrangement]:
        """Those of the source."""
        return self._all("arrangements", lambda: self._of.arrangements(at))

    def positions(self, at: datetime) -> Iterator[Position]:
        """Those of the source. Each thousand of them has to come in time."""
        found = iter(self._calls("positions", lambda: self._of.positions(at)))
        while some := self._calls("positions", lambda: list(islice(found, _POSITIONS_AT_ONCE))):
            yield from some

    def swaps(self, at: datetime) -> Sequence[SwapContract]:
        """Those of the source."""
        return self._all("swaps", lambda: self._of.swaps(at))

    def _all(self, what: str, call: Callable[[], Iterable[_T]]) -> Sequence[_T]:
        return self._calls(what, lambda: list(call()))
