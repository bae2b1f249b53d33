"""Workers serve history while it is rewritten: each page shows the state before or after, never a mix.

That holds, too, when the process that rewrites is killed or stopped right after it has announced that it will.
"""

import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from analytics_service.config.settings import Settings
from analytics_service.embedded.clickhouse import attached
from tests import clickhouse
from tests.acceptance.conftest import Service, kill, stop
from tests.processes import children, command_line, slack, state, until

HOUR, DAY = 3600, 86_400
FIRST, LAST = (int(datetime(2025, month, day, tzinfo=UTC).timestamp()) for month, day in ((1, 1), (12, 31)))
ADDRESSES = ("0xa", "0xb", "0xc", "0xd")
IDS = [f"token;{address}" for address in ADDRESSES]
# Also zones that are half or a quarter of an hour off.
ZONES = ("UTC", "UTC", "America/New_York", "Asia/Kolkata", "Asia/Kathmandu", "Australia/Lord_Howe")
READERS = 6
# Pauses between the requests of a reader, so that readers leave time to the writer.
BREATH = 0.1
# Added to prices by each correction. It is greater than all prices of the first file.
CORRECTION = 1000
# Every worker shows what was written at least that many seconds ago: workers look at the ledger every second.
VISIBLE_SECONDS = 2.25
# Weeks that have one price of a source of each asset only, until they are backfilled.
GAP, GAP_END = (int(datetime(2025, 9, day, tzinfo=UTC).timestamp()) for day in (5, 25))
WHOLE_SECONDS = 10.0
# One that waited for a writer which is silent would take three seconds.
PROMPT_SECONDS = 1.0
RATES = (
    "asset_address,timestamp,symbol,decimals,borrowing_enabled,current_liquidity_rate,current_variable_borrow_rate\n"
)
_LAST_DAYS = f"start={LAST - 150 * HOUR}&end={LAST}&period=h&limit=200"
PRICES_PAGE = f"/api/v1/assets/price-history?{_LAST_DAYS}&asset_ids={','.join(IDS)}"
RATES_PAGE = f"/api/v1/markets/lend/rate-history?{_LAST_DAYS}"
# A path, and a function of its JSON that says whether its values are from after the rewrite.
Draw = Callable[[random.Random], tuple[str, Callable[[Any], set[bool]]]]


@dataclass(frozen=True)
class Read:
    """An answer: when its request began and ended (monotonic seconds), and whether its values are from after."""

    path: str
    begun: float
    ended: float
    status: int
    after: frozenset[bool]


@dataclass
class Readers:
    """Threads that send requests one after another, each on a new connection, so that any worker may answer."""

    service: Service
    draw: Draw
    reads: list[Read] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    def ask(self, seed: int) -> None:
        dice = random.Random(seed)
        while not self.stopped.is_set():
            path, is_after = self.draw(dice)
            begun = time.monotonic()
            status, body = self.service.get(path)
            after = frozenset(is_after(body["data"]) if status == 200 else ())
            self.reads.append(Read(path, begun, time.monotonic(), status, after))
            time.sleep(BREATH)

    def read_more(self, count: int) -> None:
        """Return after this many more answers."""
        wanted = len(self.reads) + count
        until(lambda: len(self.reads) >= wanted)


@contextmanager
def readers(service: Service, draw: Draw) -> Iterator[Readers]:
    """Readers that send requests for the duration of the block."""
    running = Readers(service, draw)
    threads = [threading.Thread(target=running.ask, args=(seed,)) for seed in range(READERS)]
    for thread in threads:
        thread.start()
    try:
        yield running
    finally:
        running.stopped.set()
        for thread in threads:
            thread.join()


def wait_until_visible(written: float) -> float:
    """Return once all workers must show what was written by a monotonic second; since when they must."""
    shown = written + VISIBLE_SECONDS * slack()
    until(lambda: time.monotonic() > shown)
    return shown


def rewritten(service: Service, draw: Draw, *command: str) -> None:
    """Let a command rewrite history while it is read, and check every answer."""
    wait_until_visible(time.monotonic())
    with readers(service, draw) as running:
        running.read_more(100)
        begun = time.monotonic()
        code, output = service.done(*command)
        ended = time.monotonic()
        assert code == 0, output
        shown = wait_until_visible(ended)
        running.read_more(150)
    reads = running.reads
    failed = [read for read in reads if read.status != 200]
    assert not failed, failed[:3]
    mixed = [read for read in reads if len(read.after) > 1]
    assert not mixed, mixed[:3]
    conclusive = [read for read in reads if read.after]
    before = [read for read in conclusive if read.ended < begun]
    during = [read for read in conclusive if read.ended > begun and read.begun < ended]
    after = [read for read in conclusive if read.begun > shown]
    early = [read for read in before if True in read.after]
    assert not early, early[:3]
    stale = [(read.path, read.begun - ended) for read in after if False in read.after]
    assert not stale, (len(stale), len(after), stale[:3])
    assert min(len(before), len(after)) >= 50, (len(before), len(during), len(after))
    assert len(during) >= 2 * READERS, (len(before), len(during), len(after))
    # Most pages were new to the worker.
    assert len({read.path for read in reads}) > len(reads) / 2


def some_page(dice: random.Random, first: int, last: int, ids: list[str], **more: str) -> str:
    """A page of hours or days that begins in a range."""
    period = dice.choice("hd")
    start = dice.randint(first, last)
    query = {
        "start": start,
        "end": min(last, start + dice.randint(HOUR, 150 * (HOUR if period == "h" else DAY))),
        "period": period,
        "tz": dice.choice(ZONES),
        "limit": 150,
    }
    chosen = dice.sample(ids, dice.randint(1, len(ids)))
    query |= {"asset_ids": ",".join(chosen)} if dice.random() < 0.5 or more else {}
    return f"/api/v1/assets/price-history?{urlencode(query | more)}"


def price_file(folder: Path, more: int) -> Path:
    """A year of hourly prices that differ from asset to asset and from hour to hour."""
    path = folder / f"prices{more}.csv"
    rows = [
        f"token;{address},{second},{more + 100 * n + second // HOUR % 89}\n"
        for n, address in enumerate(ADDRESSES)
        for second in range(FIRST, LAST + 1, HOUR)
    ]
    path.write_text("asset_id,ts,price\n" + "".join(rows))
    return path


def worker_pids(up: int) -> list[int]:
    """The processes of gunicorn that answer requests."""
    masters = [pid for pid in children(up) if "gunicorn" in command_line(pid)]
    return sorted(worker for master in masters for worker in children(master))


def cpu_ticks(pid: int) -> int:
    """The processor time that a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


class Corrections:
    """Imports of corrected prices into a service with four workers and no jobs, each by more than the one before."""

    def __init__(self, service: Service, up: int, folder: Path) -> None:
        self.service = service
        self.up = up
        self.level = 0
        """The number of the last correction."""
        self._folder = folder
        reached = attached(Settings(data_dir=service.data_dir))
        assert reached is not None
        self._settings = reached

    def next(self) -> tuple[str, str, str]:
        """The command that imports the next correction."""
        self.level += 1
        return "import", "prices", str(price_file(self._folder, self.level * CORRECTION))

    def shown(self) -> set[int]:
        """Which corrections a page of prices shows."""
        status, body = self.service.get(PRICES_PAGE)
        assert status == 200, body
        return {level_of(point["v"]) for series in body["data"]["series"] for point in series["points"]}

    def interrupted(self, sent: signal.Signals) -> "subprocess.Popen[str]":
        """An import that got a signal between its announcement and its end. If one was faster, another is begun."""
        while True:
            command = self.next()
            with clickhouse.client(self._settings) as client:

                def announced() -> int:
                    return int(client.query("SELECT uniqExact(version) FROM rewrite").first_row[0])

                before = announced()
                process = self.service.command(*command)
                while announced() == before and process.poll() is None:
                    pass
                process.send_signal(sent)
                if sent == signal.SIGKILL:
                    process.wait()
                else:
                    until(lambda process=process: state(process.pid) in ("T", "Z"))
                # It sends no heartbeats any more, so what is open now is so for three seconds.
                if self.open():
                    return process
                process.send_signal(signal.SIGCONT)
                process.wait()
                self.wait_until_whole()

    def open(self) -> int:
        """How many rewrites are under way."""
        sql = "SELECT count() FROM (SELECT version FROM rewrite GROUP BY version HAVING max(finished) = 0)"
        with clickhouse.client(self._settings) as client:
            return int(client.query(sql).first_row[0])

    def wait_until_whole(self) -> None:
        """Return when all workers show the last correction."""
        until(lambda: all(self.shown() == {self.level} for _ in range(16)), WHOLE_SECONDS * slack())


def level_of(price: str) -> int:
    """The number of the correction that a price is from."""
    return int(float(price)) // CORRECTION


@pytest.fixture(scope="module")
def corrections(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corrections]:
    """A service that has a year of prices, and rates."""
    folder = tmp_path_factory.mktemp("rewritten")
    assets, rates = folder / "assets.csv", folder / "rates.csv"
    assets.write_text("symbol,address,decimals\n" + "".join(f"{address},{address},6\n" for address in ADDRESSES))
    days = range(FIRST, LAST, DAY)
    lines = [f"{address},{second},{address},6,true,0.5,0.6\n" for address in ADDRESSES for second in days]
    rates.write_text(RATES + "".join(lines))
    service = Service(folder / "data", source="none", workers=4)
    try:
        process = service.up()
        for family, path in (("prices", price_file(folder, 0)), ("rates", rates)):
            code, output = service.done("import", family, str(path), "--assets", str(assets))
            assert code == 0, output
        # Answers do not tell which worker gave them.
        wait_until_visible(time.monotonic())
        yield Corrections(service, process.pid, folder)
        stop(process)
    finally:
        kill(service)


def test_readers_see_all_or_nothing_of_an_import_of_corrected_prices(corrections: Corrections) -> None:
    repeated = [some_page(random.Random(seed), FIRST, LAST, IDS) for seed in range(5)]
    command = corrections.next()

    def corrected_points(data: Any) -> set[bool]:
        points = (point for series in data["series"] for point in series["points"] if point["v"])
        return {level_of(point["v"]) == corrections.level for point in points}

    def corrected_prices(data: Any) -> set[bool]:
        return {level_of(asset["price"]["price"]) == corrections.level for asset in data}

    def draw(dice: random.Random) -> tuple[str, Callable[[Any], set[bool]]]:
        chance = dice.random()
        if chance < 0.1:
            return "/api/v1/assets/prices", corrected_prices
        if chance < 0.3:
            return dice.choice(repeated), corrected_points
        # The newest weeks, or any part of the year.
        return some_page(dice, LAST - 20 * DAY if chance < 0.6 else FIRST, LAST, IDS), corrected_points

    workers = worker_pids(corrections.up)
    computed = [cpu_ticks(pid) for pid in workers]
    rewritten(corrections.service, draw, *command)
    assert len(workers) > 1
    assert all(cpu_ticks(pid) > ticks for pid, ticks in zip(workers, computed, strict=True))


@contextmanager
def asking(ask: Callable[[], object], answers: list[tuple[object, float]]) -> Iterator[None]:
    """Ask all the time; what was answered, and in how many seconds, is added to `answers`."""
    stopped = threading.Event()

    def work() -> None:
        while not stopped.is_set():
            begun = time.monotonic()
            answer = ask()
            answers.append((answer, time.monotonic() - begun))
            time.sleep(0.02)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


@pytest.mark.parametrize(
    "sent",
    [pytest.param(signal.SIGKILL, id="killed"), pytest.param(signal.SIGSTOP, id="stopped", marks=pytest.mark.slow)],
)
def test_an_interrupted_import_disturbs_nobody_and_is_completed(corrections: Corrections, sent: signal.Signals) -> None:
    service = corrections.service
    before = corrections.level
    alive: list[tuple[object, float]] = []
    rates: list[tuple[object, float]] = []
    prices: list[tuple[object, float]] = []
    with (
        asking(lambda: service.get("/healthz")[0], alive),
        asking(lambda: service.get(RATES_PAGE), rates),
        asking(corrections.shown, prices),
    ):
        process = corrections.interrupted(sent)
        corrections.wait_until_whole()
        assert corrections.open() == 0
        if sent == signal.SIGSTOP:
            process.send_signal(signal.SIGCONT)
            assert process.wait() == 0
            assert process.stdout is not None
            rows = len(ADDRESSES) * ((LAST - FIRST) // HOUR + 1)
            assert f"0 new, {rows:,} replaced" in process.stdout.read()
        assert corrections.open() == 0
        corrections.wait_until_whole()
    assert {status for status, _ in alive} == {200}
    assert len({str(answer) for answer, _ in rates}) == 1
    assert all(len(levels) == 1 for levels, _ in prices)  # type: ignore[arg-type]
    assert {level for levels, _ in prices for level in levels} <= {*range(before, corrections.level + 1)}  # type: ignore[attr-defined]
    slowest = max(seconds for answers in (alive, rates, prices) for _, seconds in answers)
    assert slowest < PROMPT_SECONDS * slack()


@pytest.mark.slow
def test_readers_see_all_or_nothing_of_a_backfill(corrections: Corrections) -> None:
    """Hours and days of the gap have no price before, and at least one each after."""
    service = corrections.service
    code, output = service.done("jobs", "once", "prices", "--at", str(GAP), "--source", "observed:7")
    assert code == 0, output
    wait_until_visible(time.monotonic())
    prices = service.get("/api/v1/assets/prices")[1]["data"]
    ids = [asset["asset"]["id"] for asset in prices if asset["asset"]["id"] not in IDS]
    assert len(ids) > len(IDS)

    def priced(data: Any) -> set[bool]:
        # The last bucket may end before its hour does.
        return {point["v"] is not None for series in data["series"] for point in series["points"][:-1]}

    def draw(dice: random.Random) -> tuple[str, Callable[[Any], set[bool]]]:
        # Days inside the gap only.
        return some_page(dice, GAP + 2 * DAY, GAP_END - 2 * DAY, ids, fill="none"), priced

    span = ("--start", str(GAP), "--end", str(GAP_END), "--every", "1h", "--source", "observed:7")
    rewritten(service, draw, "jobs", "backfill", "prices", *span)
