"""History is rewritten while four workers are asked for it: every page is of before or of after, and soon of after."""

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
from tests.processes import children, command_line, until

HOUR, DAY = 3600, 86_400
FIRST, LAST = (int(datetime(2025, month, day, tzinfo=UTC).timestamp()) for month, day in ((1, 1), (12, 31)))
ADDRESSES = ("0xa", "0xb", "0xc", "0xd")
IDS = [f"token;{address}" for address in ADDRESSES]
# Hours and days of zones of half and quarter hours are not what workers have in memory at first.
ZONES = ("UTC", "UTC", "America/New_York", "Asia/Kolkata", "Asia/Kathmandu", "Australia/Lord_Howe")
READERS = 6
# Corrected prices are that much higher, and so greater than all others.
MORE = 1000
# A month of which the simulated protocol has one price of each asset only, until that is mended.
GAP, GAP_END = (int(datetime(2025, 9, day, tzinfo=UTC).timestamp()) for day in (5, 25))
# Path, and what tells from its JSON whether each value is of after.
Draw = Callable[[random.Random], tuple[str, Callable[[Any], set[bool]]]]


@dataclass(frozen=True)
class Read:
    """An answer: when it was asked for and was there (monotonic seconds), and whether its values are of after."""

    path: str
    begun: float
    ended: float
    status: int
    after: frozenset[bool]


@dataclass
class Readers:
    """Threads that ask without a pause, each by new connections, so that any worker may answer."""

    service: Service
    draw: Draw
    reads: list[Read] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    def ask(self, seed: int) -> None:
        dice = random.Random(seed)
        while not self.stopped.is_set():
            path, told = self.draw(dice)
            begun = time.monotonic()
            status, body = self.service.get(path)
            after = frozenset(told(body["data"]) if status == 200 else ())
            self.reads.append(Read(path, begun, time.monotonic(), status, after))

    def go_on(self, count: int) -> None:
        """Return when that many more answers are there."""
        wanted = len(self.reads) + count
        until(lambda: len(self.reads) >= wanted)


@contextmanager
def readers(service: Service, draw: Draw) -> Iterator[Readers]:
    """Readers that ask as long as this lasts."""
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


def a_second_after(instant: float) -> None:
    """Return when all workers must know what had been written by a monotonic second."""
    until(lambda: time.monotonic() > instant + 1)


def rewritten(service: Service, draw: Draw, *command: str) -> None:
    """Let a command rewrite history while it is read, and look at all that was answered."""
    a_second_after(time.monotonic())
    with readers(service, draw) as found:
        found.go_on(100)
        begun = time.monotonic()
        code, output = service.done(*command)
        ended = time.monotonic()
        assert code == 0, output
        a_second_after(ended)
        found.go_on(150)
    reads = found.reads
    failed = [read for read in reads if read.status != 200]
    assert not failed, failed[:3]
    mixed = [read for read in reads if len(read.after) > 1]
    assert not mixed, mixed[:3]
    told = [read for read in reads if read.after]
    before = [read for read in told if read.ended < begun]
    during = [read for read in told if read.ended > begun and read.begun < ended]
    after = [read for read in told if read.begun > ended + 1]
    early = [read for read in before if True in read.after]
    assert not early, early[:3]
    stale = [(read.path, read.begun - ended) for read in after if False in read.after]
    assert not stale, (len(stale), len(after), stale[:3])
    assert min(len(before), len(after)) >= 50, (len(before), len(during), len(after))
    assert len(during) >= 2 * READERS, (len(before), len(during), len(after))
    # Most pages were new to the worker.
    assert len({read.path for read in reads}) > len(reads) / 2


def some_page(dice: random.Random, first: int, last: int, ids: list[str], **more: str) -> str:
    """A page of hours or days that begin in a range."""
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
    """A year of hourly prices, each asset's and hour's different from its neighbours'."""
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
    """How long a process has computed so far."""
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, int, Path]]:
    """A service of four workers without jobs, its `up`, and a folder with the prices that it was given."""
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


def test_an_import_of_corrected_prices_is_seen_whole_or_not_at_all(imported: tuple[Service, int, Path]) -> None:
    service, up, folder = imported
    repeated = [some_page(random.Random(seed), FIRST, LAST, IDS) for seed in range(5)]

    def of_history(data: Any) -> set[bool]:
        return {float(point["v"]) >= MORE for one in data["series"] for point in one["points"] if point["v"]}

    def of_now(data: Any) -> set[bool]:
        return {float(one["price"]["price"]) >= MORE for one in data}

    def draw(dice: random.Random) -> tuple[str, Callable[[Any], set[bool]]]:
        chance = dice.random()
        if chance < 0.1:
            return "/api/v1/assets/prices", of_now
        if chance < 0.3:
            return dice.choice(repeated), of_history
        # The newest weeks as well as all of the year.
        return some_page(dice, LAST - 20 * DAY if chance < 0.6 else FIRST, LAST, IDS), of_history

    workers = worker_pids(up)
    computed = [cpu_ticks(pid) for pid in workers]
    rewritten(service, draw, "import", "prices", str(price_file(folder, MORE)))
    assert len(workers) == 4
    assert all(cpu_ticks(pid) > ticks for pid, ticks in zip(workers, computed, strict=True))


def test_a_backfill_of_a_gap_is_seen_whole_or_not_at_all(imported: tuple[Service, int, Path]) -> None:
    """Hours and days of the gap have no price at all, and then one each at least."""
    service, _up, _folder = imported
    code, output = service.done("jobs", "once", "prices", "--at", str(GAP), "--source", "simulated:7")
    assert code == 0, output
    a_second_after(time.monotonic())
    priced = service.get("/api/v1/assets/prices")[1]["data"]
    ids = [one["asset"]["id"] for one in priced if one["asset"]["id"] not in IDS]
    assert len(ids) > len(IDS)

    def told(data: Any) -> set[bool]:
        # The last bucket may end before its hour does.
        return {point["v"] is not None for one in data["series"] for point in one["points"][:-1]}

    def draw(dice: random.Random) -> tuple[str, Callable[[Any], set[bool]]]:
        # Not the days in which the gap begins and ends.
        return some_page(dice, GAP + 2 * DAY, GAP_END - 2 * DAY, ids, fill="none"), told

    span = ("--start", str(GAP), "--end", str(GAP_END), "--every", "1h", "--source", "simulated:7")
    rewritten(service, draw, "jobs", "backfill", "prices", *span)
