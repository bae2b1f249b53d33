"""What is made of ClickHouse's answers."""

import io
from typing import cast

import polars as pl
import pytest
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import DatabaseError

from analytics_service.config.settings import Settings
from analytics_service.errors import ServerAway, StoreUnavailable
from analytics_service.store.connection import Store


class Answering(Store):
    """A store whose server answers every query with the same bytes, or the same error."""

    def __init__(self, body: bytes | DatabaseError) -> None:
        super().__init__(Settings())
        self._body = body

    def raw_query(self, *_: object, **__: object) -> bytes:
        if isinstance(self._body, DatabaseError):
            raise self._body
        return self._body

    def _connected(self, *_: object) -> Client:
        return cast(Client, self)


def test_an_answer_that_lacks_its_end_is_refused() -> None:
    """Rows that are not there could not be told from rows that the server did not get to."""
    rows, body = pl.DataFrame({"bytes": [1, 2]}), io.BytesIO()
    rows.write_ipc_stream(body)
    assert Answering(body.getvalue()).frame("server_memory").equals(rows)
    with pytest.raises(StoreUnavailable, match=r"broke off its answer \(query server_memory\)"):
        Answering(body.getvalue()[:-8]).frame("server_memory")


@pytest.mark.parametrize(
    ("code", "kind", "message"),
    [
        (279, StoreUnavailable, r"cannot reach all of its cluster \(query claim\): Refused \(b:9000\)"),
        # Another INSERT into the table is under way on another server: the next attempt may be taken.
        (286, StoreUnavailable, "cannot reach all of its cluster"),
        (289, ServerAway, r"lacks what other replicas have \(query claim\)"),
    ],
)
def test_errors_of_a_cluster_pass(code: int, kind: type[Exception], message: str) -> None:
    error = DatabaseError(f"Code: {code}. DB::Exception: Refused (b:9000) (version 26.9.2.1)", code=code)
    with pytest.raises(StoreUnavailable, match=message) as caught:
        Answering(error).frame("claim")
    assert type(caught.value) is kind
