"""Four workers serve history while it is rewritten: each page shows the state before or after, never a mix."""

import random
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

from tests.acceptance.conftest import Service, kill, stop
from tests.processes import children, command_line, slack, until

HOUR, DAY = 3600, 86_400
FIRST, LAST = (int(datetime(2025, month, day, tzinfo=UTC).timestamp()) for month, day in ((1, 1), (12, 31)))
ADDRESSES = ("0xa", "0xb", "0xc", "0xd")
IDS = [f"token;{address}" for address in ADDRESSES]
# Also zones that are half or a quarter of an hour off.
ZONES = ("UTC", "UTC", "America/New_York", "Asia/Kolkata", "Asia/Kathmandu", "Australia/Lord_Howe")
READERS = 6
# Pauses between the requests of a reader, so that readers leave time to the writer.
BREATH = 0.1
# Added to corrected prices, which makes them greater than all others.
CORRECTION = 1000
# Every worker shows what was written at least that many seconds ago: workers look at the ledger every 1.75 s.
VISIBLE_SECONDS = 2.25
# Weeks that have one price of a source of each asset only, until they are backfilled.
GAP, GAP_END = (int(datetime(2025, 9, day, tzinfo=UTC).timestamp()) for day in (5, 25))
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
    found = Readers(service, draw)
    threads = [threading.Thread(target=found.ask, args=(seed,)) for seed in range(READERS)]
    for thread in threads:
        thread.start()
    try:
        yield found
    finally:
        found.stopped.set()
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
    with readers(service, draw) as found:
        found.read_more(100)
        begun = time.monotonic()
        code, output = service.done(*command)
        ended = time.monotonic()
        assert code == 0, output
        shown = wait_until_visible(ended)
        found.read_more(150)
    reads = found.reads
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


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, int, Path]]:
    """A service of four workers without jobs, the process of its `up`, and a folder with its price files."""
    folder = tmp_path_factory.mktemp("rewritten")
    assets = folder / "assets.csv"
    assets.write_text("symbol,address,decimals\n" + "".join(f"{one},{one},6\n" for one in ADDRESSES))
    service = Service(folder / "data", source="none", workers=4)
    try:
        process = service.up()
        code, output = service.done("import", "prices", str(price_file(folder, 0)), "--assets", str(assets))
        assert code == 0, output
        yield service, process.pid, folder
        stop(process)
    finally:
        kill(service)


def test_readers_see_all_or_nothing_of_an_import_of_corrected_prices(imported: tuple[Service, int, Path]) -> None:
    service, up, folder = imported
    repeated = [some_page(random.Random(seed), FIRST, LAST, IDS) for seed in range(5)]

    def corrected_points(data: Any) -> set[bool]:
        return {float(point["v"]) >= CORRECTION for one in data["series"] for point in one["points"] if point["v"]}

    def corrected_prices(data: Any) -> set[bool]:
        return {float(one["price"]["price"]) >= CORRECTION for one in data}

    def draw(dice: random.Random) -> tuple[str, Callable[[Any], set[bool]]]:
        chance = dice.random()
        if chance < 0.1:
            return "/api/v1/assets/prices", corrected_prices
        if chance < 0.3:
            return dice.choice(repeated), corrected_points
        # The newest weeks, or any part of the year.
        return some_page(dice, LAST - 20 * DAY if chance < 0.6 else FIRST, LAST, IDS), corrected_points

    workers = worker_pids(up)
    computed = [cpu_ticks(pid) for pid in workers]
    rewritten(service, draw, "import", "prices", str(price_file(folder, CORRECTION)))
    assert len(workers) > 1
    assert all(cpu_ticks(pid) > ticks for pid, ticks in zip(workers, computed, strict=True))


def test_readers_see_all_or_nothing_of_a_backfill(imported: tuple[Service, int, Path]) -> None:
    """Hours and days of the gap have no price before, and at least one each after."""
    service, _up, _folder = imported
    code, output = service.done("jobs", "once", "prices", "--at", str(GAP), "--source", "observed:7")
    assert code == 0, output
    wait_until_visible(time.monotonic())
    prices = service.get("/api/v1/assets/prices")[1]["data"]
    ids = [one["asset"]["id"] for one in prices if one["asset"]["id"] not in IDS]
    assert len(ids) > len(IDS)

    def priced(data: Any) -> set[bool]:
        # The last bucket may end before its hour does.
        return {point["v"] is not None for one in data["series"] for point in one["points"][:-1]}

    def draw(dice: random.Random) -> tuple[str, Callable[[Any], set[bool]]]:
        # Days inside the gap only.
        return some_page(dice, GAP + 2 * DAY, GAP_END - 2 * DAY, ids, fill="none"), priced

    span = ("--start", str(GAP), "--end", str(GAP_END), "--every", "1h", "--source", "observed:7")
    rewritten(service, draw, "jobs", "backfill", "prices", *span)
