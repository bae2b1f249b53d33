"""`up` and the other commands as real processes: what they print, and what they leave behind."""

import json
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from analytics_service.clickhouse.running import read_running
from analytics_service.sources.simulated import RICH_ADDRESS
from tests.acceptance.conftest import Service, stop
from tests.processes import PATIENCE, all_stopped, children, command_line, descendants, until

# The child processes of `up`, by what their command lines hold.
PARTS = ("analytics_service.embedded.child", "jobs run", "gunicorn")


def parts_of(up: int) -> dict[str, set[int]]:
    """The processes of each part of an `up`."""
    started = children(up)
    return {part: {pid for pid in started if part in command_line(pid)} for part in PARTS}


@contextmanager
def stalled_client(bind: str) -> Iterator[None]:
    """A client that asks for more than the system's buffers hold, and reads none of it."""
    host, _, port = bind.partition(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as client:
        client.sendall(b"GET /docs HTTP/1.1\r\nHost: here\r\n\r\n" * 60)
        # Its first answer has begun.
        client.recv(1, socket.MSG_PEEK)
        yield


def test_up_answers_outlives_a_kill_with_source_and_data_and_ends_with_all_of_its_parts(own: Service) -> None:
    first = own.up()
    until(lambda: own.get("/readyz")[0] == 200)
    status, prices = own.get("/api/v1/assets/prices")
    assert (status, prices["count"]) == (200, len(prices["data"]))
    assert prices["data"]
    # The past follows behind the first answers: two hours. The present bucket is the last one.
    until(lambda: own.get(f"/api/v1/users/{RICH_ADDRESS}/user?at=now-1h")[0] == 200)
    until(lambda: own.get("/api/v1/status/health")[1]["data"]["filling"] is False)
    status, history = own.get("/api/v1/assets/price-history?start=now-1h&end=now&period=h")
    assert (status, len(history["data"]["series"])) == (200, prices["count"])
    assert [[point["v"] is None for point in series["points"]] for series in history["data"]["series"]] == [
        [False, False]
    ] * prices["count"]
    until(lambda: all(parts_of(first.pid).values()))
    parts, started = parts_of(first.pid), descendants(first.pid)
    assert all(children(arbiter) for arbiter in parts["gunicorn"]), "gunicorn has no worker"

    own.source = None
    with stalled_client(own.bind):
        first.kill()
        first.wait()
        again = own.up()
    assert "Snapshots come from recent:7." in own.printed()
    until(lambda: all_stopped(started) and own.get("/readyz")[0] == 200)
    assert own.get("/api/v1/assets/prices")[1]["count"] == prices["count"]
    until(lambda: all(parts_of(again.pid).values()))
    started = descendants(again.pid)
    again.send_signal(signal.SIGINT)
    assert again.wait(PATIENCE) == 0
    assert all_stopped(started)
    assert own.get("/healthz")[0] == 0


def test_a_second_up_on_the_same_folder_is_refused_and_names_the_first(service: Service) -> None:
    other = Service(service.data_dir)
    code, output = other.done("up", "--bind", other.bind)
    assert code == 1
    assert str(service.data_dir) in output
    assert f"analytics-service up --bind {service.bind}" in output
    assert "Traceback" not in output


def test_every_part_that_is_killed_is_restarted(service: Service) -> None:
    """Pages that must be read from ClickHouse are answered with 503 while it is away."""
    up = int(json.loads((service.data_dir / "lock").read_text("utf-8"))["pid"])
    until(lambda: service.get("/readyz")[0] == 200)
    first, running = parts_of(up), read_running(service.data_dir)
    assert all(first.values())
    assert running is not None
    os.kill(running.server, signal.SIGKILL)
    statuses = []

    def goes_on() -> bool:
        statuses.append(service.get(f"/api/v1/users/0x{len(statuses):040x}/tx-history")[0])
        return statuses[-3:] == [200] * 3

    until(goes_on)
    assert set(statuses) == {200, 503}
    after = read_running(service.data_dir)
    assert after is not None
    assert after.pid == up

    others = first["jobs run"] | first["gunicorn"]
    assert others <= children(up)
    before = {pid for victim in others for pid in {victim, *descendants(victim)}}
    for pid in others:
        os.kill(pid, signal.SIGKILL)
    until(lambda: all(pids - others for pids in parts_of(up).values()))
    # gunicorn's old workers answer for a second more.
    until(lambda: all_stopped(before))
    until(lambda: [service.get("/api/v1/assets/prices")[0] for _ in range(10)] == [200] * 10)


@pytest.mark.slow
def test_a_scheduler_starts_and_stops_its_own_clickhouse(continued: Service) -> None:
    process = continued.printing("jobs", "run")
    continued.says(process, "The scheduler is running")
    started = descendants(process.pid)
    assert len(started) > 0
    assert stop(process) == 0
    assert all_stopped(started)
