"""What is made of ClickHouse's answers."""

import io
import socket
from collections.abc import Sequence
from contextlib import closing, suppress
from time import monotonic, sleep
from typing import cast

import polars as pl
import pytest
import urllib3
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import DatabaseError
from clickhouse_connect.driver.httputil import all_managers
from urllib3.exceptions import ReadTimeoutError

from analytics_service.config.settings import Settings
from analytics_service.errors import QuorumPending, StoreUnavailable
from analytics_service.market.share import in_thread, within
from analytics_service.store.client import connect, pools_for
from analytics_service.store.connection import Store
from analytics_service.store.layout import Layout

URL = "http://a:8123"


class Answering(Store):
    """A store whose server gives one answer after the other: bytes, or an error; the last of them again and again."""

    def __init__(
        self, *answers: bytes | DatabaseError, layout: Layout | None = None, client: Client | None = None
    ) -> None:
        super().__init__(Settings(clickhouse_url=URL))
        self._layout = layout or Layout()
        self._answers = [*answers]
        self._clients["client"] = client or cast(Client, self)

    def raw_query(self, *_: object, **__: object) -> bytes:
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, DatabaseError):
            raise answer
        return answer


def error(code: int, reason: str) -> DatabaseError:
    return DatabaseError(f"Code: {code}. DB::Exception: {reason} (version 26.9.2.1)", code=code)


def rows() -> bytes:
    body = io.BytesIO()
    pl.DataFrame({"bytes": [1, 2]}).write_ipc_stream(body)
    return body.getvalue()


def test_an_answer_that_lacks_its_end_is_refused() -> None:
    """Rows that are not there could not be told from rows that the server did not get to."""
    assert Answering(rows()).frame("free_room")["bytes"].to_list() == [1, 2]
    with pytest.raises(StoreUnavailable, match=r"broke off its answer \(query free_room\)"):
        Answering(rows()[:-8]).frame("free_room")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        # Another INSERT into the table is under way on another server.
        (286, r"at http://a:8123 still takes another INSERT into the table \(query claim\)"),
        (289, r"at http://a:8123 lacks what other replicas have \(query claim\)"),
    ],
)
def test_what_waits_for_other_replicas_is_tried_again_in_a_moment(code: int, message: str) -> None:
    refusal = error(code, "Quorum")
    assert Answering(refusal, rows()).frame("free_room").height == 2
    with within(0.5), pytest.raises(QuorumPending, match=message):
        Answering(refusal).frame("claim")


_SHARDS = Layout(cluster="main", shards=3)
_TIMED_OUT = "Timeout exceeded while reading from socket"


@pytest.mark.parametrize(
    ("code", "reason", "message"),
    [
        # As a server said it of a shard that hung, died, or ran out of time.
        (
            279,
            f"All connection tries failed. Log: \n\n{_TIMED_OUT} (socket (127.0.0.1:13138), receive timeout 1000 ms)"
            "\n\n: While executing Remote.",
            r"ClickHouse at http://a:8123 cannot reach 127.0.0.1:13138 of its cluster \(query claim\): All conn",
        ),
        (
            279,
            "All connection tries failed. Log: \n\nCode: 210. DB::NetException: Connection refused "
            "(shard-3.example:9000, local address: 10.0.0.1:51082).",
            "cannot reach shard-3.example:9000 of its cluster",
        ),
        (
            209,
            f"{_TIMED_OUT} (127.0.0.1:19333, receive timeout 2000 ms): While executing Remote.",
            "127.0.0.1:19333 of",
        ),
        (
            209,
            f"{_TIMED_OUT} (peer: [::1]:13138, local: [::1]:59296, 1000 ms): Insertion status:\nWrote 1 blocks and "
            "334 rows on shard 0 replica 0, 127.0.0.1:14359",
            r"cannot reach \[::1\]:13138 of",
        ),
        (999, "Coordination error: Connection loss, path /clickhouse.", "cannot reach all of its cluster"),
        (
            159,
            "Received from 127.0.0.1:19333. DB::Exception: Timeout exceeded: elapsed 9495.131 ms.",
            r"ClickHouse at 127.0.0.1:19333 cannot answer now \(query claim\)",
        ),
        (241, "Memory limit (total) exceeded.", r"ClickHouse at http://a:8123 cannot answer now \(query claim\)"),
    ],
)
def test_of_several_servers_the_one_that_fails_is_named(code: int, reason: str, message: str) -> None:
    store = Answering(error(code, reason), layout=_SHARDS)
    with pytest.raises(StoreUnavailable, match=message) as caught:
        store.frame("claim")
    assert type(caught.value) is StoreUnavailable


def test_a_single_server_that_waits_for_its_client_names_nobody_else() -> None:
    store = Answering(error(209, f"{_TIMED_OUT} (peer: 127.0.0.1:59296, local: 127.0.0.1:8123, 1000 ms)"))
    with pytest.raises(StoreUnavailable, match=r"at http://a:8123 cannot answer now"):
        store.frame("claim")


class Executing:
    """The client of a cluster's server: what it answers to DDL, as rows, and the settings that it was sent."""

    def __init__(self, answer: Sequence[str] | DatabaseError) -> None:
        self._answer = answer
        self.settings: dict[str, object] = {}

    def command(self, *_: object, settings: dict[str, object], **__: object) -> list[str]:
        """As the driver has it: values between tabs, with those between lines unparted."""
        self.settings = settings
        if isinstance(self._answer, DatabaseError):
            raise self._answer
        return "\n".join(self._answer).split("\t")

    def raw_query(self, *_: object, parameters: dict[str, list[str]], **__: object) -> bytes:
        """How many of three shards with two servers each are lost."""
        body = io.BytesIO()
        lost = sum({f"a{number}:9000", f"b{number}:9000"} <= {*parameters["servers"]} for number in range(3))
        pl.DataFrame({"lost": [lost]}).write_ipc_stream(body)
        return body.getvalue()


def executing(answer: Sequence[str] | DatabaseError) -> tuple[Store, Executing]:
    client = Executing(answer)
    return Answering(b"", layout=_SHARDS, client=cast(Client, client)), client


def test_ddl_goes_on_without_a_server_that_is_away_and_names_it(caplog: pytest.LogCaptureFixture) -> None:
    """Columns as ClickHouse has them: host, port, status, error, how many are left, and how many work on it."""
    store, client = executing(["a0\t9000\t0\t\t1\t0", "b0\t9000\t\\N\t\\N\t1\t0"])
    store.command("DROP TABLE t ON CLUSTER 'main'\nSYNC")
    assert caplog.messages == ["b0:9000 is away, and executes this when it is back: DROP TABLE t ON CLUSTER 'main'"]
    assert client.settings["max_execution_time"] == 20


def test_ddl_that_no_server_of_a_shard_has_executed_is_tried_again() -> None:
    """Else the next statements would meet rows of that shard which this one should have changed."""
    store, _ = executing(["a1\t9000\t\\N\t\\N\t2\t0", "b1\t9000\t\\N\t\\N\t2\t0", "a0\t9000\t0\t\t1\t0"])
    with pytest.raises(StoreUnavailable, match=r"^A shard of cluster main is away \(statement\): a1:9000, b1:9000\."):
        store.command("DELETE FROM t_local ON CLUSTER 'main' WHERE true")


def test_a_replica_that_is_away_deletes_rows_when_it_is_back(caplog: pytest.LogCaptureFixture) -> None:
    reason = "Mutation is not finished because some replicas are inactive right now: r2. It will be done asynchronously"
    store, _ = executing(error(341, reason))
    store.command("DELETE FROM t WHERE true")
    assert caplog.messages == [reason]


def test_ddl_that_servers_are_slow_with_tells_which() -> None:
    reason = "Distributed DDL task /ddl/query-1 is not finished on 1 of 3 hosts"
    store, _ = executing(error(159, reason))
    with pytest.raises(StoreUnavailable, match=rf"cannot answer now \(statement\): {reason}"):
        store.command("DROP TABLE t ON CLUSTER 'main'")


def test_the_driver_keeps_no_connections_of_attempts_to_connect() -> None:
    """There is one each second while ClickHouse is away, and one that a thread makes at exit would break that."""
    before = {*all_managers}
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    with pytest.raises(StoreUnavailable):
        connect(settings := Settings(clickhouse_url=url), pools_for(settings))
    assert {*all_managers} == before


def test_a_server_may_take_rows_more_slowly_than_a_connection() -> None:
    """As one that waits for a majority of replicas before it reads on."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:

        def read_late() -> None:
            with listener.accept()[0] as taken:
                sleep(0.3)
                end = b""
                while end != b"0\r\n\r\n":
                    end = (end + taken.recv(2**20))[-5:]
                taken.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

        answered = in_thread(read_late)
        timeout = urllib3.Timeout(connect=0.1, read=10)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        pools = pools_for(Settings(clickhouse_url=url))
        assert pools.request("POST", url, body=iter([b"\n" * 2**24]), timeout=timeout).status == 200
        answered.result(10)


@pytest.mark.parametrize(
    "beginning", [b"HTTP/1.1 200 OK\r\nX-Progress: ", b"HTTP/1.1 200 OK\r\n\r\n"], ids=["head", "body"]
)
def test_an_answer_that_comes_byte_by_byte_ends_with_the_time_of_its_request(beginning: bytes) -> None:
    """Each byte comes long before the time-out of a read."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:

        def drip() -> None:
            with listener.accept()[0] as taken, suppress(OSError):
                taken.sendall(beginning)
                for _ in range(100):
                    sleep(0.05)
                    taken.sendall(b"1")

        dripping = in_thread(drip)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        begun, pools = monotonic(), pools_for(Settings(clickhouse_url=url))
        with within(0.3), pytest.raises(ReadTimeoutError):
            pools.request("GET", url, timeout=urllib3.Timeout(connect=10, read=10))
        assert monotonic() - begun < 3
        dripping.result(10)
