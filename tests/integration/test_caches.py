"""Whatever is written, and whenever: who keeps answers, history and positions says what one says who keeps nothing."""

import logging
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from analytics_service.config import Settings
from analytics_service.errors import StoreUnavailable
from analytics_service.imports import families
from analytics_service.imports.run import Request, import_files
from analytics_service.market.assets import Asset
from analytics_service.market.instants import multiples, unix_second
from analytics_service.market.positions import Position
from analytics_service.market.prices import Price
from analytics_service.sources.simulated.source import SimulatedSource
from analytics_service.store import ledger
from analytics_service.store.connection import Store
from analytics_service.store.prices import price_frame
from jobs.registry import JOBS, Job
from jobs.runner import backfill, run_once
from jobs.snapshot import Origin, Snapshot, commit
from tests import oracle
from tests.integration.cached import Answer, Clock, Counted, Question, Questions, Service, without_memory
from tests.integration.imports import Progress, prices_file
from tests.integration.pages import Observations, Pages, asset

DAY, HOUR, MINUTE = 86_400, 3600, 60
# Some hours before a chunk of hours ends, 2025-02-19 16:00 UTC.
BEGIN = 1_739_980_800 - 3 * HOUR
CODINGS = ("identity", "gzip", "zstd")
RATES = "timestamp,symbol,asset_address,decimals,is_active,borrowing_enabled,current_liquidity_rate,"
RATES += "current_variable_borrow_rate\n"


class Lively(SimulatedSource):
    """The simulated protocol, but that most positions change from one second to the next."""

    def positions(self, at: datetime) -> Iterator[Position]:
        """The same, with something unclaimed."""
        for n, position in enumerate(super().positions(at)):
            yield replace(position, unclaimed=int(at.timestamp()) // MINUTE * n % 7)


SOURCE = Lively("1")


class Writer(Store):
    """A store in the middle of whose writes others may look."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.announced = False
        self.dies = False
        self.meanwhile: Callable[[bool], None] = lambda staged: None

    def insert(self, table: str, rows: pl.DataFrame) -> None:
        """Write rows. Those of staging tables, and heartbeats, come from other threads; nobody looks during them."""
        if "staging" not in table and table != "publication":
            self.meanwhile(False)
            if self.dies and table == "snapshot":
                raise StoreUnavailable("The writer has died.")
        super().insert(table, rows)
        if table == "publication" and threading.current_thread() is threading.main_thread():
            self.announced = not rows["finished"][0]

    def execute(self, statement: str) -> None:
        """Run a statement: it stages rows that are not announced yet, or puts them in place."""
        self.meanwhile(not self.announced)
        super().execute(statement)


@dataclass
class World:
    """A database that is written in every way there is, two services over it, and what its prices are."""

    settings: Settings
    folder: Path
    random: random.Random
    clock: Clock = field(default_factory=Clock)
    now: int = BEGIN
    # By asset and second: the version that holds and its price. What lies behind the newest completed run, as a run
    # that died may leave it, waits in `unseen`.
    prices: dict[str, dict[int, tuple[int, Decimal]]] = field(default_factory=dict)
    unseen: list[tuple[str, int, Decimal, int]] = field(default_factory=list)
    reserved: list[int] = field(default_factory=list)
    last_version: int = 0
    seen: Counter[object] = field(default_factory=Counter)
    # Of all answers, by ETag.
    bodies: dict[str, bytes] = field(default_factory=dict)
    # What was asked since something was last written; and answers as of the begin of the run that is writing.
    fresh: set[Question] = field(default_factory=set)
    before: list[tuple[Question, Answer]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.writer = Writer(self.settings)
        self.plain_store = Store(self.settings)
        self.store = Counted(self.settings)
        addresses = [position.address for position in SOURCE.positions(instant(BEGIN))]
        self.questions = Questions(self.random, BEGIN - 300 * DAY, self.now, [*addresses, "0x" + "9" * 40])
        self._begin()
        self.questions.assets = [*self.prices]
        self.caching = self._started()

    def _started(self) -> Service:
        """A service that has been asked so much that it keeps histories and positions."""
        service = Service(self.settings, self.store, self.clock, BEGIN)
        for n in range(50):
            service.get(Question(f"/api/v1/users/0x{n:040x}/user", ""))
        service.get(Question("/api/v1/assets/price-history", f"start={BEGIN}&end={BEGIN}&period=h"))
        service.settle()
        return service

    def close(self) -> None:
        self.caching.settle()
        for store in (self.writer, self.plain_store, self.store):
            store.close()

    def plain(self) -> Service:
        """A service that has started just now, and keeps nothing."""
        return Service(without_memory(self.settings), self.plain_store, self.clock, BEGIN)

    # How it is written.

    def _begin(self) -> None:
        self._observe(
            {
                "token;hours": self._walk(BEGIN - 260 * DAY, self.now, HOUR, 0.8),
                "token;days": self._walk(BEGIN - 290 * DAY, self.now - 20 * DAY, DAY, 0.7),
                "token;minutes": self._walk(self.now - 2 * DAY, self.now, MINUTE, 0.5),
                "token;rare": self._walk(BEGIN - 300 * DAY, self.now, 25 * DAY, 0.9),
            }
        )
        for name in ("rates", "loans"):
            self._backfill(JOBS[name], self.now - 40 * DAY, self.now - DAY, 8 * DAY)
        for job in JOBS.values():
            self._tick(job)
        self.reserved.append(self._version())

    def tick(self) -> None:
        """Scheduled jobs, those that were due."""
        self.now += self.random.choice([MINUTE, self.random.randint(3 * HOUR, 12 * HOUR)])
        jobs = {*self.random.sample([*JOBS], self.random.randint(1, 2)), "prices", "positions"}
        for job in self.random.sample([JOBS[name] for name in sorted(jobs)], len(jobs)):
            self._write(lambda job=job: self._tick(job))  # type: ignore[misc]

    def observe(self) -> None:
        """A run at the end of history, now and then with an asset that was not there before."""
        self.now += self.random.randint(1, HOUR)
        self._write(lambda: self._observe(self._newest()))

    def die(self) -> None:
        """The same by a run that does not come to its end, which would have brought an asset; and a new worker."""
        self.now += self.random.randint(1, HOUR)
        rows = self._newest() | {f"token;never{self.now}": [(self.now, self._price())]}
        self.writer.dies = True
        with suppress(StoreUnavailable):
            self._write(lambda: self._observe(rows))
        self.writer.dies = False
        self.caching.settle()
        self.caching = self._started()

    def late(self) -> None:
        """A run that began before others and ends after them: what they wrote holds."""
        version = self.reserved.pop(self.random.randrange(len(self.reserved)))
        self.reserved.append(self._version())
        self._write(lambda: self._observe(self._corrections(), version))

    def backfill(self) -> None:
        """Snapshots of jobs that are missing."""
        job = self.random.choice([job for job in JOBS.values() if job.history])
        end = self.now - self.random.choice([HOUR, self.random.randint(HOUR, 40 * DAY)])
        every = self.random.choice([20 * MINUTE, 4 * HOUR])
        self._write(lambda: self._backfill(job, end - 3 * every, end, every))

    def import_prices(self) -> None:
        """A file that corrects history, goes back further, fills gaps, goes on, or brings an asset."""
        rows = self._newest() if self.random.random() < 0.2 else self._corrections()
        assets = self.folder / "assets.csv"
        names = [name.partition(";")[2] for name in rows if name not in self.prices]
        assets.write_text("symbol,address,decimals\n" + "".join(f"{name},{name},6\n" for name in ["spare", *names]))
        lines = [(name, second, f"{price:f}") for name, seen in rows.items() for second, price in seen]
        file = prices_file(self.folder, self.random.sample(lines, len(lines)))
        now = instant(self.now)

        def act() -> None:
            version = self._version()
            import_files(self.writer, Request(families.PRICES, [file], assets), now, Progress())
            self._remember(rows, version)

        self._write(act)

    def import_rates(self) -> None:
        """A file of rates, which may bring an asset too."""
        draw = self.random
        lines = [
            f"{self._second()},{name},{name},6,True,True,{draw.random()},{draw.random()}\n"
            for name in ("0xrates", f"0xrates{draw.randrange(1000)}")
            for _ in range(draw.randint(1, 20))
        ]
        file = self.folder / "rates.csv"
        file.write_text(RATES + "".join(lines))
        self._write(lambda: import_files(self.writer, Request(families.RATES, [file]), instant(self.now), Progress()))

    def _tick(self, job: Job) -> None:
        at = instant(self.now)
        version = self._version()
        run_once(job, SOURCE, self.writer, at)
        if job.name == "prices":
            self._remember(simulated(self.now), version)

    def _backfill(self, job: Job, start: int, end: int, every: int) -> None:
        instants = multiples(instant(start), instant(end), timedelta(seconds=every))
        there = ledger.completed(self.writer, job.family, start, end)
        version = self._version()
        backfill(job, SOURCE, self.writer, instants)
        if job.name == "prices":
            for second in map(unix_second, instants):
                if second not in there:
                    self._remember(simulated(second), version)

    def _observe(self, rows: Observations, version: int | None = None) -> None:
        version = version or self._version()
        prices = [Price(name, instant(at), price) for name, seen in rows.items() for at, price in seen]
        assets: list[Asset] = [asset(name.partition(";")[2]) for name in rows if name not in simulated(0)]
        last = max(price.observed_at for price in prices)
        snapshot = Snapshot(last, dated={"price": price_frame(prices)}, assets=assets)
        self._remember(rows, version, unseen=True)
        kind = "job" if version == self.last_version else "backfill"
        commit(self.writer, [snapshot], Origin("prices", kind, "x"), version)
        self._reveal(int(last.timestamp()))

    # What is written.

    def _walk(self, first: int, last: int, step: int, chance: float) -> list[tuple[int, Decimal]]:
        draw = self.random
        seconds = [at + draw.randrange(step) for at in range(first, last, step) if draw.random() < chance]
        return [(min(second, last), self._price()) for second in seconds]

    def _price(self) -> Decimal:
        return Decimal(self.random.randint(0, 10**12)).scaleb(-self.random.randint(0, 18))

    def _second(self) -> int:
        """An instant of the past, be it an hour or a year ago."""
        return self.now - self.random.randint(0, self.random.choice([HOUR, 60 * DAY, 300 * DAY, 300 * DAY]))

    def _newest(self) -> Observations:
        names = self.random.sample([*self.prices], self.random.randint(1, 3)) + self._new()
        return {name: [(self.now, self._price())] for name in names}

    def _corrections(self) -> Observations:
        """Other prices of seconds that have one, and prices of seconds that have none."""
        draw = self.random
        about = self._second()
        names = draw.sample([*self.prices], draw.randint(1, 3))
        there = {
            name: [at for at in self.prices[name] if abs(at - about) < draw.choice([HOUR, 3 * DAY])] for name in names
        }
        found = {name: draw.sample(seconds, min(len(seconds), draw.randint(0, 30))) for name, seconds in there.items()}
        for name in names[:1] + self._new():
            found.setdefault(name, []).extend(min(about + k * draw.randint(1, HOUR), self.now) for k in range(3))
        return {name: [(at, self._price()) for at in {*seconds}] for name, seconds in found.items() if seconds}

    def _new(self) -> list[str]:
        return [f"token;new{self.random.randrange(10**6)}"] if self.random.random() < 0.3 else []

    def _version(self) -> int:
        self.last_version = max(self.last_version + 1, ledger.new_version())
        return self.last_version

    def _remember(self, rows: Observations, version: int, unseen: bool = False) -> None:
        self.questions.touched = [at for seen in rows.values() for at, _ in seen]
        self.unseen += [(name, at, price, version) for name, seen in rows.items() for at, price in seen]
        if not unseen:
            self._reveal(max(at for seen in rows.values() for at, _ in seen))

    def _reveal(self, until: int) -> None:
        newest = max([until, *(at for seen in self.prices.values() for at in seen)])
        for name, at, price, version in self.unseen:
            if at <= newest:
                seen = self.prices.setdefault(name, {})
                if at not in seen or seen[at][0] <= version:
                    seen[at] = version, price
        self.unseen = [one for one in self.unseen if one[1] > newest]

    # Who looks at it.

    def _write(self, act: Callable[[], object]) -> None:
        """Let something be written, with somebody looking in its midst now and then; afterwards both look."""
        self._look_before()
        self.writer.meanwhile = self._meanwhile
        try:
            act()
        finally:
            self.writer.meanwhile = lambda staged: None
            self._written()

    def _written(self) -> None:
        self.clock.advance(self.random.choice([1, 1, 5]))
        self.fresh.clear()
        self.questions.last = self.now
        if self.random.random() < 0.5:
            self.caching.settle()

    def _look_before(self) -> None:
        plain = self.plain()
        self.before = [(one, plain.get(one)) for one in (self.questions.draw() for _ in range(2))]

    def _meanwhile(self, staged: bool) -> None:
        """Whoever looks while a run is at it sees what was before it; or must wait, once it has announced itself."""
        if self.random.random() < (0.5 if self.writer.announced else 0.85):
            return
        self.writer.meanwhile = lambda staged: None
        self.clock.advance(1)
        if self.writer.announced:
            for question, before in self.before:
                answer = self.random.choice([self.caching, self.plain()]).get(question)
                assert answer.status == 503 or answer == before, question
                self.seen["during a rewriting", answer.status] += 1
        else:
            if staged and self.random.random() < 0.5:
                self.now += MINUTE
                self._tick(JOBS["prices"])
                self._written()
                self._look_before()
            self.look(2)
        self.writer.meanwhile = self._meanwhile

    def look(self, times: int) -> None:
        """Ask both services the same."""
        plain = self.plain()
        for _ in range(times):
            question, coding = self.questions.draw(), self.random.choice(CODINGS)
            expected = self._noted(question, plain.get(question, coding))
            known = self.random.sample([*self.bodies], min(len(self.bodies), self.random.randint(0, 5)))
            if self.random.random() < 0.2:
                known.append(expected.etag)
            self.caching.heads.known()
            queries = self.store.queries.copy()
            answer = self.caching.get(question, coding, known)
            self._count(question, answer, self.store.queries - queries)
            assert answer.headers == expected.headers, question
            if answer.status == 304:
                assert answer.etag in known
                assert self.bodies[answer.etag] == expected.body, question
            else:
                assert (answer.status, answer.body) == (expected.status, expected.body), question

    def check_after(self, step: Callable[[], None]) -> None:
        """Let something be written, and look at what there is then."""
        step()
        self.look(6)
        self.look_at_prices()

    def look_at_prices(self) -> None:
        """Compare some pages with what was written, value by value."""
        prices = {name: [(at, usd) for at, (_, usd) in seen.items()] for name, seen in self.prices.items()}
        pages = Pages(self.caching.client, oracle.Oracle(prices), self.random)
        pages.check(self.questions.first, self.now + DAY)
        # Where something was written just now.
        about = self.random.choice(self.questions.touched)
        pages.check(about - DAY, about)

    def _noted(self, question: Question, answer: Answer) -> Answer:
        """An answer of whose ETag there is no other body."""
        if answer.status == 200:
            assert self.bodies.setdefault(answer.etag, answer.body) == answer.body, question
        return answer

    def _count(self, question: Question, answer: Answer, queries: Counter[str]) -> None:
        """Note where an answer came from that is asked for the first time since something was written."""
        self.seen[str(answer.status)] += 1
        again, _ = question in self.fresh, self.fresh.add(question)
        if answer.status == 200 and not again:
            if question.is_history and b'"v":"' in answer.body:
                from_store = any(name.startswith("page_rows") for name in queries)
                self.seen["page from store" if from_store else "page from memory"] += 1
            elif "/users/" in question.path:
                self.seen["position from store" if queries["position_items"] else "position from memory"] += 1


def instant(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)


def simulated(second: int) -> Observations:
    """What the simulated protocol's prices are."""
    return {price.asset_id: [(second, price.usd)] for price in SOURCE.prices(instant(second))}


@pytest.fixture
def world(
    settings: Settings, store: Store, tmp_path: Path, draw: random.Random, request: pytest.FixtureRequest
) -> Iterator[World]:
    limits = replace(settings, history_memory=request.param, answer_memory=request.param)
    world = World(limits, tmp_path, draw)
    yield world
    world.close()


# In four megabytes what is kept has to make room all the time.
@pytest.mark.parametrize("world", [128, 4], indirect=True)
def test_what_is_kept_is_what_is_there(world: World, caplog: pytest.LogCaptureFixture) -> None:
    counts = {
        world.tick: 3,
        world.observe: 2,
        world.import_prices: 3,
        world.import_rates: 1,
        world.backfill: 2,
        world.late: 3,
        world.die: 1,
    }
    steps = [step for step, count in counts.items() for _ in range(count)]
    caplog.set_level(logging.ERROR)
    world.look(10)
    for step in world.random.sample(steps, len(steps)):
        world.check_after(step)
    # All of it has been looked at; where chance left something out, it is given a few more.
    sources = ("page from memory", "page from store", "position from memory", "304", "200")
    sought = {*sources, ("during a rewriting", 200), ("during a rewriting", 503)}
    for _ in range(60):
        if sought <= {*world.seen}:
            break
        world.check_after(world.random.choice(steps))
    assert sought <= {*world.seen}, world.seen
    assert not caplog.records
