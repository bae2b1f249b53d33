"""Services with and without caches over one database, and random questions for them."""

import gzip
import random
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import urlencode

import falcon.testing
import polars as pl

from analytics_service.app import create_app
from analytics_service.clickhouse.connection import Store
from analytics_service.concurrency import deadline
from analytics_service.config.settings import Settings
from analytics_service.state.watcher import Heads, HeadWatcher
from tests import oracle

DECODERS = {"identity": bytes, "gzip": gzip.decompress}
HEADERS = ("etag", "cache-control", "vary", "last-modified", "as-of", "link")
_LOADERS = ("history", "positions")
_DAY = 86_400
_HOUR = 3600
_FLAGS = ("with_text", "with_value", "with_percent")
_PRICES = "/api/v1/assets/price-history"
_LOANS = "/api/v1/analytics/market/history/loans-originated"
_LIQUIDATIONS = "/api/v1/analytics/market/history/liquidations"
_HISTORIES = (
    *[_PRICES] * 6,
    "/api/v1/markets/lend/rate-history",
    "/api/v1/markets/borrow/rate-history",
    f"{_LOANS}/by-asset",
    _LOANS,
    f"{_LIQUIDATIONS}/by-asset",
    _LIQUIDATIONS,
    "/api/v1/markets/history/net-tvl",
    "/api/v1/markets/history/utilization",
)
# Paths of current state, each with the flags that it takes.
_STATES = {
    "assets": 0,
    "assets/prices": 1,
    "markets": 2,
    "markets/config": 1,
    "markets/supply": 1,
    "markets/lend": 2,
    "markets/borrow": 2,
    "markets/merged": 2,
    "ptoken/state": 2,
    "ptoken/staking": 2,
    "analytics/market/state": 0,
    "analytics/ptoken/unlocks-distribution": 0,
}
# The same below an address; each reads its position.
_USER_STATES = {"user": 3, "markets/lend": 2, "markets/borrow": 2, "ptoken/staking": 2, "wallet/balances": 2}


class Clock:
    """A clock that tests advance instead of waiting."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


class Counted(Store):
    """Counts queries by name, except those of background loaders."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.queries: Counter[str] = Counter()

    def query(self, query: str, parts: Sequence[str] = (), **parameters: object) -> pl.DataFrame:
        """Count the query and run it."""
        if threading.current_thread().name not in _LOADERS:
            self.queries[query] += 1
        return super().query(query, parts, **parameters)


class Question(NamedTuple):
    """A path and its query."""

    path: str
    query: str

    @property
    def is_history(self) -> bool:
        return "history" in self.path


@dataclass(frozen=True)
class Answer:
    """A response, with its body decoded."""

    status: int
    body: bytes
    headers: dict[str, str | None]

    @property
    def etag(self) -> str:
        return str(self.headers["etag"])


class SteppedHeads(HeadWatcher):
    """Heads that look at the ledger whenever the clock has advanced."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._seen_at: float | None = None

    def shown(self) -> Heads:
        if self._seen_at != self.clock():
            self._seen_at = self.clock()
            self.look()
        return super().shown()


class Service:
    """The application over a store, as its callers see it, at a fixed time of day."""

    def __init__(self, settings: Settings, store: Store, clock: Clock, now: float) -> None:
        # A request that has to wait advances the clock instead.
        self.heads = SteppedHeads(store, interval=None, clock=clock, pause=lambda seconds: clock.advance(5))
        self._app = create_app(settings, store, lambda: datetime.fromtimestamp(now, UTC), self.heads)
        self.client = falcon.testing.TestClient(self._app)

    def get(
        self, question: Question, coding: str = "identity", known: Iterable[str] = (), seconds: float = 5
    ) -> Answer:
        """The answer, or a 503 if it cannot be made in so many seconds."""
        asked = {"Accept-Encoding": coding, "If-None-Match": ", ".join(known)}
        with deadline(seconds):
            found = self.client.simulate_get(question.path, query_string=question.query, headers=asked)
        body = DECODERS[found.headers.get("content-encoding", "identity")](found.content)
        return Answer(found.status_code, body, {name: found.headers.get(name) for name in HEADERS})

    def wait_for_loaders(self) -> None:
        """Return when everything that loads in the background is loaded."""
        self._app.memory.wait()
        for thread in threading.enumerate():
            if thread.name in _LOADERS:
                thread.join()


def with_room(settings: Settings, megabytes: int) -> Settings:
    """The same settings, with so many megabytes for each cache."""
    return replace(settings, history_memory=megabytes, answer_memory=megabytes)


def without_memory(settings: Settings) -> Settings:
    """The same settings, without caches."""
    return with_room(settings, 0)


@dataclass
class Questions:
    """Draws questions: new ones, and some that were asked before.

    Ranges lie around [first, last], which may grow, and often around `touched`, the instants that were written last.
    `now` is what the services take for the present second.
    """

    random: random.Random
    first: int
    last: int
    now: int
    addresses: Sequence[str]
    assets: Sequence[str] = ()
    touched: Sequence[int] = ()
    asked: list[Question] = field(default_factory=list)

    def draw(self) -> Question:
        if self.asked and self.random.random() < 0.4:
            # Recent ones are more likely to be cached.
            return self.random.choice(self.asked[-40:])
        question = self._history() if self.random.random() < 0.65 else self._state()
        self.asked.append(question)
        return question

    def _history(self) -> Question:
        draw, path = self.random, self.random.choice(_HISTORIES)
        period = draw.choice([*"hhhdddwmy", "min", "auto"])
        start = draw.choice(
            [
                draw.randint(self.first, self.last),
                # The newest days, as most people ask for.
                draw.randint(self.last - 5 * _DAY, self.last + _DAY),
                *[draw.choice(self.touched) - draw.randint(0, 2 * _DAY)] * 2,
            ]
        )
        end = start + draw.choice([draw.randint(0, 3 * _DAY), draw.randint(0, 4 * (self.last - self.first) // 3)])
        if draw.random() < 0.5:
            # The end of an hour: memory has such pages, and the store those that end within a rollup.
            end += _HOUR - 1 - end % _HOUR
        query: dict[str, object] = {
            "start": start,
            "end": end,
            "period": period,
            "interval": draw.choice([1, 1, 1, draw.randint(2, 9)]),
            "tz": draw.choice(["UTC", "Europe/London", draw.choice(oracle.ZONES)]),
            "limit": draw.randint(1, 200),
            "offset": draw.choice([0, 0, draw.randint(0, 100)]),
        }
        if period == "auto":
            del query["interval"]
            query["points"] = draw.randint(10, 1000)
        if draw.random() < 0.3:
            query["fill"] = "none"
        if draw.random() < 0.2:
            query["digits"] = draw.randint(1, 18)
        if draw.random() < 0.1:
            query["agg"] = draw.choice(["first", "min", "max", "mean", "ohlc"])
        if draw.random() < 0.2:
            query["format"] = draw.choice(["columns", "csv", "arrow", "arrow"])
        if path == _PRICES and draw.random() < 0.4:
            query["asset_ids"] = ",".join(draw.sample(self.assets, draw.randint(1, 3)))
        if path == _PRICES and draw.random() < 0.2:
            query["symbols"] = draw.choice(self.assets).partition(";")[2].upper()
        return Question(path, urlencode(query))

    def _state(self) -> Question:
        draw = self.random
        if draw.random() < 0.5:
            part, flags = draw.choice([*_USER_STATES.items()])
            path = f"users/{draw.choice(self.addresses)}/{part}"
        else:
            path, flags = draw.choice([*_STATES.items()])
        query: dict[str, object] = {flag: "true" for flag in _FLAGS[:flags] if draw.random() < 0.5}
        if draw.random() < 0.4:
            query["at"] = self._moment()
        return Question(f"/api/v1/{path}", urlencode(query))

    def _moment(self) -> int:
        """A moment that is not in the future, often one of those that were written last."""
        draw, now = self.random, self.now
        about = draw.choice([now, *self.touched]) + draw.randint(-_HOUR, _HOUR)
        return min(draw.choice([about, draw.randint(now - (self.last - self.first) // 6, now)]), now)
