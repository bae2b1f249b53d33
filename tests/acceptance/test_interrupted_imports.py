"""An import is killed or stopped right after its announcement, beside a service that goes on answering."""

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from threading import Event, Thread

import pytest

from analytics_service.config.settings import Settings
from analytics_service.embedded.clickhouse import attached
from tests import clickhouse
from tests.acceptance.conftest import Service, kill, stop
from tests.acceptance.test_rewritten_history import (
    ADDRESSES,
    CORRECTION,
    FIRST,
    HOUR,
    LAST,
    price_file,
    wait_until_visible,
)
from tests.processes import slack, state, until

WHOLE_SECONDS = 10.0
# One that waited for a writer which is silent would take three seconds.
PROMPT_SECONDS = 1.0
RATES = (
    "asset_address,timestamp,symbol,decimals,borrowing_enabled,current_liquidity_rate,current_variable_borrow_rate\n"
)
PRICES_PAGE = f"/api/v1/assets/price-history?start={LAST - 150 * HOUR}&end={LAST}&period=h&limit=200"
RATES_PAGE = f"/api/v1/markets/lend/rate-history?start={LAST - 150 * HOUR}&end={LAST}&period=h&limit=200"


class Corrections:
    """Imports of corrected prices, each by more than the one before."""

    def __init__(self, service: Service, folder: Path) -> None:
        self.service = service
        self.level = 0
        self._folder = folder
        self._levels = count(1)
        reached = attached(Settings(data_dir=service.data_dir))
        assert reached is not None
        self._settings = reached

    def shown(self) -> set[int]:
        """Which corrections a page of prices shows."""
        status, body = self.service.get(PRICES_PAGE)
        assert status == 200, body
        return {int(float(p["v"])) // CORRECTION for one in body["data"]["series"] for p in one["points"]}

    def interrupted(self, sent: signal.Signals) -> "subprocess.Popen[str]":
        """An import that got a signal between its announcement and its end. Where one was faster, another is begun."""
        for level in self._levels:
            path = price_file(self._folder, level * CORRECTION)
            with clickhouse.client(self._settings) as client:

                def announced() -> int:
                    return int(client.query("SELECT uniqExact(version) FROM rewrite").first_row[0])

                before = announced()
                process = self.service.command("import", "prices", str(path))
                while announced() == before and process.poll() is None:
                    pass
                process.send_signal(sent)
                if sent == signal.SIGKILL:
                    process.wait()
                else:
                    until(lambda process=process: state(process.pid) in ("T", "Z"))
                self.level = level
                # It sends no heartbeats any more, so what is open now is so for three seconds.
                if self.open():
                    return process
                process.send_signal(signal.SIGCONT)
                process.wait()
                self.wait_until_whole()
        raise AssertionError

    def open(self) -> int:
        """How many rewrites are under way."""
        sql = "SELECT count() FROM (SELECT version FROM rewrite GROUP BY version HAVING max(finished) = 0)"
        with clickhouse.client(self._settings) as client:
            return int(client.query(sql).first_row[0])

    def wait_until_whole(self) -> None:
        """Return when all workers show the last correction."""
        until(lambda: all(self.shown() == {self.level} for _ in range(8)), WHOLE_SECONDS * slack())


@pytest.fixture(scope="module")
def corrections(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corrections]:
    """A service without jobs that has a year of prices, and rates."""
    folder = tmp_path_factory.mktemp("interrupted")
    assets = folder / "assets.csv"
    assets.write_text("symbol,address,decimals\n" + "".join(f"{one},{one},6\n" for one in ADDRESSES))
    rates = folder / "rates.csv"
    lines = [f"{one},{second},{one},6,true,0.5,0.6\n" for one in ADDRESSES for second in range(FIRST, LAST, 24 * HOUR)]
    rates.write_text(RATES + "".join(lines))
    service = Service(folder / "data", source="none")
    try:
        process = service.up()
        for family, path in (("prices", price_file(folder, 0)), ("rates", rates)):
            code, output = service.done("import", family, str(path), "--assets", str(assets))
            assert code == 0, output
        found = Corrections(service, folder)
        # Answers do not tell which worker gave them.
        wait_until_visible(time.monotonic())
        yield found
        stop(process)
    finally:
        kill(service)


@contextmanager
def asking(ask: Callable[[], object], answers: list[tuple[object, float]]) -> Iterator[None]:
    """Ask all the time; what was answered, and in how many seconds, is added to `answers`."""
    stopped = Event()

    def work() -> None:
        while not stopped.is_set():
            begun = time.monotonic()
            answer = ask()
            answers.append((answer, time.monotonic() - begun))
            time.sleep(0.02)

    thread = Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
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
