"""Addresses that are wrong in one way or another: what is said about each, once and at once."""

import re
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from analytics_service.clickhouse.connection import Store
from analytics_service.concurrency import deadline
from analytics_service.config.settings import Settings
from analytics_service.errors import AccessDenied, Busy, StoreUnavailable
from tests.processes import PATIENCE, slack
from tests.relay import Relay


@pytest.fixture
def silent() -> Iterator[str]:
    """The URL of a port that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def fault(settings: Settings) -> str:
    """What is said when a store is used for the first time."""
    with closing(Store(settings)) as store, pytest.raises((StoreUnavailable, AccessDenied)) as caught:
        store.server_version()
    return str(caught.value)


def unreachable(url: str, cause: str) -> str:
    return f"ClickHouse at {url} cannot be reached: {cause}."


def test_an_address_where_nothing_answers_is_told(server: Settings) -> None:
    for url, cause in (
        ("http://127.0.0.1:1", "connection refused"),
        ("http://clickhouse.invalid:8123", "the host name is unknown"),
    ):
        assert fault(replace(server, clickhouse_url=url)) == unreachable(url, cause)


def test_the_native_port_is_told(server: Settings) -> None:
    config = (server.data_dir / "clickhouse" / "config.xml").read_text("utf-8")
    (port,) = re.findall("<tcp_port>([0-9]+)<", config)
    url = f"http://127.0.0.1:{port}"
    cause = "this is its port for the native protocol; use its HTTP port"
    assert fault(replace(server, clickhouse_url=url)) == unreachable(url, cause)


def test_https_to_a_port_of_http_is_told(server: Settings) -> None:
    url = str(server.clickhouse_url).replace("http:", "https:")
    cause = "it does not answer in TLS; perhaps it expects http"
    assert fault(replace(server, clickhouse_url=url)) == unreachable(url, cause)


def test_a_wrong_password_is_told_and_not_shown(server: Settings) -> None:
    told = fault(replace(server, clickhouse_password=server.clickhouse_password[::-1]))
    assert told == (
        f"ClickHouse at {server.clickhouse_url} rejects the user or the password; "
        "check ANALYTICS_CLICKHOUSE_USER and ANALYTICS_CLICKHOUSE_PASSWORD."
    )


def test_a_server_of_another_kind_is_told(server: Settings) -> None:
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{other.server_port}"
        told = fault(replace(server, clickhouse_url=url))
        other.shutdown()
    assert told == f"The server at {url} is not ClickHouse; check ANALYTICS_CLICKHOUSE_URL."


def test_a_port_that_never_answers_is_told_within_seconds(server: Settings, silent: str) -> None:
    begun = time.monotonic()
    assert fault(replace(server, clickhouse_url=silent)) == unreachable(silent, "it does not answer")
    assert time.monotonic() - begun < 6 * slack()


def test_requests_give_up_on_a_server_that_hangs_and_others_wait(server: Settings) -> None:
    """A relay stands for the server, so that it can hang for this store alone."""
    with (
        ThreadPoolExecutor(1) as pool,
        Relay(server) as relay,
        closing(Store(replace(server, clickhouse_url=relay.url, clickhouse_database="default"))) as store,
    ):
        version = store.server_version()
        relay.hangs.set()
        begun, waiting = time.monotonic(), pool.submit(store.server_version)
        with deadline(0.5, store.slots), pytest.raises(Busy):
            store.query("read_free_room")
        with pytest.raises(StoreUnavailable, match="does not answer"):
            store.probe(0.5)
        with deadline(PATIENCE, store.slots), pytest.raises(StoreUnavailable, match="does not answer"):
            store.query("read_free_room")
        assert time.monotonic() - begun < 2 * slack()
        assert not waiting.done()
        relay.hangs.clear()
        store.probe(PATIENCE)
        with deadline(PATIENCE, store.slots):
            assert store.query("read_free_room").height == 1
        # What was sent while it hung is lost, and asked again once the connection ends.
        relay.drop()
        assert waiting.result(PATIENCE) == version
