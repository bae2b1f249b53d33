"""The only connection to ClickHouse, embedded or not: HTTP through clickhouse-connect, with columns as Arrow."""

import io
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from urllib.parse import urlsplit

import clickhouse_connect
import polars as pl
import urllib3
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import (
    ClickHouseError,
    DatabaseError,
    OperationalError,
)
from clickhouse_connect.driver.httputil import get_pool_manager

from analytics_service.config import Settings
from analytics_service.errors import SchemaError, StoreFailure, StoreUnavailable
from analytics_service.store.sql import Parts, named_query

# Errors of the server that may pass: TOO_MANY_SIMULTANEOUS_QUERIES, TIMEOUT_EXCEEDED, SOCKET_TIMEOUT,
# NETWORK_ERROR, ABORTED (shutting down), MEMORY_LIMIT_EXCEEDED, TABLE_IS_READ_ONLY, TOO_MANY_PARTS.
_PASSING = frozenset({159, 202, 209, 210, 236, 241, 242, 252})
# UNKNOWN_USER, WRONG_PASSWORD, REQUIRED_PASSWORD, AUTHENTICATION_FAILED.
_REFUSED_USER = frozenset({192, 193, 194, 516})
# UNKNOWN_TABLE, UNKNOWN_DATABASE, UNKNOWN_IDENTIFIER in our own queries: the schema is missing or older.
_NO_SCHEMA = frozenset({47, 60, 81})
# The last bytes of an Arrow stream. Polars takes one that lacks them for a shorter one, and an empty body may arrive
# from a server that dies as it answers.
_END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"
_CLIENT_MARGIN = 5
# Connections for jobs and for background loaders, in addition to one for each request thread.
_BESIDE_REQUESTS = 6

# Measures the query of a name for the duration of the context.
Measure = Callable[[str], AbstractContextManager[None]]


class Store:
    """ClickHouse as the service uses it. It connects on first use, so it may be created before a fork, but not used."""

    def __init__(self, settings: Settings, measure: Measure = lambda query: nullcontext()) -> None:
        self._measure = measure
        self.database = settings.clickhouse_database
        self._settings = settings
        self._client: Client | None = None
        self._lock = threading.Lock()

    def frame(self, query: str, parts: Parts = (), **parameters: object) -> pl.DataFrame:
        """The rows of a named query. DateTime columns arrive as UInt32 unix seconds.

        `parts` fills the placeholders of the query; see `named_query`.
        """
        with self._measure(query):
            return self._read(query, parts, parameters)

    def _read(self, query: str, parts: Parts, parameters: Mapping[str, object]) -> pl.DataFrame:
        with _translated(f"query {query}"):
            body = self._connected().raw_query(
                named_query(query, parts),
                parameters=dict(parameters),
                fmt="ArrowStream",
                settings={
                    "max_execution_time": self._settings.query_timeout,
                    "output_format_arrow_compression_method": "none",
                    # The driver would have the server hold answers back until they are complete. A truncated answer
                    # raises anyway.
                    "wait_end_of_query": 0,
                    "log_comment": query,
                },
            )
        if not body.endswith(_END_OF_STREAM):
            raise StoreUnavailable(f"ClickHouse broke off its answer (query {query}).")
        return pl.read_ipc_stream(body)

    def insert(self, table: str, rows: pl.DataFrame) -> None:
        """Write all rows as one batch. The driver may send it twice, so tables must absorb repeats."""
        if rows.is_empty():
            return
        body = io.BytesIO()
        rows.write_ipc_stream(body, compression="uncompressed")
        with _translated(f"insert into {table}"):
            self._connected().raw_insert(
                table,
                column_names=rows.columns,
                insert_block=body.getvalue(),
                fmt="ArrowStream",
                settings={
                    # Rows come in batches already; the server need not collect them.
                    "async_insert": 0,
                    # A batch of long history touches many months.
                    "max_partitions_per_insert_block": 0,
                    "log_comment": f"insert {table}",
                },
            )

    def execute(self, statement: str) -> None:
        """Run a statement without an answer, such as DDL, in the service's database."""
        with _translated("statement"):
            self._connected().command(statement)

    def execute_outside_database(self, statement: str) -> None:
        """Run a statement outside of the service's database, which may not exist yet."""
        with _translated("statement"):
            self._connected().command(statement, use_database=False)

    def server_version(self) -> str:
        """The server's version, such as 26.9.2.1."""
        with _translated("version"):
            return str(self._connected().command("SELECT version()", use_database=False))

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            if self._client is not None:
                # The pool is ours, so the client leaves its connections open; a server waits for them when it stops.
                self._client.close_connections()
                self._client.close()
                self._client = None

    def _connected(self) -> Client:
        with self._lock:
            if self._client is None:
                self._client = _connect(self._settings)
            return self._client


def _connect(settings: Settings) -> Client:
    if settings.clickhouse_url is None:
        raise StoreUnavailable(
            "No ClickHouse is running here. Start one with `analytics-service up`, or set ANALYTICS_CLICKHOUSE_URL."
        )
    url = urlsplit(settings.clickhouse_url)
    local = url.hostname in ("127.0.0.1", "localhost", "::1")
    client = clickhouse_connect.get_client(
        host=url.hostname,
        port=url.port or 8123,
        interface=url.scheme,
        username=settings.clickhouse_user,
        password=settings.clickhouse_password,
        # Every statement names its database by parameter; connecting must work before the database exists.
        database="default",
        connect_timeout=5,
        send_receive_timeout=settings.query_timeout + _CLIENT_MARGIN,
        compress=not local,
        autogenerate_session_id=False,
        query_limit=0,
        tz_mode="aware",
        # The parameters of a query may be longer than a URL may be.
        form_encode_query_params=True,
        pool_mgr=get_pool_manager(
            ca_cert=settings.clickhouse_ca_cert,
            verify=settings.clickhouse_verify,
            maxsize=settings.threads + _BESIDE_REQUESTS,
            retries=False,
        ),
    )
    client.database = settings.clickhouse_database
    return client


@contextmanager
def _translated(what: str) -> Iterator[None]:
    """Driver exceptions become ours here and nowhere else."""
    try:
        yield
    except DatabaseError as error:
        if error.code in _NO_SCHEMA:
            raise SchemaError(
                f"ClickHouse lacks a table or column this version needs ({what}); run `analytics-service migrate`."
            ) from error
        if error.code in _REFUSED_USER:
            raise StoreFailure(
                "ClickHouse refused the user or password; "
                "check ANALYTICS_CLICKHOUSE_USER and ANALYTICS_CLICKHOUSE_PASSWORD."
            ) from error
        if error.code in _PASSING or (error.code is None and isinstance(error, OperationalError)):
            raise StoreUnavailable(f"ClickHouse cannot answer now ({what}).") from error
        raise StoreFailure(f"ClickHouse refused: {what}.") from error
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise StoreUnavailable(f"ClickHouse cannot be reached ({what}).") from error
    except ClickHouseError as error:
        raise StoreFailure(f"ClickHouse could not be used: {what}.") from error
