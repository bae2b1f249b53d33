"""Which of several servers is asked, and how long anybody waits for it."""

import io
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import polars as pl
import pytest
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import DatabaseError
from urllib3 import HTTPConnectionPool, HTTPResponse
from urllib3.exceptions import ReadTimeoutError

from analytics_service.config.settings import Settings
from analytics_service.errors import Busy, ServerAway, StoreUnavailable
from analytics_service.market.share import within
from analytics_service.store.connection import Store
from analytics_service.store.failover import Failover
from analytics_service.store.layout import Layout
from tests.processes import PATIENCE, until

A, B, C = "http://a:8123", "http://b:8123", "http://c:8123"
ROWS = io.BytesIO()
pl.DataFrame({"bytes": [1, 2]}).write_ipc_stream(ROWS)


class Asked:
    """Servers at `now`, a second of a clock."""

    def __init__(self, url: str | None) -> None:
        self.now = 100.0
        self.failover = Failover(Settings(clickhouse_url=url), lambda: self.now)

    @property
    def urls(self) -> list[str | None]:
        return [server.settings.clickhouse_url for server in self.failover.candidates()]

    def lose(self, url: str) -> bool:
        return self.failover.lose(next(one for one in self.failover.candidates() if one.url == url))

    def ping(self, url: str, *, answers: bool) -> None:
        self.failover.note(next(one for one in self.failover.candidates() if one.url == url), answers=answers)


def test_servers_are_tried_in_their_order() -> None:
    asked = Asked(f"{A},{B}")
    assert asked.urls == [A, B]
    assert asked.failover.has_several


def test_without_a_url_there_is_the_server_of_the_data_folder() -> None:
    asked = Asked(None)
    assert asked.urls == [None]
    assert not asked.failover.has_several


def test_a_server_that_was_lost_comes_last_until_it_has_answered_for_half_a_minute() -> None:
    asked = Asked(f"{A},{B},{C}")
    assert (asked.lose(A), asked.urls) == (True, [B, C, A])
    asked.now += 1
    assert (asked.lose(B), asked.urls) == (True, [C, A, B])
    asked.now += 29
    asked.ping(A, answers=True)
    assert asked.urls == [C, A, B]
    asked.now += 2
    asked.ping(A, answers=True)
    asked.ping(B, answers=False)
    assert asked.urls == [A, C, B]
    asked.now += 29
    asked.ping(B, answers=True)
    assert (asked.lose(B), asked.urls) == (False, [A, C, B])


def test_a_trusted_server_may_miss_a_ping() -> None:
    """It may not be needed just now."""
    asked = Asked(f"{A},{B}")
    asked.ping(A, answers=False)
    assert asked.urls == [A, B]


class Fake:
    """A server's client. It answers queries and pings, hangs, also but for pings, or fails with an error."""

    def __init__(self, error: Exception | None = None) -> None:
        self.answers, self.asked, self.error = threading.Event(), threading.Event(), error
        self.answers.set()
        self.hangs_within, self.written = False, 0
        self.http = self

    def raw_query(self, *_: object, **__: object) -> bytes:
        self.asked.set()
        assert self.answers.wait(PATIENCE)
        if self.error:
            raise self.error
        return ROWS.getvalue()

    def raw_stream(self, *_: object, **__: object) -> "Fake":
        return self

    read = raw_query

    def raw_insert(self, *_: object, **__: object) -> None:
        self.raw_query()
        self.written += 1

    def request(self, *_: object, **__: object) -> HTTPResponse:
        if not self.hangs_within:
            self.command()
        return HTTPResponse(b"Ok.\n")

    def command(self, *_: object, **__: object) -> None:
        """The answer to a ping, or one that is longer."""
        if not self.answers.wait(0.1):
            raise ReadTimeoutError(HTTPConnectionPool("a"), "/ping", "Read timed out.")

    def close_connections(self) -> None:
        """There are none."""

    close = close_connections


@pytest.fixture
def fakes() -> Iterator[list[Fake]]:
    made = [Fake(), Fake(), Fake()]
    yield made
    for fake in made:
        fake.answers.set()


def store_over(fakes: list[Fake], query_timeout: int = 20) -> Store:
    """A store that has reached all servers."""
    store = Store(Settings(clickhouse_url=",".join([A, B, C][: len(fakes)]), query_timeout=query_timeout))
    store._layout = Layout()
    for server, fake in zip(store._failover.candidates(), fakes, strict=True):
        server.client(lambda fake=fake: cast(Client, fake))
    return store


def order(store: Store) -> list[str]:
    return [server.url for server in store._failover.candidates()]


def read(store: Store) -> int:
    """The rows that a request reads."""
    with within(PATIENCE):
        return store.frame("free_room").height


def test_who_waits_for_a_server_that_hangs_asks_the_next_that_answers(
    fakes: list[Fake], caplog: pytest.LogCaptureFixture
) -> None:
    store = store_over(fakes)
    for hanging in fakes[:2]:
        hanging.answers.clear()
    with ThreadPoolExecutor(6) as pool:
        waiting = [pool.submit(read, store) for _ in range(6)]
        assert fakes[0].asked.wait(PATIENCE)
        store.probe(PATIENCE)
        assert [one.result(PATIENCE) for one in waiting] == [2] * 6
    assert not fakes[1].asked.is_set()
    assert order(store) == [C, A, B]
    assert store.servers == {A: False, B: False, C: True}
    assert caplog.messages == [
        f"ClickHouse at {url} cannot be reached: it does not answer. Asking the next server." for url in (A, B)
    ]


@pytest.mark.parametrize("hangs", ["wholly", "within answers"])
def test_where_nobody_probes_who_waits_does_so_and_asks_the_next(
    fakes: list[Fake], hangs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs and commands have no thread that looks at the store."""
    monkeypatch.setattr("analytics_service.store.failover._GLANCE", 0.05)
    store = store_over(fakes[:2])
    fakes[0].answers.clear()
    fakes[0].hangs_within = hangs == "within answers"
    store.insert("observation", pl.DataFrame({"value": [1]}))
    assert [fake.written for fake in fakes] == [0, 1, 0]
    assert order(store) == [B, A]
    assert store.frame("free_room").height == 2


def test_while_no_server_answers_all_in_line_are_refused_and_those_who_read_wait_on(fakes: list[Fake]) -> None:
    """On a busy machine a ping may take longer than a query."""
    store = store_over(fakes)
    for hanging in fakes:
        hanging.answers.clear()
    with ThreadPoolExecutor(4) as pool:
        reading = [pool.submit(read, store) for _ in range(4)]
        until(lambda: store.line._free == 0)
        away = " ".join(f"ClickHouse at {url} cannot be reached: it does not answer." for url in (A, B, C))
        with pytest.raises(ServerAway, match=f"^{away}$"):
            store.probe(0.2)
        with pytest.raises(ServerAway, match="does not answer"):
            read(store)
        assert not any(one.done() for one in reading)
        fakes[0].answers.set()
        assert [one.result(PATIENCE) for one in reading] == [2] * 4
    store.probe(PATIENCE)
    assert read(store) == 2


def test_a_request_has_one_budget_for_all_servers(fakes: list[Fake]) -> None:
    store = store_over(fakes)
    fakes[0].error = fakes[1].error = ConnectionRefusedError(111, "Connection refused")
    fakes[2].answers.clear()
    with within(0.05), pytest.raises(Busy):
        store.frame("free_room")
    assert fakes[2].asked.is_set()
    assert order(store) == [C, A, B]


def test_other_reads_last_no_longer_than_a_query(fakes: list[Fake]) -> None:
    store = store_over(fakes[:1], query_timeout=0)
    fakes[0].answers.clear()
    with pytest.raises(StoreUnavailable, match=r"at http://a:8123 did not answer in time \(query free_room, 0\.\d s\)"):
        store.frame("free_room")


def test_a_stream_ends_when_nothing_more_comes(fakes: list[Fake], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its server answers pings."""
    monkeypatch.setattr("analytics_service.store.connection._CHUNK_SECONDS", 0.05)
    store = store_over(fakes[:2])
    fakes[0].hangs_within = True
    chunks = store.stream("backup_rows")
    assert next(chunks) == ROWS.getvalue()
    fakes[0].answers.clear()
    with pytest.raises(
        StoreUnavailable, match=r"at http://a:8123 did not answer in time \(query backup_rows, 0\.\d s\)"
    ):
        next(chunks)


def test_a_replica_that_lacks_rows_is_not_lost(fakes: list[Fake]) -> None:
    store = store_over(fakes)
    fakes[0].error = DatabaseError("Code: 289. DB::Exception: Replica lacks a part", code=289)
    assert read(store) == 2
    assert fakes[1].asked.is_set()
    assert order(store) == [A, B, C]
