"""Requests have five seconds from when they arrived, and not from when a thread is free for them."""

import socket
import time
from types import SimpleNamespace

import falcon.testing
import polars as pl
import pytest
from gunicorn.config import Config

from analytics_service.app import create_app
from analytics_service.config.settings import Settings
from analytics_service.errors import StoreUnavailable
from analytics_service.market.share import seconds_left
from analytics_service.server.connection import Connection
from analytics_service.state.heads import Heads
from analytics_service.store.sql import Parts
from tests.doubles import LOCAL, LedgerStore
from tests.processes import until


def accepted(listening: socket.socket) -> Connection:
    own, address = listening.accept()
    return Connection(own, address, None, Config())


def test_what_waits_to_be_read_knows_for_how_long() -> None:
    """Also before its connection is accepted."""
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.socket() as client:
        client.connect(listening.getsockname())
        begun = time.monotonic()
        client.sendall(b"GET / HTTP/1.1\r\n")
        until(lambda: time.monotonic() > begun + 0.05, every=0.01)
        connection = accepted(listening)
        assert connection.receive(60)
        # The kernel counts in ticks.
        assert 0.03 < connection.waited < time.monotonic() - begun + 0.02
        sent = time.monotonic()
        client.sendall(b"\r\n")
        assert connection.receive(60)
        assert connection.waited < time.monotonic() - sent + 0.02
        connection.end()


def test_at_a_unix_socket_nobody_knows(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = str(tmp_path_factory.mktemp("s") / "s")
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as client:
        listening.bind(path)
        listening.listen()
        client.connect(path)
        client.sendall(b"GET / HTTP/1.1\r\n\r\n")
        connection = accepted(listening)
        assert connection.receive(60)
        assert connection.waited == 0
        connection.end()


class Recording(LedgerStore):
    """Notes how long requests may still wait for what they read, once they `begin` to."""

    def __init__(self) -> None:
        super().__init__("prices")
        self.left: list[float | None] = []
        self.begin = False

    def frame(self, query: str, parts: Parts = (), **parameters: object) -> pl.DataFrame:
        if not self.begin:
            return super().frame(query, parts, **parameters)
        self.left.append(seconds_left())
        raise StoreUnavailable("away")


@pytest.mark.parametrize(("waited", "left"), [(0.0, 5.0), (4.0, 1.0), (9.0, 0.0)])
def test_the_time_that_a_request_waited_is_not_its_own_any_more(waited: float, left: float) -> None:
    store = Recording()
    heads = Heads(store, interval=None)
    heads.look()
    store.begin = True
    client = falcon.testing.TestClient(create_app(Settings(), store, heads=heads))
    extras = {"gunicorn.socket": SimpleNamespace(waited=waited, getsockname=lambda: ("127.0.0.1", 8000))}
    assert client.simulate_get("/api/v1/assets/prices", extras=extras, headers=LOCAL).status_code == 503
    assert store.left == [pytest.approx(left, abs=0.9)]
