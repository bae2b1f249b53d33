"""What is made of ClickHouse's answers."""

import io
from typing import cast

import polars as pl
import pytest
from clickhouse_connect.driver.client import Client

from analytics_service.config.settings import Settings
from analytics_service.errors import StoreUnavailable
from analytics_service.store.connection import Store


class Answering(Store):
    """A store whose server answers every query with the same bytes."""

    def __init__(self, body: bytes) -> None:
        super().__init__(Settings())
        self._body = body

    def raw_query(self, *_: object, **__: object) -> bytes:
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
