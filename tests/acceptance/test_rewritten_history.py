"""Workers serve history while it is rewritten: each page shows the state before or after, never a mix.

That holds, too, when the process that rewrites is killed right after it has announced that it will.
"""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from analytics_service.config.settings import Settings
from analytics_service.embedded.clickhouse import attached
from tests import clickhouse
from tests.acceptance.conftest import Service, kill, stop
from tests.processes import slack, until

HOUR, DAY = 3600, 86_400
FIRST, LAST = (int(datetime(2025, month, day, tzinfo=UTC).timestamp()) for month, day in ((1, 1), (12, 31)))
ADDRESSES = ("0xa", "0xb", "0xc", "0xd")
IDS = [f"token;{address}" for address in ADDRESSES]
# Also zones that are half or a quarter of an hour off.
ZONES = ("UTC", "UTC", "America/New_York", "Asia/Kolkata", "Asia/Kathmandu", "Australia/Lord_Howe")
READERS = 4
# Pauses between requests, so that readers leave time to the writer.
BREATH = 0.15
# Added to prices by each correction. It is greater than all prices of the first file.
CORRECTION = 1000
# Every worker shows what was written at least that many seconds ago: workers look at the ledger every second.
VISIBLE_SECONDS = 2.25
WHOLE_SECONDS = 10.0
# One that waited for a writer which is silent would take three seconds.
PROMPT_SECONDS = 1.0
RATES = (
    "asset_address,timestamp,symbol,decimals,borrowing_enabled,current_liquidity_rate,current_variable_borrow_rate\n"
)
_LAST_DAYS = f"start={LAST - 150 * HOUR}&end={LAST}&period=h&limit=200"
PRICES_PAGE = f"/api/v1/assets/price-history?{_LAST_DAYS}&asset_ids={','.join(IDS)}"
RATES_PAGE = f"/api/v1/markets/lend/rate-history?{_LAST_DAYS}"


@dataclass
class Read:
    """What was asked and answered, and when that began and ended (monotonic seconds)."""

    path: str
    status: int
    data: Any
    begun: float
    ended: float

    @cached_property
    def levels(self) -> set[int]:
        """Of which corrections the prices are; none of an answer without prices."""
        if isinstance(self.data, list):
            return {level_of(asset["price"]["price"]) for asset in self.data}
        series = (self.data or {}).get("series", ())
        return {level_of(point["v"]) for one in series for point in one["points"] if point["v"]}


@dataclass
class Readers:
    """Threads that send requests one after another, each on a new connection, so that any worker may answer."""

    reads: list[Read] = field(default_factory=list)
    _stopped: threading.Event = field(default_factory=threading.Event)

    def ask(self, service: Service, path: Callable[[], str]) -> None:
        while not self._stopped.wait(BREATH):
            asked, begun = path(), time.monotonic()
            status, body = service.get(asked)
            self.reads.append(Read(asked, status, body and body["data"], begun, time.monotonic()))

    def stop(self) -> None:
        self._stopped.set()

    def read_more(self, count: int) -> None:
        """Return after this many more answers."""
        wanted = len(self.reads) + count
        until(lambda: len(self.reads) >= wanted)


@contextmanager
def readers(service: Service, *paths: Callable[[], str]) -> Iterator[Readers]:
    """A reader of each choice of paths for the duration of the block. All requests are answered."""
    running = Readers()
    threads = [threading.Thread(target=running.ask, args=(service, path)) for path in paths]
    for thread in threads:
        thread.start()
    try:
        yield running
    finally:
        running.stop()
        for thread in threads:
            thread.join()
    failed = [read for read in running.reads if read.status != 200]
    assert not failed, failed[:3]
    mixed = [read for read in running.reads if len(read.levels) > 1]
    assert not mixed, mixed[:3]


def level_of(price: str) -> int:
    """The number of the correction that a price is from."""
    return int(float(price)) // CORRECTION


def wait_until_visible(written: float) -> float:
    """Return once all workers must show what was written by a monotonic second; since when they must."""
    shown = written + VISIBLE_SECONDS * slack()
    until(lambda: time.monotonic() > shown)
    return shown


def some_page(dice: random.Random, first: int) -> str:
    """A page of hours or days, of all assets or some, that begins at a second or later."""
    period = dice.choice("hd")
    start = dice.randint(first, LAST)
    query = {
        "start": start,
        "end": min(LAST, start + dice.randint(HOUR, 150 * (HOUR if period == "h" else DAY))),
        "period": period,
        "tz": dice.choice(ZONES),
        "limit": 150,
    }
    chosen = dice.sample(IDS, dice.randint(1, len(IDS)))
    query |= {"asset_ids": ",".join(chosen)} if dice.random() < 0.5 else {}
    return f"/api/v1/assets/price-history?{urlencode(query)}"


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


class Corrections:
    """Imports of corrected prices into a service with two workers and no jobs, each by more than the one before."""

    def __init__(self, service: Service, folder: Path) -> None:
        self.service = service
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

    def kill_one(self) -> None:
        """Kill an import between its announcement and its end. If one was faster, another is begun."""
        while True:
            process = self.service.command(*self.next())
            while not self.open() and process.poll() is None:
                time.sleep(0.005)
            process.kill()
            process.wait()
            # It sends no heartbeats any more, so what is open now is so for three seconds.
            if self.open():
                return
            self.wait_until_whole()

    def open(self) -> int:
        """How many rewrites are under way."""
        sql = "SELECT count() FROM (SELECT version FROM rewrite GROUP BY version HAVING max(finished) = 0)"
        with clickhouse.client(self._settings) as client:
            return int(client.query(sql).first_row[0])

    def is_shown(self) -> bool:
        """Whether a page of prices shows the last correction."""
        status, body = self.service.get(PRICES_PAGE)
        return Read(PRICES_PAGE, status, body["data"], 0, 0).levels == {self.level}

    def wait_until_whole(self) -> None:
        """Return when all workers show the last correction."""
        until(lambda: all(self.is_shown() for _ in range(16)), WHOLE_SECONDS * slack(), every=BREATH)


@pytest.fixture(scope="module")
def corrections(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corrections]:
    """A service that has a year of prices, and rates."""
    folder = tmp_path_factory.mktemp("rewritten")
    assets, rates = folder / "assets.csv", folder / "rates.csv"
    assets.write_text("symbol,address,decimals\n" + "".join(f"{address},{address},6\n" for address in ADDRESSES))
    days = range(FIRST, LAST, DAY)
    lines = [f"{address},{second},{address},6,true,0.5,0.6\n" for address in ADDRESSES for second in days]
    rates.write_text(RATES + "".join(lines))
    service = Service(folder / "data", source="none", workers=2)
    try:
        process = service.up()
        for family, path in (("prices", price_file(folder, 0)), ("rates", rates)):
            code, output = service.done("import", family, str(path), "--assets", str(assets))
            assert code == 0, output
        yield Corrections(service, folder)
        stop(process)
    finally:
        kill(service)


def test_readers_see_all_or_nothing_of_an_import_of_corrected_prices(corrections: Corrections) -> None:
    repeated = [some_page(random.Random(seed), FIRST) for seed in range(5)]

    def path(dice: random.Random) -> str:
        chance = dice.random()
        if chance < 0.1:
            return "/api/v1/assets/prices"
        # One of a few pages, the newest weeks, or any part of the year.
        return dice.choice(repeated) if chance < 0.3 else some_page(dice, LAST - 20 * DAY if chance < 0.6 else FIRST)

    wait_until_visible(time.monotonic())
    with readers(corrections.service, *(partial(path, random.Random(seed)) for seed in range(READERS))) as running:
        running.read_more(80)
        command, begun = corrections.next(), time.monotonic()
        code, output = corrections.service.done(*command)
        ended = time.monotonic()
        assert code == 0, output
        shown = wait_until_visible(ended)
        running.read_more(100)
    conclusive = [read for read in running.reads if read.levels]
    before = [read for read in conclusive if read.ended < begun]
    during = [read for read in conclusive if read.ended > begun and read.begun < ended]
    after = [read for read in conclusive if read.begun > shown]
    assert all(read.levels == {corrections.level - 1} for read in before)
    stale = [(read.path, read.begun - ended) for read in after if read.levels != {corrections.level}]
    assert not stale, (len(stale), len(after), stale[:3])
    assert min(len(before), len(after)) >= 40, (len(before), len(during), len(after))
    assert len(during) >= 2 * READERS, (len(before), len(during), len(after))
    # Most pages were new to the worker.
    assert len({read.path for read in running.reads}) > len(running.reads) / 2


def test_a_killed_import_disturbs_nobody_and_is_completed(corrections: Corrections) -> None:
    before = corrections.level
    with readers(corrections.service, lambda: "/healthz", lambda: RATES_PAGE, lambda: PRICES_PAGE) as running:
        corrections.kill_one()
        corrections.wait_until_whole()
        assert corrections.open() == 0
    shown = {level for read in running.reads if read.path == PRICES_PAGE for level in read.levels}
    assert shown <= {*range(before, corrections.level + 1)}
    assert len({str(read.data) for read in running.reads if read.path == RATES_PAGE}) == 1
    assert max(read.ended - read.begun for read in running.reads) < PROMPT_SECONDS * slack()
