"""Signals that operators send to a running service: no request fails meanwhile, and none waits for a new worker."""

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from analytics_service.server.address import connected
from tests.acceptance.conftest import Service, stop
from tests.processes import PATIENCE, alive, all_stopped, children, command_line, free_port, until

# Pauses of clients, so that they leave the processors to what starts meanwhile.
BREATH = 0.1
PATHS = ("/api/v1/assets/prices?with_text=true", "/healthz")


@dataclass
class Load:
    """What happened to the requests so far."""

    answered: int = 0
    failures: list[str] = field(default_factory=list)

    def goes_on(self) -> None:
        """Return after twenty more answers. Fail if a request failed."""
        enough = self.answered + 20
        until(lambda: self.failures or self.answered >= enough)
        assert self.failures == []


@contextmanager
def load(bind: str) -> Iterator[Load]:
    """Three clients for the duration of the block: one keeps its connections, two open one for each request."""
    so_far, ended = Load(), threading.Event()
    clients = [threading.Thread(target=ask_on, args=(bind, keeps, so_far, ended)) for keeps in (True, False, False)]
    for client in clients:
        client.start()
    try:
        so_far.goes_on()
        yield so_far
        so_far.goes_on()
    finally:
        ended.set()
        for client in clients:
            client.join()


def ask_on(bind: str, keeps: bool, so_far: Load, ended: threading.Event) -> None:
    client = http.client.HTTPConnection("localhost")
    while not ended.wait(BREATH):
        for path in PATHS:
            try:
                # The last answer may have announced the end of the connection.
                client.sock = client.sock or connected(bind, PATIENCE)
                client.request("GET", path)
                answer = client.getresponse()
                answer.read()
                if answer.status != http.client.OK:
                    so_far.failures.append(f"{path}: {answer.status}")
            except (OSError, http.client.HTTPException) as error:
                so_far.failures.append(f"{path}: {error!r}")
                client.close()
            so_far.answered += 1
            if not keeps:
                client.close()
    client.close()


def gunicorns(pid: int) -> set[int]:
    """The gunicorn masters that a process has started."""
    return {child for child in children(pid) if "gunicorn" in command_line(child)}


def replaced(pid: int, before: set[int]) -> bool:
    """Whether a process has other gunicorns than before, and those before are gone with their workers."""
    return bool(gunicorns(pid)) and gunicorns(pid).isdisjoint(before) and all_stopped(before)


def test_up_takes_a_new_http_service_into_use_without_a_failed_request(service: Service) -> None:
    """On HUP; the other parts, and its own process, stay."""
    up = int(json.loads((service.data_dir / "lock").read_text("utf-8"))["pid"])
    before, others = gunicorns(up), children(up) - gunicorns(up)
    before |= {worker for master in before for worker in children(master)}
    with load(service.bind) as requests:
        os.kill(up, signal.SIGHUP)
        until(lambda: replaced(up, before))
        requests.goes_on()
    assert others <= children(up)


def status(bind: str, path: str) -> int:
    """The status of a request of a proxy, which names the client."""
    connection = http.client.HTTPConnection("localhost")
    with closing(connection):
        connection.sock = connected(bind, PATIENCE)
        connection.request("GET", path, headers={"X-Forwarded-For": "198.51.100.7"})
        return connection.getresponse().status


@pytest.fixture
def beside(service: Service, own: Service, tmp_path: Path) -> Service:
    """A `serve` on Unix sockets, beside the ClickHouse of a service that runs."""
    other = Service(service.data_dir, started=own.started)
    other.bind, other.metrics_bind = f"unix:{tmp_path}/http.sock", f"unix:{tmp_path}/ops.sock"
    other.environ["ANALYTICS_ACCESS_LOG"] = "true"
    process = other.serve()
    until(lambda: bool([*tmp_path.glob("http.sock")]) and status(other.bind, "/readyz") == 200)
    assert len(gunicorns(process.pid)) == 1
    return other


def test_serve_on_unix_sockets_beside_a_running_clickhouse_has_as_many_workers_as_signals_ask_for(
    service: Service, beside: Service, tmp_path: Path
) -> None:
    """TTIN adds one, TTOU takes one away. The sockets stay until the service stops."""
    (process,) = beside.started
    (first,) = gunicorns(process.pid)
    with load(beside.bind):
        process.send_signal(signal.SIGTTIN)
        until(lambda: len(children(first)) == 2)
        process.send_signal(signal.SIGTTOU)
        until(lambda: len(children(first)) == 1)
    assert status(beside.bind, "/metrics") == 404
    assert status(beside.metrics_bind, "/metrics") == 200
    started = {first, *children(first)}
    assert stop(process) == 0
    assert all_stopped(started)
    assert [*tmp_path.glob("*.sock")] == []
    assert "analytics_service.access: 198.51.100.7 - GET /metrics 404 " in beside.printed()
    assert service.get("/healthz")[0] == 200


@pytest.mark.slow
def test_serve_takes_a_new_gunicorn_into_use_on_usr2_without_a_failed_request(beside: Service, tmp_path: Path) -> None:
    """With as many workers as are set."""
    (process,) = beside.started
    (first,) = gunicorns(process.pid)
    with load(beside.bind) as requests:
        process.send_signal(signal.SIGTTIN)
        until(lambda: len(children(first)) == 2)
        process.send_signal(signal.SIGUSR2)
        until(lambda: replaced(process.pid, {first}))
        requests.goes_on()
    assert "HTTP        ready on unix:" in beside.done("status", "--bind", beside.bind)[1]
    # One that has ended is a child until it is waited for, which is a moment later.
    until(lambda: len(children(process.pid)) == 1)
    (second,) = children(process.pid)
    started = {second, *children(second)}
    assert len(started) == 2
    assert stop(process) == 0
    assert all_stopped(started)
    assert [*tmp_path.glob("*.sock")] == []


@contextmanager
def gunicorn(data_dir: Path, bind: str, printed: Path, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    """gunicorn as its users start it with a data folder, and one worker."""
    settings = {"ANALYTICS_DATA_DIR": str(data_dir), "ANALYTICS_BIND": bind, "ANALYTICS_WORKERS": "1"}
    settings["ANALYTICS_METRICS_BIND"] = "none"
    command = [sys.executable, "-m", "gunicorn", *arguments, "analytics_service.wsgi:app"]
    with printed.open("wb") as output:
        process = subprocess.Popen(command, env={**os.environ, **settings}, stdout=output, stderr=subprocess.STDOUT)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    "order", [signal.SIGHUP, pytest.param(signal.SIGUSR2, marks=pytest.mark.slow)], ids=lambda order: order.name
)
def test_plain_gunicorn_follows_orders_without_a_failed_request(
    service: Service, tmp_path: Path, order: signal.Signals
) -> None:
    """It finds the ClickHouse of its data folder. HUP replaces its workers. USR2 starts a second gunicorn; then TERM
    ends the first."""
    plain = Service(service.data_dir)
    arguments = ("-c", "python:analytics_service.server.gunicorn_conf")
    with gunicorn(plain.data_dir, plain.bind, tmp_path / "printed", *arguments) as first:
        until(lambda: plain.get("/api/v1/assets/prices")[0] == 200)
        workers = children(first.pid)
        with load(plain.bind) as requests:
            first.send_signal(order)
            if order == signal.SIGHUP:
                until(lambda: len(children(first.pid)) == 1 and all_stopped(workers))
                return
            until(lambda: any(children(child) for child in children(first.pid) - workers))
            (second,) = children(first.pid) - workers
            requests.goes_on()
            first.terminate()
            assert first.wait(PATIENCE) == 0
            assert all_stopped(workers)
        os.kill(second, signal.SIGTERM)
        until(lambda: not alive(second))


@pytest.mark.parametrize(
    "arguments", [pytest.param((), marks=pytest.mark.slow), ("-c", "python:analytics_service.server.gunicorn_conf")]
)
def test_plain_gunicorn_without_a_clickhouse_says_so_and_stops(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    printed = tmp_path / "printed"
    with gunicorn(tmp_path / "none", f"127.0.0.1:{free_port()}", printed, *arguments) as process:
        assert process.wait(PATIENCE) != 0
    output = printed.read_text("utf-8")
    assert "Traceback" not in output
    assert output.count(f"Error: No ClickHouse is running in the data folder {tmp_path / 'none'}. Start one") == 1
