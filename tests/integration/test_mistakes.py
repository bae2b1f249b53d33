"""Mistakes of each kind, made once and corrected beside running jobs, leave what a store without them shows."""

import random
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path

import pytest

from analytics_service.cli.context import waiting_for_store
from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.market.instants import DAY, HOUR
from jobs.registry import JOBS
from tests.doubles import FreshHeads
from tests.integration.databases import database, make_views
from tests.integration.everything import Asked, answers, differences, everything
from tests.integration.interrupted import Moment, Writer
from tests.integration.lending import AGE, ASSETS, ETH, ORB, PTK, USDC, Lending, lend_apr, usd
from tests.integration.routes import client_of
from tests.integration.steps import Again, Ahead, Backfill, End, Import, Recompute, Remove, Step, Tick

PAST = ("markets", "loans", "ptoken")
# An asset that files have, and no source lists.
OLD = "native;OLD"
# Writes up to the one that a killed process does not get to, and corrections of which a process is killed.
WRITES, KILLS = range(1, 30), 8
Row = tuple[str, int, Decimal]


@dataclass(frozen=True)
class Story:
    """Files have some `days` up to the second `live`, when jobs begin, with `step` seconds between rows.

    Each mistake has days of its own, because what is computed again follows from all that is stored then.
    """

    folder: Path
    live: int
    days: int
    step: int

    @property
    def source(self) -> Lending:
        return Lending(self.live)

    @property
    def past(self) -> range:
        return self.between(self.days, 0)

    def between(self, first: int, last: int) -> range:
        """The seconds of rows from the beginning of a day to that of another, counted back from `live`."""
        begin, end = ((self.live - days * DAY) // DAY * DAY for days in (first, last))
        return range(begin, end, self.step)

    @property
    def doubled(self) -> range:
        return self.between(5, 4)

    @property
    def unquoted(self) -> range:
        """When nobody quoted the protocol's token."""
        return self.between(2, 1)

    def prices(self, seconds: range, *ids: str) -> dict[tuple[str, int], Decimal]:
        return {(of, at): usd(of, at) for at in seconds for of in ids or (ETH, USDC, ORB, PTK)}

    def right_prices(self) -> dict[tuple[str, int], Decimal]:
        rows = self.prices(self.past) | {(OLD, at): Decimal(at % 97) for at in self.past}
        return {row: value for row, value in rows.items() if row[0] != PTK or row[1] not in self.unquoted}

    def file(self, name: str, rows: Mapping[tuple[str, int], Decimal]) -> Import:
        """An import of rows."""
        path = self.folder / f"{name}-{len([*self.folder.iterdir()])}.csv"
        path.write_text("asset,time,value\n" + "".join(f"{of},{at},{value}\n" for (of, at), value in rows.items()))
        tokens = (asset for asset in ASSETS if asset.group == "token")
        lines = (f"{asset.symbol},{asset.group_key},{asset.decimals_denom}\n" for asset in tokens)
        path.with_name("assets.csv").write_text("symbol,address,decimals\n" + "".join(lines))
        return Import(path, name)

    def loans(self) -> Import:
        """What was lent before the source's first event."""
        return self.file(
            "loans-originated", {(ETH, self.live - AGE - days * DAY): Decimal(10 - days) for days in (2, 1)}
        )

    def rates(self) -> Import:
        return self.file("lend-rate", {(of, at): lend_apr(of, at) for at in self.past for of in (ETH, ORB)})


@dataclass
class Scheduler:
    """Runs jobs every ten seconds, and remembers which have taken a snapshot."""

    story: Story
    store: Store
    next: int
    taken: list[Tick] = field(default_factory=list)

    def take(self, source: Lending, names: Sequence[str] = tuple(JOBS)) -> None:
        taken = Tick(source, self.next, names)(self.store)
        self.taken.append(Tick(self.story.source, self.next, taken))
        self.next += 10

    @contextmanager
    def beside(self, names: Sequence[str]) -> Iterator[None]:
        """Run jobs beside the block."""
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(self.take, self.story.source, names)
            yield
            running.result()


def the_truth(story: Story, ticks: Sequence[Tick]) -> Iterator[Step]:
    """A store that was fed the truth from the start."""
    yield Tick(story.source, story.past[0], ("prices", "positions"))
    yield story.file("price", story.right_prices())
    yield story.rates()
    yield story.loans()
    for name in PAST:
        yield Backfill(name, story.source, range(story.past[0] + DAY, story.live, DAY))
    yield from ticks


def with_mistakes(story: Story, scheduler: Scheduler) -> Iterator[Step]:
    """The same store with mistakes."""
    rows = story.right_prices()
    rows |= {row: 2 * value for row, value in story.prices(story.doubled, ETH).items()}
    rows |= story.prices(story.unquoted, PTK)
    too_high, too_large = replace(story.source, quoted={ETH: Decimal(2)}), replace(story.source, size=3)
    yield Tick(story.source, story.past[0], ("prices", "positions"))
    yield story.file("price", rows)
    yield story.rates()
    for name in PAST:
        yield Backfill(name, story.source, range(story.past[0] + DAY, story.doubled.start, DAY))
        yield Backfill(name, too_high, range(story.doubled.start, story.doubled.stop, DAY))
        yield Backfill(name, story.source, range(story.doubled.stop, story.live, DAY))
    for source in (story.source, too_high, too_large, story.source):
        yield lambda store, source=source: scheduler.take(source)  # type: ignore[misc]
    yield End(OLD, story.past[1])


def the_corrections(story: Story, dice: random.Random, ahead_of: Sequence[str]) -> Sequence[Step]:
    """What takes each mistake back, in random order. The clocks of the jobs `ahead_of` ran ahead."""
    second, third, ahead = story.live + 10, story.live + 20, int(time.time()) + HOUR
    doubled, unquoted = story.doubled, story.unquoted
    corrections: list[Sequence[Step]] = [
        # Prices of a file, and of the oracle at that time, were twice as high.
        [story.file("price", story.prices(doubled, ETH)), Recompute(doubled.start, doubled.stop)],
        # So were those of a snapshot.
        [story.file("price", story.prices(range(second, third, 10), ETH)), Recompute(second, second + 1)],
        # A snapshot was of another market.
        [Again(name, story.source, third, third + 1) for name in ("markets", "ptoken")],
        # Nobody quoted the protocol's token on some days.
        [Remove(story.folder, "price", unquoted.start, unquoted.stop, [PTK])],
        # An asset did not end.
        [End(OLD, None)],
        # Loans from before the source began come after its own.
        [story.loans(), Recompute(story.live - AGE - 2 * DAY, story.past[-1] + 1, ("loans",))],
    ]
    for name in ahead_of:
        # A clock ran ahead.
        corrections.append([Ahead(name, story.source, ahead), Remove(story.folder, name, ahead, ahead + 1)])
    dice.shuffle(corrections)
    return [step for steps in corrections for step in steps]


def correct(store: Store, settings: Settings, step: Step, kill: Moment | None) -> None:
    """Do a step; before that, let a process begin it that kills itself at a moment."""
    if kill is not None:
        with Writer(settings, step, kill, signal.SIGKILL) as writer:
            writer.wait_for_signal()
            writer.bury()
    step(store)


@pytest.mark.parametrize(("seed", "days", "step"), [(1, 7, 12 * HOUR), (2, 62, HOUR), (3, 62, HOUR)])
@pytest.mark.slow
def test_a_corrected_store_shows_the_truth(server: Settings, tmp_path: Path, seed: int, days: int, step: int) -> None:
    """In any order, beside jobs and a service, and with some corrections begun by processes that are killed.

    In 62 days there is a whole month. By seed, the clocks of other jobs ran ahead, and another moment is asked for.
    """
    dice, now, patience = random.Random(seed), int(time.time()), waiting_for_store(server)
    story = Story(tmp_path, now // HOUR * HOUR - HOUR, days, step)
    wrong, true = (replace(patience, clickhouse_database=f"test_{name}_{seed}") for name in ("wrong", "true"))
    moments = [(story.doubled.start + HOUR, story.live + 15)[seed % 2]]
    asked = Asked(now, moments, {"d": (story.past[0], now), "min": (story.live - HOUR, now)})
    with database(wrong) as store, database(true) as other:
        for each in (store, other):
            make_views(each)
        scheduler = Scheduler(story, store, story.live)
        for act in with_mistakes(story, scheduler):
            act(store)
        service = client_of(wrong, Store(wrong), now, FreshHeads)
        steps = the_corrections(story, dice, [*JOBS][seed % 3 :: 3])
        killed = set(dice.sample(range(len(steps)), KILLS))
        for number, act in enumerate(steps):
            if number == len(steps) // 2:
                answers(service, asked)
            with scheduler.beside([dice.choice([*JOBS])]):
                correct(store, wrong, act, Moment(count=dice.choice(WRITES)) if number in killed else None)
        scheduler.take(story.source)
        for act in the_truth(story, scheduler.taken):
            act(other)
        truth = everything(true, asked)
        assert differences(everything(wrong, asked), truth) == []
        answered = answers(service, asked)
        assert differences(answered, {name: truth[name] for name in answered}) == []
