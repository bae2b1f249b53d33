"""A ClickHouse that hangs with open connections, such as a paused container, and one that is not there at all."""

import http.client
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from analytics_service.clickhouse.running import read_running
from analytics_service.config.settings import Settings
from analytics_service.embedded.clickhouse import FOUND, clickhouse
from tests.acceptance.conftest import FIRST, Service, stop
from tests.processes import PATIENCE, slack, until

DAY = 86_400
# More than the one worker has threads, which are more than it has queries at once.
CALLERS = 12
PRICES = "/api/v1/assets/prices"
EVENTS = "/api/v1/analytics/market/events"
_READS = [f'analytics_store_query_seconds_count{{query="{name}"}}' for name in ("summarize_buckets", "read_last_rows")]


class Answer(NamedTuple):
    """An answer's status and Retry-After, and after how many seconds it came."""

    status: int
    retry_after: str | None
    seconds: float


def ask(service: Service, path: str) -> Answer:
    """Get a path on a new connection."""
    begun = time.monotonic()
    host, _, port = (service.metrics_bind if path == "/metrics" else service.bind).rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=PATIENCE)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        response.read()
        return Answer(response.status, response.getheader("Retry-After"), time.monotonic() - begun)
    finally:
        connection.close()


def page(number: int, period: str = "d") -> str:
    """One of many pages of history. Days are made of what is in memory, weeks are read from the store."""
    return f"/api/v1/assets/price-history?start={FIRST - number}&end={FIRST + 9 * DAY}&period={period}"


def is_in_memory(service: Service, path: str) -> bool:
    """Whether a page that nobody has asked for is answered without reading the store."""
    before = [service.metrics().get(name) for name in _READS]
    answered = ask(service, path).status == http.client.OK
    # A name that no query has would say that of any page.
    return answered and any(before) and [service.metrics().get(name) for name in _READS] == before


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """A process does nothing for the duration of the block."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_store_that_hangs_takes_only_the_answers_that_need_it(imported: Service) -> None:
    """A stopped server accepts connections and never answers. All callers at once need it, and go on to."""
    until(lambda: {ask(imported, path).status for path in ("/readyz", PRICES, page(0))} == {200})
    numbers = iter(range(2 * CALLERS, DAY))
    until(lambda: is_in_memory(imported, page(next(numbers))))
    running = read_running(imported.data_dir)
    assert running is not None
    ended = threading.Event()
    with ThreadPoolExecutor(CALLERS) as callers, stopped(running.server), ExitStack() as asking:
        asking.callback(ended.set)
        waiting = [callers.submit(ask_until, ended, imported, page(n, "w")) for n in range(CALLERS)]
        begun = time.monotonic()
        # Until it is noticed, within two seconds, they may have all threads.
        until(lambda: not imported.metrics()["analytics_store_up"])
        assert time.monotonic() - begun < 3 * slack()
        for _ in range(10):
            at_once = {path: ask(imported, path) for path in ("/healthz", "/readyz", "/metrics", PRICES, page(1))}
            assert {answer.status for answer in at_once.values()} == {200}, at_once
            assert max(answer.seconds for answer in at_once.values()) < slack(), at_once
            time.sleep(0.1)
        asking.close()
        answers = [answer for one in waiting for answer in one.result()]
        assert {(one.status, bool(one.retry_after)) for one in answers} == {(503, True)}
        # They count from when a thread takes the request.
        assert max(one.seconds for one in answers) < 5.5 * slack(), answers
    until(lambda: imported.metrics()["analytics_store_up"], 15 * slack())
    assert ask(imported, page(CALLERS, "w")).status == 200


def ask_until(ended: threading.Event, service: Service, path: str) -> list[Answer]:
    """The answers to a caller that asks again a moment after each."""
    answers = [ask(service, path)]
    while not ended.wait(0.2):
        answers.append(ask(service, path))
    return answers


def test_the_scheduler_of_up_waits_for_a_clickhouse_that_is_away_and_can_be_stopped_meanwhile(
    continued: Service,
) -> None:
    """Restarts would fill the log."""
    continued.environ = {FOUND: "true"}
    process = continued.printing("jobs", "run")
    continued.says(process, "Trying again until it answers.")
    assert stop(process) == 0
    process = continued.printing("jobs", "run")
    continued.says(process, "Trying again until it answers.")
    with clickhouse(Settings(data_dir=continued.data_dir), "pytest"):
        continued.says(process, "The scheduler is running")
        assert stop(process) == 0


def test_serve_on_the_clickhouse_of_another_command_answers_again_when_that_is_back(continued: Service) -> None:
    """On another port."""
    settings = Settings(data_dir=continued.data_dir)
    with clickhouse(settings, "pytest"):
        process = continued.serve()
        until(lambda: continued.get("/readyz")[0] == http.client.OK)
    assert continued.get(EVENTS)[0] == http.client.SERVICE_UNAVAILABLE
    (continued.data_dir / "clickhouse" / "config.xml").unlink()
    with clickhouse(settings, "pytest"):
        until(lambda: continued.get(EVENTS)[0] == http.client.OK)
        assert stop(process) == 0
