"""A ClickHouse that hangs with open connections, such as a paused container, and one that is not there at all."""

import http.client
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import NamedTuple

from analytics_service.config.settings import Settings
from analytics_service.embedded.clickhouse import FOUND, clickhouse
from tests.acceptance.conftest import Service, stop
from tests.clickhouse import by_url
from tests.processes import PATIENCE, children, command_line, free_port, slack, until
from tests.relay import Relay

DAY = 86_400
FIRST = 1_700_000_000
# More than the one worker has threads.
CALLERS = 24
PRICES = "/api/v1/assets/prices"
_READS = [f'analytics_store_query_seconds_count{{query="{name}_rows"}}' for name in ("frame", "last")]


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
    return answered and [service.metrics().get(name) for name in _READS] == before


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """A process does nothing for the duration of the block."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def served(service: Service, folder: Path) -> int:
    """Serve ten daily prices with one worker and a ClickHouse of its own; the process of that."""
    prices, assets = folder / "prices.csv", folder / "assets.csv"
    rows = [f"AAA,{FIRST + n * DAY},{n + 1}\n" for n in range(10)]
    prices.write_text("symbol,timestamp,USD_price\n" + "".join(rows))
    assets.write_text("symbol,address,decimals\nAAA,0xa,6\n")
    service.source = "none"
    process = service.serve()
    until(lambda: service.get("/healthz")[0] == 200)
    code, output = service.done("import", "prices", str(prices), "--assets", str(assets))
    assert code == 0, output
    until(lambda: ask(service, PRICES).status == 200 and ask(service, page(0)).status == 200)
    numbers = iter(range(2 * CALLERS, DAY))
    until(lambda: is_in_memory(service, page(next(numbers))))
    return next(pid for pid in children(process.pid) if "analytics_service.embedded.child" in command_line(pid))


def test_a_store_that_hangs_takes_only_the_answers_that_need_it(own: Service, tmp_path: Path) -> None:
    """A stopped server accepts connections and never answers. All callers at once need it, and go on to."""
    server = served(own, tmp_path)
    until(lambda: ask(own, "/readyz").status == 200)
    with ThreadPoolExecutor(CALLERS) as callers, stopped(server):
        waiting = [callers.submit(ask_while_it_hangs, own, page(n, "w")) for n in range(CALLERS)]
        begun = time.monotonic()
        while own.metrics()["analytics_store_up"] or time.monotonic() < begun + 3:
            assert time.monotonic() - begun < 6 * slack()
            at_once = {path: ask(own, path) for path in ("/healthz", "/readyz", "/metrics", PRICES, page(1))}
            assert {answer.status for answer in at_once.values()} == {200}, at_once
            assert max(answer.seconds for answer in at_once.values()) < slack(), at_once
            time.sleep(0.1)
        answers = [answer for one in waiting for answer in one.result()]
        assert {(one.status, bool(one.retry_after)) for one in answers} == {(503, True)}
        assert max(one.seconds for one in answers) < 5 * slack(), answers
    until(lambda: own.metrics()["analytics_store_up"], 15 * slack())
    assert ask(own, page(CALLERS, "w")).status == 200
    assert stop(own.started[0]) == 0


def ask_while_it_hangs(service: Service, path: str) -> list[Answer]:
    """The answers to a caller that asks again a moment after each."""
    answers, end = [], time.monotonic() + 6
    while time.monotonic() < end:
        answers.append(ask(service, path))
        time.sleep(0.2)
    return answers


def test_while_one_of_two_servers_answers_requests_are_answered(own: Service, tmp_path: Path) -> None:
    """Relays stand for the servers, and each hangs in turn. Meanwhile a few may get a 503, and none waits for long."""
    served(own, tmp_path)
    server = by_url(Settings(data_dir=own.data_dir))
    with Relay(server) as first, Relay(server) as second, ThreadPoolExecutor(CALLERS) as callers:
        environ = {"URL": f"{first.url},{second.url}", "USER": server.clickhouse_user}
        environ |= {"PASSWORD": server.clickhouse_password}
        several = replace(
            own,
            bind=f"127.0.0.1:{free_port()}",
            metrics_bind=f"127.0.0.1:{free_port()}",
            environ={f"ANALYTICS_CLICKHOUSE_{name}": value for name, value in environ.items()},
        )
        process, numbers = several.serve(), count()

        def asked(seconds: float) -> list[Answer]:
            """The answers to a caller that asks for one page after the other, each of which is read from the store."""
            answers, end = [], time.monotonic() + seconds
            while time.monotonic() < end:
                answers.append(ask(several, page(next(numbers), "w")))
            return answers

        until(lambda: several.get("/readyz")[0] == 200)
        for hanging, other in ((first, second), (second, first)):
            other.hangs.clear()
            until(lambda: ask(several, page(next(numbers), "w")).status == 200)
            hanging.hangs.set()
            at_first = [answer for one in [callers.submit(asked, 3) for _ in range(CALLERS)] for answer in one.result()]
            assert max(answer.seconds for answer in at_first) < 6 * slack()
            assert {answer.status for answer in at_first} <= {200, 503}
            assert {answer.status for answer in asked(1)} == {200}
        assert f"ClickHouse at {first.url} cannot be reached: it does not answer. Asking the next" in several.printed()
        assert stop(process) == 0


def test_serve_says_once_that_it_cannot_reach_its_store_and_goes_on(own: Service) -> None:
    url = "http://127.0.0.1:1"
    own.environ = {"ANALYTICS_CLICKHOUSE_URL": url, "ANALYTICS_CLICKHOUSE_PASSWORD": "sesame"}
    process = own.serve()
    until(lambda: own.get("/healthz")[0] == 200)
    assert own.get("/readyz")[0] == 503
    assert [own.get(PRICES)[0] for _ in range(2)] == [503, 503]
    assert stop(process) == 0
    said = own.printed()
    assert said.count(f"ClickHouse at {url} cannot be reached: connection refused. Requests are answered with 503") == 1
    # The first request meets the failure itself, the second one is refused because of it and has no cause of its own.
    assert f"GET {PRICES}: ClickHouse at {url} cannot be reached" in said
    assert "(None)" not in said
    assert "Traceback" not in said
    assert "sesame" not in said


def test_the_scheduler_of_up_waits_for_a_clickhouse_that_is_away_and_can_be_stopped_meanwhile(own: Service) -> None:
    """If it ended again and again before it has worked, `up` would give it up and end."""
    own.environ = {FOUND: "true"}
    process = own.printing("jobs", "run")
    own.says(process, "Trying again until it answers.")
    assert stop(process) == 0
    process = own.printing("jobs", "run")
    own.says(process, "Trying again until it answers.")
    with clickhouse(Settings(data_dir=own.data_dir), "pytest"):
        own.says(process, "The scheduler is running")
        assert stop(process) == 0
