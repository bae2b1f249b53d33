"""The only access to ClickHouse, embedded or not: HTTP through clickhouse-connect, with Arrow columns."""

import io
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, BinaryIO, TypeVar, cast

import polars as pl
import urllib3
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import (
    ClickHouseError,
)
from clickhouse_connect.driver.summary import QuerySummary

from analytics_service.clickhouse.client import connect, ping, pools_for
from analytics_service.clickhouse.cluster import Cluster
from analytics_service.clickhouse.errors import Retries, translate
from analytics_service.clickhouse.queries import Placeholders, named_query
from analytics_service.clickhouse.running import KEPT_FREE, LOST_WRITES, address_of, require_running, server_of
from analytics_service.concurrency import QuerySlots, SingleFlight, cap_timeout, remaining
from analytics_service.config.settings import WORKER_THREADS, Settings
from analytics_service.errors import DiskFull, QuorumPending, StoreUnavailable

log = logging.getLogger(__name__)

# The last bytes of an Arrow stream. Polars reads a truncated stream without an error, and a server that dies while it
# answers may send an empty body.
_END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"
# Seconds between attempts while replicas wait for each other.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 1.0
# Bytes of a stream to read at a time.
_CHUNK = 2**18
# Query slots of a process, and threads of a worker that never wait for a slot: they serve states of the past, which
# wait for each other, probes, and answers from memory.
_AT_ONCE, _FREE_THREADS = 4, 80

_INSERT = {
    # A batch of a long history touches many months.
    "max_partitions_per_insert_block": 0,
    # Null in a column that is not nullable is an error. By default ClickHouse writes 0 or an empty string.
    "input_format_null_as_default": 0,
}

_T = TypeVar("_T")
# Measures a named query.
Measure = Callable[[str], AbstractContextManager[None]]


class Store:
    """Access to ClickHouse. It connects on first use, so it may be created before a fork, but not used.

    Queries hold a slot of `line`, and wait for it until the request's deadline (rule 8.9, query slots). `author` is the
    command line of the writer, which corrections record.
    """

    def __init__(self, settings: Settings, measure: Measure = lambda query: nullcontext(), author: str = "") -> None:
        self.author = author
        self._measure = measure
        self.database = settings.clickhouse_database
        self.slots = QuerySlots(_AT_ONCE, WORKER_THREADS - _FREE_THREADS)
        self.price_max_age = timedelta(seconds=settings.price_max_age)
        self.events_lateness = settings.events_lateness
        self._settings = settings
        self._pools = pools_for(settings)
        self._clients: dict[str, Client] = {}
        self._connecting = SingleFlight(self._clients)
        self._layout: Cluster | None = None
        # Whether the thread's writes are checked later, at the end of a block.
        self._checked = threading.local()
        self._last_count = (0, 0)

    @property
    def layout(self) -> Cluster:
        if self._layout is None:
            with self._client("layout"):
                pass
        return self._layout or Cluster()

    def query(self, query: str, parts: Placeholders = (), **parameters: object) -> pl.DataFrame:
        """The rows of a named query; see `named_query` for `parts`. DateTime columns arrive as UInt32 unix seconds."""
        with self.slots.acquire(), self._measure(query):
            body = self._retried(partial(self._arrow, query, parts, parameters))
        return pl.read_ipc_stream(body)

    def _arrow(self, query: str, parts: Placeholders, parameters: Mapping[str, object]) -> bytes:
        with self._client(f"query {query}") as client:
            body = client.raw_query(
                named_query(query, parts),
                parameters=dict(parameters),
                fmt="ArrowStream",
                settings={
                    **self._limited,
                    "output_format_arrow_compression_method": "none",
                    # By default the driver makes the server buffer complete answers. A truncated answer raises anyway.
                    "wait_end_of_query": 0,
                    "log_comment": query,
                },
            )
        if not body.endswith(_END_OF_STREAM):
            raise StoreUnavailable(f"ClickHouse broke off its answer (query {query}).")
        return body

    def insert(self, table: str, rows: pl.DataFrame) -> None:
        """Write all rows as one batch. The driver may send it twice, so tables must tolerate duplicates."""
        if rows.is_empty():
            return
        operation, block = f"insert into {table}", _stream(rows)

        def write() -> None:
            with self._client(operation) as client:
                client.raw_insert(
                    table,
                    column_names=rows.columns,
                    insert_block=block,
                    fmt="ArrowStream",
                    settings=self._inserting(table),
                )

        with self.together(operation):
            self._retried(write)

    def insert_if(self, table: str, rows: pl.DataFrame, condition: str, **parameters: object) -> bool:
        """Write all rows as one batch if an SQL condition holds when ClickHouse processes the INSERT. Returns whether
        it did. The values of the condition are bound from the parameters."""
        if rows.is_empty():
            return True
        operation, block, columns = f"insert into {table}", _stream(rows), ", ".join(rows.columns)
        statement = (
            f"INSERT INTO {table} ({columns}) SELECT {columns} FROM input() WHERE {condition} FORMAT ArrowStream"
        )

        def write() -> bool:
            with self._client(operation) as client:
                settings = self._inserting(table)
                summary = client.command(statement, parameters=parameters, data=block, settings=settings)
                return cast(QuerySummary, summary).written_rows > 0

        with self.together(operation):
            return self._retried(write)

    def _inserting(self, table: str) -> dict[str, Any]:
        return {**_INSERT, **self._limited, "log_comment": f"insert {table}"}

    def _retried(self, act: Callable[[], _T]) -> _T:
        """Call a function again while replicas wait for each other: they refuse a statement before they execute it."""
        return Retries(cap_timeout(self._settings.query_timeout), _FIRST_PAUSE, _LONGEST_PAUSE, (QuorumPending,))(act)

    def stream(self, query: str, parts: Placeholders, output: str, /, **parameters: object) -> Iterator[bytes]:
        """The rows of a named query in one of ClickHouse's formats, in chunks. StoreUnavailable for a truncated answer,
        unless it is empty, which a server that died may send."""
        with self._client(f"query {query}") as client:
            stream = client.raw_stream(
                named_query(query, parts),
                parameters=parameters,
                fmt=output,
                settings={**self._limited, "wait_end_of_query": 0, "log_comment": query},
            )
            with closing(cast(BinaryIO, stream)) as body:
                while chunk := body.read(_CHUNK):
                    yield chunk

    def execute(self, statement: str, *, in_database: bool = True) -> None:
        """Execute a statement without an answer, such as DDL, with its placeholders filled. The service's database must
        exist, unless `in_database` is false."""
        for each in self.layout.rendered(statement, self.database):
            self.command(each, in_database=in_database)

    def run(self, query: str, parts: Placeholders = (), **parameters: object) -> None:
        """Execute a named statement without an answer."""
        self._carry_out(f"statement {query}", named_query(query, parts), query, parameters=parameters)

    def command(self, statement: str, *, in_database: bool = True) -> None:
        """Execute a statement without placeholders."""
        self._carry_out("statement", statement, use_database=in_database)

    def _carry_out(self, operation: str, statement: str, comment: str = "", **options: Any) -> None:
        """Execute a statement without an answer, within the time limit of a query."""
        settings = {**self._limited, "log_comment": comment or operation}

        def act() -> None:
            with self._writing(operation) as client:
                client.command(statement, settings=settings, **options)

        self._retried(act)

    @property
    def _limited(self) -> dict[str, Any]:
        """The setting that bounds a statement by the thread's deadline and the time limit of a query."""
        return {"max_execution_time": cap_timeout(self._settings.query_timeout)}

    def require_room(self, needed: int = 2**20) -> None:
        """DiskFull if the embedded server lacks `needed` free bytes, of which an INSERT reserves 1 MiB. It keeps
        KEPT_FREE more for definitions, because a full disk truncates them without an error."""
        if self._is_embedded and (free := self.query("read_free_room")["bytes"].item()) < needed:
            some, all_ = ((size + KEPT_FREE) / 2**20 for size in (free, needed))
            raise DiskFull(f"at most {some:,.0f} MiB are free, {all_:,.0f} MiB are needed")

    def server_version(self) -> str:
        """The server's version, such as 26.9.2.1."""
        with self._client("version") as client:
            return str(client.command("SELECT version()", settings=self._limited, use_database=False))

    def sibling(self, database: str) -> "Store":
        """Access to another database on the server. Close it after use."""
        return Store(replace(self._settings, clickhouse_database=database))

    def close(self) -> None:
        self._clients.clear()
        # The driver does not close connections of a pool of ours, and a stopping server waits for them.
        self._pools.clear()

    def probe(self, seconds: float) -> None:
        """Ping ClickHouse. StoreUnavailable, and no query slots, while it does not answer within `seconds`."""
        try:
            ping(self._pools, server_of(self._settings).url, seconds)
        except StoreUnavailable as error:
            self.slots.cause = str(error)
            raise
        self.slots.cause = ""

    @contextmanager
    def together(self, operation: str) -> Iterator[None]:
        """Check the thread's writes once at the end of the block, instead of after each statement.

        DiskFull if the embedded server has lost a write of any client since the last check (rule 9.5, lost writes);
        StoreUnavailable if it was restarted, since then nobody knows.
        """
        if not self._is_embedded or getattr(self._checked, "later", False):
            yield
            return
        before = self._last_count
        if before[0] != require_running(self._settings.data_dir).server:
            before = self._lost_writes(operation)
        self._checked.later = True
        try:
            yield
        finally:
            self._checked.later = False
        if (after := self._lost_writes(operation)) != before:
            same_server = after[0] == before[0]
            raise DiskFull(operation) if same_server else StoreUnavailable(f"ClickHouse was restarted ({operation}).")

    @contextmanager
    def _writing(self, operation: str) -> Iterator[Client]:
        with self.together(operation), self._client(operation) as client:
            yield client

    @property
    def _is_embedded(self) -> bool:
        return self._settings.clickhouse_url is None

    def _lost_writes(self, operation: str) -> tuple[int, int]:
        """The process of the embedded server, and how many writes it has lost."""
        server, lost = 0, 0
        with self._client(operation) as client:
            # The count is this server's only if it runs before and after the query.
            while server != (running := require_running(self._settings.data_dir).server):
                count = client.command(LOST_WRITES, settings={"log_queries": 0}, use_database=False)
                server, lost = running, int(cast(int, count))
        self._last_count = server, lost
        return self._last_count

    @contextmanager
    def _client(self, operation: str) -> Iterator[Client]:
        """The client for a statement; connects on first use. Errors of the driver become ours, here and nowhere
        else."""
        try:
            yield self._connecting.get("client", self._connect)
        except (ClickHouseError, urllib3.exceptions.HTTPError, OSError) as error:
            ours = translate(error, operation, address_of(self._settings))
            if remaining() == 0:
                # The deadline has passed, which does not mean that the server is away.
                raise self.slots.refusal() from ours
            raise ours from error

    def _connect(self) -> Client:
        client, self._layout = connect(self._settings, self._pools)
        return client


def _stream(rows: pl.DataFrame) -> bytes:
    """Rows as a single record batch of an Arrow stream, which ClickHouse inserts atomically."""
    body = io.BytesIO()
    rows.rechunk().write_ipc_stream(body, compression="uncompressed")
    return body.getvalue()
