"""A service with full caches answers like one without any, whatever is written and whenever."""

import logging
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.queries import Placeholders
from analytics_service.config.settings import Settings
from analytics_service.errors import StoreUnavailable
from analytics_service.market.assets import Asset
from analytics_service.market.instants import multiples_between, unix_second
from analytics_service.market.prices import Price
from analytics_service.store import ledger
from analytics_service.store.commits import Appended, Commit, Provenance, begin, commit
from analytics_service.store.datasets import histories
from analytics_service.store.datasets.observations import price_frame
from analytics_service.store.ledger import Origin
from jobs.prices import definitions
from jobs.registry import JOBS, Job
from jobs.runner import backfill, take_snapshot
from jobs.snapshot import JobContext
from tests import oracle
from tests.integration.cached import Answer, Clock, Counted, Question, Questions, Service, with_room, without_memory
from tests.integration.imports import Progress, asked, import_files, prices_file
from tests.integration.lending import Lending
from tests.integration.pages import Observations, Pages, asset

DAY, HOUR, MINUTE = 86_400, 3600, 60
# Three hours before a block of history ends, at 2025-02-19 16:00 UTC.
BEGIN = 1_739_980_800 - 3 * HOUR
CODINGS = ("identity", "gzip")


@dataclass(frozen=True)
class Small(Lending):
    """A protocol of five assets and three users, and the assets that runs have brought. What is not listed any more
    ends."""

    brought: list[Asset] = field(default_factory=list)

    def assets(self, at: datetime) -> list[Asset]:
        """The same assets, and those that runs have brought."""
        return [*super().assets(at), *self.brought]


class Writer(Store):
    """A store that calls a hook before its writes, so that tests can read in the middle of a run. The hook is told
    whether the run is one that stages its rows, and has not announced them."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.announced = False
        self.crashes = False
        self.before_write: Callable[[bool], None] = lambda staged: None

    def run(self, query: str, parts: Placeholders = (), **parameters: object) -> None:
        """Execute a named statement, such as an announcement."""
        super().run(query, parts, **parameters)
        if query == "announce_rewrite":
            self.announced = not parameters["finished"]

    def insert(self, table: str, rows: pl.DataFrame) -> None:
        """Write rows: staged ones, or that a rewrite is in place."""
        super().insert(table, rows)
        if table == "rewrite":
            self.announced = not rows["finished"][0]

    def insert_if(self, table: str, rows: pl.DataFrame, condition: str, **parameters: object) -> bool:
        """Write rows of a run that nobody has overtaken."""
        self.before_write(False)
        if self.crashes and table == "snapshot":
            raise StoreUnavailable("The writer has crashed.")
        return super().insert_if(table, rows, condition, **parameters)

    def execute(self, statement: str, *, in_database: bool = True) -> None:
        """Run a statement, which stages rows before the announcement, or puts them in place after it."""
        self.before_write(not self.announced)
        super().execute(statement, in_database=in_database)


@dataclass
class Scenario:
    """A database that is written in every possible way, two services that read it, and the prices it should hold."""

    settings: Settings
    source: Small
    days: int
    folder: Path
    random: random.Random
    clock: Clock = field(default_factory=Clock)
    now: int = BEGIN
    # By asset and second: the greatest version and its price. Rows of a crashed run that are later than the newest
    # completed run wait in `unseen`.
    prices: dict[str, dict[int, tuple[int, Decimal]]] = field(default_factory=dict)
    unseen: list[tuple[str, int, Decimal, int]] = field(default_factory=list)
    reserved: list[int] = field(default_factory=list)
    last_version: int = 0
    seen: Counter[object] = field(default_factory=Counter)
    # Bodies of all answers by ETag.
    bodies: dict[str, bytes] = field(default_factory=dict)
    # Questions that were asked since the last write; and answers from before the run that is writing now.
    fresh: set[Question] = field(default_factory=set)
    before: list[tuple[Question, Answer]] = field(default_factory=list)
    # Whether something was read since the run that is writing now was announced.
    has_read: bool = False

    def __post_init__(self) -> None:
        self.writer = Writer(self.settings)
        self.plain_store = Store(self.settings)
        self.store = Counted(self.settings)
        addresses = [position.address for position in self.source.positions(instant(BEGIN))]
        self.first = BEGIN - self.days * DAY
        self.questions = Questions(self.random, self.first, self.now, BEGIN, [*addresses, "0x" + "9" * 40])
        # Whatever price is written, the candle of its day is another.
        days = f"start={self.first}&end={BEGIN + 30 * DAY}&period=d&limit=1000&agg=ohlc"
        self.candles = Question("/api/v1/assets/price-history", days)
        self._begin()
        self.questions.assets = [*self.prices]
        self.caching = self._started()

    def _started(self) -> Service:
        """A service with histories in memory."""
        service = Service(self.settings, self.store, self.clock, BEGIN)
        service.get(self.candles)
        service.wait_for_loaders()
        return service

    def close(self) -> None:
        self.caching.wait_for_loaders()
        for store in (self.writer, self.plain_store, self.store):
            store.close()

    def plain(self) -> Service:
        """A service that has just started and has no caches."""
        return Service(without_memory(self.settings), self.plain_store, self.clock, BEGIN)

    # Ways to write.

    def _begin(self) -> None:
        self._observe(
            {
                "token;hours": self._walk(self.first + self._part(8), self.now, HOUR, 0.8),
                "token;days": self._walk(self.first + self._part(30), self.now - self._part(15), DAY, 0.7),
                "token;minutes": self._walk(self.now - self.days * 10 * MINUTE, self.now, MINUTE, 0.5),
                "token;rare": self._walk(self.first, self.now, self._part(12), 0.9),
            }
        )
        for name in ("rates", "loans"):
            self._backfill(JOBS[name], self.now - self._part(7), self.now - self._part(60), self._part(35))
        for job in JOBS.values():
            self._tick(job)
        self.reserved.append(self._version())

    def tick(self) -> None:
        """Run some scheduled jobs."""
        self.now += self.random.choice([MINUTE, self.random.randint(3 * HOUR, 12 * HOUR)])
        jobs = {*self.random.sample([*JOBS], self.random.randint(1, 2)), "prices", "positions"}
        for job in self.random.sample([JOBS[name] for name in sorted(jobs)], len(jobs)):
            self._write(lambda job=job: self._tick(job))  # type: ignore[misc]

    def observe(self) -> None:
        """A run at the end of history, sometimes with a new asset."""
        self.now += self.random.randint(1, HOUR)
        self._write(lambda: self._observe(self._newest()))

    def crash(self) -> None:
        """The same with a new asset, by a run that crashes before it is complete; then start another worker."""
        self.now += self.random.randint(1, HOUR)
        rows = self._newest() | {f"token;never{self.now}": [(self.now, self._price())]}
        self.writer.crashes = True
        with suppress(StoreUnavailable):
            self._write(lambda: self._observe(rows))
        self.writer.crashes = False
        self.caching.wait_for_loaders()
        self.caching = self._started()

    def late(self) -> None:
        """A run that begins before others and ends after them: their greater versions win. It brings no asset, which
        would end with the instant of the run."""
        version = self.reserved.pop(self.random.randrange(len(self.reserved)))
        self.reserved.append(self._version())
        self._write(lambda: self._observe(self._corrections([]), version))

    def backfill(self) -> None:
        """Backfill some missing snapshots of a job."""
        job = self.random.choice([*JOBS.values()])
        end = self.now - self.random.choice([HOUR, self.random.randint(HOUR, self._part(7))])
        every = self.random.choice([20 * MINUTE, 4 * HOUR])
        self._write(lambda: self._backfill(job, end - 3 * every, end, every))

    def import_prices(self) -> None:
        """Import a file that corrects history, adds to either end, fills gaps, or brings an asset."""
        rows = self._newest() if self.random.random() < 0.2 else self._corrections(self._new())
        assets = self.folder / "assets.csv"
        names = [name.partition(";")[2] for name in rows if name not in self.prices]
        assets.write_text("symbol,address,decimals\n" + "".join(f"{name},{name},6\n" for name in ["spare", *names]))
        lines = [(name, second, f"{price:f}") for name, seen in rows.items() for second, price in seen]
        file = prices_file(self.folder, self.random.sample(lines, len(lines)))
        now = instant(self.now)

        def act() -> None:
            version = self._version()
            import_files(self.writer, asked(histories.PRICES, file, assets=assets), now, Progress())
            self._remember(rows, version)

        self._write(act)

    def import_rates(self) -> None:
        """Import a file of rates, which may bring an asset too."""
        draw, assets = self.random, self.folder / "assets.csv"
        names = ("0xrates", f"0xrates{draw.randrange(1000)}")
        assets.write_text("symbol,address,decimals\n" + "".join(f"{name},{name},6\n" for name in names))
        lines = [f"{self._second()},{name},{draw.random()}\n" for name in names for _ in range(draw.randint(1, 20))]
        file = self.folder / "rates.csv"
        file.write_text("time,asset,value\n" + "".join(lines))
        self._write(
            lambda: import_files(
                self.writer, asked(histories.LEND_RATES, file, assets=assets), instant(self.now), Progress()
            )
        )

    def _tick(self, job: Job) -> None:
        # A run may be interrupted by one of a later second.
        second, version = self.now, self._version()
        take_snapshot(job, self.source, self.writer, instant(second))
        if job.name == "prices":
            self._remember(self._stated(second), version)

    def _backfill(self, job: Job, start: int, end: int, every: int) -> None:
        instants = multiples_between(instant(start), instant(end + 1), timedelta(seconds=every))
        there = begin(self.writer, job.dataset, start, end + 1).completed
        version = self._version()
        backfill(job, self.source, self.writer, instants)
        if job.name == "prices":
            for second in map(unix_second, instants):
                if second not in there:
                    self._remember(self._stated(second), version)

    def _observe(self, rows: Observations, version: int | None = None) -> None:
        prices = [Price(name, instant(at), price) for name, seen in rows.items() for at, price in seen]
        known = {one.id for one in self.source.assets(instant(0))}
        new = [asset(name.partition(";")[2]) for name in rows if name not in known]
        last = max(at for seen in rows.values() for at, _ in seen)
        beginning = begin(self.writer, "prices", last - DAY, last + 1)
        beginning = replace(beginning, version=version or beginning.version)
        # Other runs may be complete for the same second.
        at = next(at for at in range(last, 0, -1) if at not in beginning.completed)
        batch = JobContext("prices", self.source, self.writer, [instant(at)], beginning.present)
        listing = (instant(at), [*self.source.assets(instant(at)), *new])
        changes = Commit([Appended(instant(at), price_frame(prices))], definitions(batch, [listing]))
        self._remember(rows, beginning.version, unseen=True)
        commit(self.writer, changes, Provenance("backfill" if version else "job", Origin(self.source.spec)), beginning)
        self.source.brought.extend(new)
        self._reveal(last)

    # Rows to write.

    def _part(self, divisor: int) -> int:
        """A part of the history, in seconds."""
        return self.days * DAY // divisor

    def _stated(self, second: int) -> Observations:
        """The prices that the source states at a second."""
        return {price.asset_id: [(second, price.usd)] for price in self.source.prices(instant(second))}

    def _walk(self, first: int, last: int, step: int, chance: float) -> list[tuple[int, Decimal]]:
        draw = self.random
        seconds = [at + draw.randrange(step) for at in range(first, last, step) if draw.random() < chance]
        return [(min(second, last), self._price()) for second in seconds]

    def _price(self) -> Decimal:
        return Decimal(self.random.randint(0, 10**12)).scaleb(-self.random.randint(0, 18))

    def _second(self) -> int:
        """An instant of the past, up to an hour ago or at any time of the history."""
        whole = self._part(1)
        return self.now - self.random.randint(0, self.random.choice([HOUR, whole // 5, whole, whole]))

    def _newest(self) -> Observations:
        names = self.random.sample([*self.prices], self.random.randint(1, 3)) + self._new()
        return {name: [(self.now, self._price())] for name in names}

    def _corrections(self, new: list[str]) -> Observations:
        """Other prices for seconds that have one, and new prices for seconds that have none."""
        draw = self.random
        about = self._second()
        names = draw.sample([*self.prices], draw.randint(1, 3))
        there = {
            name: [at for at in self.prices[name] if abs(at - about) < draw.choice([HOUR, 3 * DAY])] for name in names
        }
        found = {name: draw.sample(seconds, min(len(seconds), draw.randint(0, 30))) for name, seconds in there.items()}
        for name in names[:1] + new:
            found.setdefault(name, []).extend(min(about + k * draw.randint(1, HOUR), self.now) for k in range(3))
        return {name: [(at, self._price()) for at in {*seconds}] for name, seconds in found.items() if seconds}

    def _new(self) -> list[str]:
        return [f"token;new{self.random.randrange(10**6)}"] if self.random.random() < 0.3 else []

    def _version(self) -> int:
        self.last_version = max(self.last_version + 1, ledger.new_version(self.plain_store))
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

    # Readers.

    def _write(self, act: Callable[[], object]) -> None:
        """Let `act` write, and sometimes read in the middle of it."""
        self.before = []
        self.has_read = False
        self.writer.before_write = self._read_during_write
        try:
            act()
        finally:
            self.writer.before_write = lambda staged: None
            self._written()

    def _written(self) -> None:
        self.clock.advance(self.random.choice([1, 1, 5]))
        self.fresh.clear()
        self.questions.last = self.now
        if self.random.random() < 0.5:
            self.caching.wait_for_loaders()

    def _look_before(self) -> None:
        """Ask for what a rewrite must not change until it is complete. Only one of the services keeps its answers."""
        plain = self.plain()
        self.before = [(one, plain.get(one)) for one in (self.questions.draw() for _ in range(2))]
        self.caching.get(self.before[0][0])

    def _read_during_write(self, staged: bool) -> None:
        """During a run, readers see the state before it, or get a 503 once it has been announced."""
        is_first = not self.has_read if self.writer.announced else staged and not self.before
        if not is_first and self.random.random() < 0.9:
            return
        self.writer.before_write = lambda staged: None
        self.clock.advance(1)
        if self.writer.announced:
            self.has_read = True
            # The first has an answer to the first question.
            for (question, before), service in zip(self.before, (self.caching, self.plain()), strict=False):
                # Nothing can be read until the writer, which waits for this answer, has gone on.
                answer = service.get(question, seconds=0.2)
                assert answer.status == 503 or answer == before, question
                self.seen["during a rewrite", answer.status] += 1
        else:
            if is_first and self.random.random() < 0.3:
                self.now += MINUTE
                # Where the run that is interrupted is to crash, this one is not.
                crashes, self.writer.crashes = self.writer.crashes, False
                self._tick(JOBS["prices"])
                self.writer.crashes = crashes
                self._written()
            if is_first:
                self._look_before()
            self.look(1)
        self.writer.before_write = self._read_during_write

    def look(self, times: int) -> None:
        """Ask both services the same questions."""
        self.compare([self.questions.draw() for _ in range(times)])

    def compare(self, questions: Sequence[Question]) -> None:
        """Ask both services these questions."""
        plain = self.plain()
        for question in questions:
            coding = self.random.choice(CODINGS)
            expected = self._noted(question, plain.get(question, coding))
            known = self.random.sample([*self.bodies], min(len(self.bodies), self.random.randint(0, 5)))
            if self.random.random() < 0.2:
                known.append(expected.etag)
            self.caching.heads.shown()
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
        """Let something be written, and look at what there is then: at what was asked before, and at something else."""
        before = [self.questions.asked[-1], self.candles]
        step()
        self.compare([*before, self.questions.draw(), self.questions.draw()])
        self.look_at_prices()

    def look_at_prices(self) -> None:
        """Compare some pages with what was written, value by value."""
        prices = {name: [(at, usd) for at, (_, usd) in seen.items()] for name, seen in self.prices.items()}
        pages = Pages(self.caching.client, oracle.Oracle(prices), self.random)
        pages.check(self.questions.first, self.now + DAY)
        # Around a second that was just written.
        about = self.random.choice(self.questions.touched)
        pages.check(about - DAY, about)

    def _noted(self, question: Question, answer: Answer) -> Answer:
        """The answer, after checking that no other body has its ETag."""
        if answer.status == 200:
            assert self.bodies.setdefault(answer.etag, answer.body) == answer.body, question
        return answer

    def _count(self, question: Question, answer: Answer, queries: Counter[str]) -> None:
        """Count where the first answer to a question since the last write came from."""
        self.seen[str(answer.status)] += 1
        again, _ = question in self.fresh, self.fresh.add(question)
        if answer.status == 200 and not again and question.is_history and b'"v":"' in answer.body:
            from_store = any(name in ("summarize_buckets", "read_last_rows") for name in queries)
            self.seen["page from store" if from_store else "page from memory"] += 1


def instant(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)


@pytest.fixture
def scenario(
    settings: Settings, store: Store, tmp_path: Path, draw: random.Random, request: pytest.FixtureRequest
) -> Iterator[Scenario]:
    days, room = request.param
    scenario = Scenario(with_room(settings, room), Small(BEGIN - HOUR), days, tmp_path, draw)
    yield scenario
    scenario.close()


# With little room, caches evict all the time.
@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param((14, 1), id="small"),
        pytest.param((300, 4), id="large", marks=pytest.mark.slow),
        pytest.param((300, 128), id="large with room", marks=pytest.mark.slow),
    ],
    indirect=True,
)
def test_caches_change_no_answer(scenario: Scenario, caplog: pytest.LogCaptureFixture) -> None:
    steps = [
        scenario.tick,
        scenario.observe,
        scenario.import_prices,
        scenario.import_rates,
        scenario.backfill,
        scenario.late,
        scenario.crash,
    ]
    caplog.set_level(logging.ERROR)
    scenario.look(4)
    # In a small world one of them, another in every run; in a large one all.
    for step in scenario.random.sample(steps, 1 if scenario.days < 100 else len(steps)):
        scenario.check_after(step)
    # Every case must occur; where chance left one out, there is a little more.
    pages, rewrites = {"page from memory", "page from store", "304", "200"}, {("during a rewrite", 200)}
    rewrites.add(("during a rewrite", 503))
    for _ in range(20):
        if not rewrites <= {*scenario.seen}:
            scenario.check_after(scenario.import_prices)
    for _ in range(20):
        if not pages <= {*scenario.seen}:
            scenario.caching.wait_for_loaders()
            scenario.look(4)
    sought = pages | rewrites
    assert sought <= {*scenario.seen}, scenario.seen
    assert not caplog.records
