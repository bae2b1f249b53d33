"""What is made of ClickHouse's answers."""

import io
import socket
from contextlib import closing, suppress
from time import monotonic, sleep
from typing import cast

import polars as pl
import pytest
import urllib3
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import DatabaseError
from urllib3.exceptions import ReadTimeoutError

from analytics_service.clickhouse.client import pools_for
from analytics_service.clickhouse.cluster import Cluster
from analytics_service.clickhouse.connection import Store
from analytics_service.concurrency import deadline, in_thread
from analytics_service.config.settings import Settings
from analytics_service.errors import QuorumPending, StoreUnavailable

URL = "http://a:8123"


class Answering(Store):
    """A store whose server gives one answer after the other: bytes, or an error; the last of them again and again."""

    def __init__(self, *answers: bytes | DatabaseError) -> None:
        super().__init__(Settings(clickhouse_url=URL))
        self._layout = Cluster()
        self._answers = [*answers]
        self._clients["client"] = cast(Client, self)

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
    assert Answering(rows()).query("read_free_room")["bytes"].to_list() == [1, 2]
    with pytest.raises(StoreUnavailable, match=r"broke off its answer \(query read_free_room\)"):
        Answering(rows()[:-8]).query("read_free_room")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        # Another INSERT into the table is under way on another server.
        (286, r"at http://a:8123 is still busy with another INSERT into the table \(query read_owner\)"),
        (289, r"at http://a:8123 lacks rows of other replicas \(query read_owner\)"),
    ],
)
def test_what_waits_for_other_replicas_is_tried_again_in_a_moment(code: int, message: str) -> None:
    refusal = error(code, "Quorum")
    assert Answering(refusal, rows()).query("read_free_room").height == 2
    with deadline(0.5), pytest.raises(QuorumPending, match=message):
        Answering(refusal).query("read_owner")


_TIMED_OUT = "Timeout exceeded while reading from socket"


@pytest.mark.parametrize(
    ("code", "reason", "message"),
    [
        # As a server said it of a shard that hung, died, or ran out of time, and of replicas that are away.
        (
            279,
            f"All connection tries failed. Log: \n\n{_TIMED_OUT} (socket (127.0.0.1:13138), receive timeout 1000 ms)"
            "\n\n: While executing Remote.",
            r"ClickHouse at http://a:8123 cannot reach all servers of its cluster \(query read_owner\): All conn",
        ),
        (209, f"{_TIMED_OUT} (127.0.0.1:19333, receive timeout 2000 ms): While executing Remote.", "cannot answer now"),
        (341, "Mutation is not finished because some replicas are inactive right now: r2.", "cannot reach all servers"),
        (159, "Distributed DDL task /ddl/query-1 is not finished on 1 of 3 hosts", r"now \(query read_owner\): "),
        (241, "Memory limit (total) exceeded.", r"ClickHouse at http://a:8123 cannot answer now \(query read_owner\)"),
    ],
)
def test_what_fails_for_a_while_may_be_tried_again(code: int, reason: str, message: str) -> None:
    store = Answering(error(code, reason))
    with pytest.raises(StoreUnavailable, match=message) as caught:
        store.query("read_owner")
    assert type(caught.value) is StoreUnavailable


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
        with deadline(0.3), pytest.raises(ReadTimeoutError):
            pools.request("GET", url, timeout=urllib3.Timeout(connect=10, read=10))
        assert monotonic() - begun < 3
        dripping.result(10)
