"""`example haproxy` in front of two ClickHouse servers with the same data, one of which is away in turn."""

import http.client
import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from threading import Event
from typing import NamedTuple

import pytest

from analytics_service.embedded.configuration import USER, Access, write_configuration
from tests.acceptance.conftest import FIRST, Service, stop
from tests.integration.shards import Shard
from tests.processes import PATIENCE, free_port, slack, until
from tests.unit.test_examples import printed

pytestmark = [pytest.mark.skipif(shutil.which("haproxy") is None, reason="Debian's haproxy"), pytest.mark.slow]

PASSWORD = "p" * 43
CALLERS = 6
# Seconds in which the checks find a server that is away, and in which a worker then looks again.
CHECKS = 6.0
DAYS = 10


class Answer(NamedTuple):
    """When an answer came, its status, and the values of its buckets."""

    ended: float
    status: int
    values: tuple[str, ...]


@contextmanager
def server(folder: Path) -> Iterator[Shard]:
    """A running server whose data is in a folder."""
    port = free_port()
    folder.mkdir(mode=0o700, exist_ok=True)
    write_configuration(folder, port, Access(PASSWORD, PASSWORD, "analytics"))
    shard = Shard(folder, port)
    shard.start()
    try:
        until(shard.answers)
        yield shard
    finally:
        shard.stop()


@contextmanager
def haproxy(folder: Path, first: Shard, second: Shard) -> Iterator[tuple[str, Callable[[], str]]]:
    """The address of an HAProxy with the example, in front of two servers, and what it has printed."""
    config, log, port = folder / "haproxy.cfg", folder / "haproxy.log", free_port()
    example = printed("haproxy")
    for old, new in {
        "127.0.0.1:8120\n    option": f"127.0.0.1:{port}\n    option",
        "10.0.0.1:8123": first.url.removeprefix("http://"),
        "10.0.0.2:8123": second.url.removeprefix("http://"),
        "/dev/log": "stdout format raw",
        "    user haproxy\n    group haproxy\n": "",
    }.items():
        assert old in example
        example = example.replace(old, new)
    config.write_text(example)
    with (
        log.open("w") as output,
        subprocess.Popen(["haproxy", "-db", "-f", config], stdout=output, stderr=output) as process,
    ):
        try:
            yield f"http://127.0.0.1:{port}", log.read_text
        finally:
            process.terminate()


def ask(service: Service, number: int) -> Answer:
    """One of many pages of weeks, each of which is read from the store."""
    path = f"/api/v1/assets/price-history?start={FIRST - number}&end={FIRST + DAYS * 86_400}&period=w"
    connection = http.client.HTTPConnection(service.bind, timeout=PATIENCE)
    connection.request("GET", path)
    response = connection.getresponse()
    data = json.loads(response.read())["data"]
    connection.close()
    values = tuple(point["v"] for series in data["series"] for point in series["points"]) if data else ()
    return Answer(time.monotonic(), response.status, values)


def import_prices(service: Service, folder: Path) -> None:
    """Into a new store: of each day, its number."""
    prices, assets = folder / "prices.csv", folder / "assets.csv"
    rows = [f"AAA,{FIRST + day * 86_400},{day + 1}" for day in range(DAYS)]
    prices.write_text("\n".join(["symbol,timestamp,USD_price", *rows, ""]))
    assets.write_text("symbol,address,decimals\nAAA,0xa,6\n")
    for command in (("migrate",), ("import", "prices", str(prices), "--assets", str(assets))):
        code, output = service.done(*command)
        assert code == 0, output


def test_while_one_server_is_away_the_other_answers(own: Service, tmp_path: Path) -> None:
    """The first is killed, and then hangs. Meanwhile some get a 503, for as long as the checks take."""
    one, other = tmp_path / "one", tmp_path / "other"
    own.source = None
    own.environ = {"ANALYTICS_CLICKHOUSE_USER": USER, "ANALYTICS_CLICKHOUSE_PASSWORD": PASSWORD}
    with server(one) as first:
        own.environ["ANALYTICS_CLICKHOUSE_URL"] = first.url
        import_prices(own, tmp_path)
    shutil.copytree(one, other, symlinks=True)
    numbers, answers, ended = count(), list[Answer](), Event()

    def call() -> None:
        while not ended.is_set():
            answers.append(ask(own, next(numbers)))

    with server(one) as first, server(other) as second, haproxy(tmp_path, first, second) as (url, log):
        own.environ["ANALYTICS_CLICKHOUSE_URL"] = url
        process = own.serve()
        until(lambda: own.get("/readyz")[0] == 200)
        changed = []
        with ThreadPoolExecutor(CALLERS) as pool:
            callers = [pool.submit(call) for _ in range(CALLERS)]
            try:
                for harm in (first.killed, first.paused):
                    said = len(log())
                    with harm():
                        changed.append(time.monotonic())
                        until(lambda said=said: "first is DOWN" in log()[said:])
                        until(lambda: {answer.status for answer in answers[-20:]} == {200})
                    until(lambda said=said: "first is UP" in log()[said:])
                    changed.append(time.monotonic())
                    count_then = len(answers)
                    until(lambda count_then=count_then: len(answers) > count_then + 20)
            finally:
                ended.set()
            for caller in callers:
                caller.result(PATIENCE)
        assert stop(process) == 0
    assert {answer.status for answer in answers} <= {200, 503}
    # A week from the first day on, and the three days after it.
    assert {answer.values for answer in answers if answer.status == 200} == {("7", "10")}
    refused = [answer.ended for answer in answers if answer.status == 503]
    assert max(min(at - when for when in changed if when <= at) for at in refused) < CHECKS * slack()
