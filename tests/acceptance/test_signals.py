"""Signals that operators send to a running service: no request fails meanwhile."""

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

from analytics_service.http.api_keys import add_key, remove_key
from analytics_service.server.address import connect_to
from tests.acceptance.conftest import Service, stop
from tests.processes import PATIENCE, all_stopped, children, command_line, free_port, until

# Pauses of clients, so that they leave the processors to what starts meanwhile.
BREATH = 0.1


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
def load(*places: tuple[str, str], key: str = "") -> Iterator[Load]:
    """Clients of each bind and path for the duration of the block: one keeps its connections, two open one for each
    request."""
    so_far, ended = Load(), threading.Event()
    clients = [
        threading.Thread(target=ask_on, args=(*place, key, keeps, so_far, ended))
        for place in places
        for keeps in (True, False, False)
    ]
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


def ask_on(bind: str, path: str, key: str, keeps: bool, so_far: Load, ended: threading.Event) -> None:
    client = http.client.HTTPConnection("localhost")
    while not ended.wait(BREATH):
        try:
            # The last answer may have announced the end of the connection.
            client.sock = client.sock or connect_to(bind, PATIENCE)
            client.request("GET", path, headers=bearer(key))
            answer = client.getresponse()
            answer.read()
            if answer.status == http.client.OK:
                so_far.answered += 1
            else:
                so_far.failures.append(f"{path}: {answer.status}")
        except (OSError, http.client.HTTPException) as error:
            so_far.failures.append(f"{path}: {error!r}")
            client.close()
        if not keeps:
            client.close()
    client.close()


def gunicorns(pid: int) -> set[int]:
    """The gunicorn masters that a process has started."""
    return {child for child in children(pid) if "gunicorn" in command_line(child)}


def replaced(pid: int, before: set[int]) -> bool:
    """Whether a process has other gunicorns than before, and those before are gone with their workers."""
    return bool(gunicorns(pid)) and gunicorns(pid).isdisjoint(before) and all_stopped(before)


def bearer(key: str) -> dict[str, str]:
    """The header that names an API key, if there is one."""
    return {"Authorization": f"Bearer {key}"} if key else {}


def status(bind: str, path: str, key: str = "") -> int:
    """The status of a request."""
    connection = http.client.HTTPConnection("localhost")
    with closing(connection):
        connection.sock = connect_to(bind, PATIENCE)
        connection.request("GET", path, headers=bearer(key))
        return connection.getresponse().status


def is_ready(bind: str) -> bool:
    """Whether the service listens there and is ready."""
    try:
        return status(bind, "/readyz") == http.client.OK
    except (ConnectionRefusedError, FileNotFoundError):
        return False


def test_up_takes_a_new_gunicorn_into_use_on_hup_without_a_failed_request(service: Service) -> None:
    """The other parts, and its own process, stay. USR2 is only logged."""
    up = int(json.loads((service.data_dir / "lock").read_text("utf-8"))["pid"])
    before, others = gunicorns(up), children(up) - gunicorns(up)
    before |= {worker for master in before for worker in children(master)}
    with load((service.bind, "/api/v1/assets/prices?with_text=true"), (service.metrics_bind, "/metrics")) as requests:
        os.kill(up, signal.SIGUSR2)
        until(lambda: "USR2 does nothing" in service.printed())
        os.kill(up, signal.SIGHUP)
        until(lambda: replaced(up, before))
        requests.goes_on()
    assert others <= children(up)


def test_serve_on_unix_sockets_follows_signals_and_its_sockets_stay_until_it_stops(
    service: Service, own: Service, tmp_path: Path
) -> None:
    """TTIN adds a worker, TTOU takes one away, and HUP replaces gunicorn with as many workers as are set, and takes
    changed API keys into use. It runs beside the ClickHouse of a service."""
    beside = Service(service.data_dir, started=own.started)
    beside.bind, beside.metrics_bind = f"unix:{tmp_path}/http.sock", f"unix:{tmp_path}/ops.sock"
    file = tmp_path / "keys.txt"
    beside.environ = {"ANALYTICS_ACCESS_LOG": "true", "ANALYTICS_API_KEYS_FILE": str(file)}
    alice, carol = add_key(file, "alice"), add_key(file, "carol")
    process = beside.serve()
    until(lambda: is_ready(beside.bind))
    remove_key(file, "alice")
    bob = add_key(file, "bob")

    def admitted() -> list[int]:
        return [status(beside.bind, "/api/v1/assets", key) for key in (alice, bob)]

    until(lambda: admitted() == [200, 401])
    (first,) = gunicorns(process.pid)
    places = ((beside.bind, "/api/v1/assets/prices"), (beside.metrics_bind, "/healthz"))
    with load(*places, key=carol) as requests:
        process.send_signal(signal.SIGTTIN)
        until(lambda: len(children(first)) == 2)
        process.send_signal(signal.SIGTTOU)
        until(lambda: len(children(first)) == 1)
        process.send_signal(signal.SIGHUP)
        until(lambda: replaced(process.pid, {first}))
        requests.goes_on()
    until(lambda: admitted() == [401, 200])
    # A new gunicorn could not start with this.
    file.write_text("malformed")
    process.send_signal(signal.SIGHUP)
    beside.says(process, "The running gunicorn continues.")
    assert "HTTP        ready on unix:" in beside.done_here("status", "--bind", beside.bind)[1]
    assert status(beside.metrics_bind, "/metrics") == 200
    assert status(beside.bind, "/metrics") == 404
    (second,) = gunicorns(process.pid)
    started = {second, *children(second)}
    assert len(started) == 2
    assert stop(process) == 0
    assert all_stopped(started)
    assert [*tmp_path.glob("*.sock")] == []
    assert "analytics_service.access: - - GET /metrics 404 " in beside.printed()
    assert service.get("/healthz")[0] == 200


@contextmanager
def gunicorn(data_dir: Path, bind: str, printed: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """gunicorn as its users start it with a data folder, and one worker."""
    settings = {"ANALYTICS_DATA_DIR": str(data_dir), "ANALYTICS_BIND": bind, "ANALYTICS_WORKERS": "1"}
    settings["ANALYTICS_METRICS_BIND"] = "none"
    configuration = ("-c", "python:analytics_service.server.gunicorn_conf")
    command = [sys.executable, "-m", "gunicorn", *configuration, "analytics_service.wsgi:app"]
    with printed.open("wb") as output:
        process = subprocess.Popen(command, env={**os.environ, **settings}, stdout=output, stderr=subprocess.STDOUT)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_plain_gunicorn_replaces_its_workers_on_hup_without_a_failed_request(service: Service, tmp_path: Path) -> None:
    """It finds the ClickHouse of its data folder."""
    plain = Service(service.data_dir)
    with gunicorn(plain.data_dir, plain.bind, tmp_path / "printed") as first:
        until(lambda: plain.get("/api/v1/assets/prices")[0] == 200)
        workers = children(first.pid)
        with load((plain.bind, "/api/v1/assets/prices")):
            first.send_signal(signal.SIGHUP)
            until(lambda: len(children(first.pid)) == 1 and all_stopped(workers))


def test_plain_gunicorn_without_a_clickhouse_says_so_and_stops(tmp_path: Path) -> None:
    printed = tmp_path / "printed"
    with gunicorn(tmp_path / "none", f"127.0.0.1:{free_port()}", printed) as process:
        assert process.wait(PATIENCE) != 0
    output = printed.read_text("utf-8")
    assert "Traceback" not in output
    assert output.count(f"Error: No ClickHouse is running in the data folder {tmp_path / 'none'}. Start one") == 1
