"""Writers in processes of their own that kill or stop themselves before a statement, and readers that look on."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import falcon.testing

from analytics_service.admin.remove import Removal, remove
from analytics_service.app import create_app
from analytics_service.config.settings import Settings
from analytics_service.errors import AnalyticsError
from analytics_service.sources.simulated.source import SimulatedSource
from analytics_service.state.watcher import HeadWatcher
from analytics_service.store.datasets.histories import PRICES
from jobs.registry import JOBS
from jobs.runner import backfill
from tests.doubles import Statement, WatchedStore
from tests.integration.cached import with_room
from tests.integration.imports import Progress, Row, prices_file, query, run
from tests.processes import state, until

# A process that was forked from one with all modules begins to write at once.
_FORK = multiprocessing.get_context("forkserver")
_FORK.set_forkserver_preload([__name__])
# A process that starts asks how all others have ended. Only one thread can be told how one has, so they take turns.
_TURN = threading.Lock()
SOURCE = SimulatedSource("1")
# Pauses between the requests of a reader. What an interrupted writer has left stays for seconds, so readers need not
# hurry, and leave time to writers.
BREATH = 0.8


@dataclass(frozen=True)
class Import:
    """Imports a file of prices, with an assets file beside it."""

    path: Path

    def __call__(self, store: WatchedStore) -> object:
        return run(store, self.path).rows.height


@dataclass(frozen=True)
class Backfill:
    """Takes snapshots of prices of the past."""

    instants: Sequence[Any]

    def __call__(self, store: WatchedStore) -> object:
        return backfill(JOBS["prices"], SOURCE, store, self.instants)


@dataclass(frozen=True)
class Remove:
    """Takes the prices of a range of time out, into a file."""

    start: int
    end: int
    folder: Path

    def __call__(self, store: WatchedStore) -> object:
        removal = Removal("prices", PRICES, self.start, self.end)
        return remove(store, removal, self.folder, Progress()).observations[PRICES]


Write = Import | Backfill | Remove


def import_of(folder: Path, rows: Sequence[Row], name: str) -> Import:
    """An import of rows from a file that is written here."""
    return Import(prices_file(folder, rows, name))


@dataclass(frozen=True)
class Moment:
    """Before a statement that writes: number `count` of those that contain `text`. Heartbeats do not count."""

    text: str = ""
    count: int = 1


@dataclass
class Writer:
    """A process that sends itself a signal at a moment."""

    settings: Settings
    write: Write
    moment: Moment
    signal: signal.Signals

    def __enter__(self) -> "Writer":
        self._results, theirs = _FORK.Pipe(duplex=False)
        self._process = _FORK.Process(target=_work, args=(self.settings, self.write, self.moment, self.signal, theirs))
        with _TURN:
            self._process.start()
        theirs.close()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        until(lambda: self.exit_code is not None)
        self._process.close()
        self._results.close()

    @property
    def exit_code(self) -> int | None:
        """None while it runs or is stopped."""
        with _TURN:
            return self._process.exitcode

    @property
    def stopped(self) -> bool:
        """Whether it waits to be continued."""
        return self._process.pid is not None and state(self._process.pid) == "T"

    def wait_for_signal(self) -> None:
        """Return when it has been killed or stopped, or has ended."""
        until(lambda: self.exit_code is not None or self.stopped, seconds=60)

    def bury(self) -> None:
        """As if it had sent no heartbeat for so long that it has lost the write lock."""
        lost = "INSERT INTO write_lock SELECT * REPLACE (1 AS released) FROM write_lock FINAL WHERE command = '{}'"
        query(self.settings, lost.format(_author(self._process.pid)))

    def go_on(self) -> object:
        """Continue it, if it is stopped; what its write returned or raised."""
        if self.stopped and self._process.pid is not None:
            os.kill(self._process.pid, signal.SIGCONT)
        until(lambda: self.exit_code is not None, seconds=60)
        assert self.exit_code == 0
        return self._results.recv()


def _work(settings: Settings, write: Write, moment: Moment, sent: signal.Signals, results: Connection) -> None:
    seen = 0

    def before(statement: Statement) -> None:
        nonlocal seen
        writes = statement.kind != "query" and threading.current_thread().name != "heartbeat"
        if writes and moment.text in f"{statement.kind} {statement.name}":
            seen += 1
            if seen == moment.count:
                os.kill(os.getpid(), sent)

    with closing(WatchedStore(settings, before=before)) as store:
        store.author = _author(os.getpid())
        try:
            results.send(write(store))
        except AnalyticsError as error:
            results.send(error)


def _author(pid: int | None) -> str:
    return f"writer {pid}"


# A page's JSON to what it shows: the number of the rewrite that each value comes from.
Levels = Callable[[Any], set[int]]


@dataclass(frozen=True)
class Read:
    """An answer, the levels that it shows, and the seconds that it took."""

    path: str
    status: int
    levels: frozenset[int]
    seconds: float
    headers: dict[str, str]


@dataclass
class Reader:
    """An application with a poller of its own, asked all the time."""

    client: falcon.testing.TestClient
    levels: Levels

    def ask(self, path: str) -> Read:
        begun = time.monotonic()
        answer = self.client.simulate_get(path)
        ended = time.monotonic()
        levels = frozenset(self.levels(answer.json["data"]) if answer.status_code == 200 else ())
        return Read(path, answer.status_code, levels, ended - begun, dict(answer.headers))

    def shows(self, paths: Sequence[str], level: int) -> bool:
        """Whether all of the paths show a level now."""
        return all(self.ask(path).levels == {level} for path in paths)

    @contextmanager
    def asking(self, paths: Sequence[str]) -> Iterator[list[Read]]:
        """What is answered during the block, in order."""
        stopped = threading.Event()
        reads: list[Read] = []

        def ask() -> None:
            while not stopped.is_set():
                for path in paths:
                    reads.append(self.ask(path))
                    stopped.wait(BREATH)

        thread = threading.Thread(target=ask)
        thread.start()
        try:
            yield reads
        finally:
            stopped.set()
            thread.join()


@contextmanager
def reader(settings: Settings, levels: Levels, memory: int | None = None) -> Iterator[Reader]:
    """A reader, with `memory` megabytes for each cache. Its threads do nothing more after the block."""
    ended = threading.Event()

    def before(statement: Statement) -> None:
        if ended.is_set():
            threading.Event().wait()

    own = settings if memory is None else with_room(settings, memory)
    with closing(WatchedStore(own, before=before)) as store:
        yield Reader(falcon.testing.TestClient(create_app(own, store, heads=HeadWatcher(store))), levels)
        ended.set()
