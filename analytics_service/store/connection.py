"""The only connection to ClickHouse, embedded or not: HTTP through clickhouse-connect, with columns as Arrow."""

import io
import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import Context
from dataclasses import replace
from datetime import timedelta
from functools import partial
from math import inf
from typing import Any, BinaryIO, TypeVar, cast

import polars as pl
import urllib3
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import (
    ClickHouseError,
    DatabaseError,
)
from clickhouse_connect.driver.httpclient import HttpClient
from clickhouse_connect.driver.summary import QuerySummary

from analytics_service.config.settings import WORKER_THREADS, Settings
from analytics_service.errors import (
    AnalyticsError,
    Busy,
    DiskFull,
    QuorumPending,
    ServerAway,
    StoreUnavailable,
)
from analytics_service.market.share import ends_at, in_thread, seconds_left, within
from analytics_service.store.client import connect
from analytics_service.store.failover import Endpoint, Failover, fault_of, first_answer
from analytics_service.store.layout import Layout
from analytics_service.store.line import Line
from analytics_service.store.reach import ping
from analytics_service.store.refusals import is_left_to_others, reason_of, translated
from analytics_service.store.retries import Retries
from analytics_service.store.server import LOST_WRITES, require_running, server_of
from analytics_service.store.sql import Parts, named_query

log = logging.getLogger(__name__)

# The last bytes of an Arrow stream. Polars reads a truncated stream without an error, and a server that dies while it
# answers may send an empty body.
_END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"
# Seconds in which a server must accept the first connection and answer, if another server can be asked instead.
_SECONDS_OF_SEVERAL = 1
# Seconds between attempts while replicas wait for each other.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 1.0
# Bytes of a stream that are read at a time, and the seconds that this may take.
_CHUNK, _CHUNK_SECONDS = 2**18, 30.0
# Queries of requests that a process sends at once, and threads of a worker that never wait for queries.
_AT_ONCE, _FREE_THREADS = 4, 8
# Seconds after which a server that has not answered is to blame for a request that is late.
_NOTABLE_SECONDS = 1.0
# Where nobody else probes the servers: seconds from one probe to the next, and those in which they must answer.
_PROBE_INTERVAL, _PROBE_SECONDS = 2.0, 1.2
# Of some size, which a server, or a network, that passes only the beginnings of answers does not pass.
_LONG_ANSWER = "SELECT randomPrintableASCII(20000)"
# Seconds that a query may at least run: ClickHouse takes 0 for no limit.
_LEAST_SECONDS = 0.01

_INSERT = {
    # A batch of a long history touches many months.
    "max_partitions_per_insert_block": 0,
    # Null in a column that is not nullable is an error. By default ClickHouse writes 0 or an empty string.
    "input_format_null_as_default": 0,
}

_T = TypeVar("_T")
# Measures a named query for the duration of the context.
Measure = Callable[[str], AbstractContextManager[None]]


class Store:
    """Access to ClickHouse. It connects on first use, so it may be created before a fork, but not used.

    Reads of requests wait in `line`, and no longer than their request has time (rule 8.9). `author` is the command line
    of whoever writes, as corrections name it.
    """

    def __init__(self, settings: Settings, measure: Measure = lambda query: nullcontext(), author: str = "") -> None:
        self.author = author
        self._measure = measure
        self.database = settings.clickhouse_database
        self.line = Line(_AT_ONCE, WORKER_THREADS - _FREE_THREADS)
        self.price_max_age = timedelta(seconds=settings.price_max_age)
        self.events_lateness = settings.events_lateness
        self._settings = settings
        self._failover = Failover(settings)
        self._layout: Layout | None = None
        # Whether the thread's writes are checked at the end of a block.
        self._checked = threading.local()
        self._probed_at = 0.0
        self._watching = threading.Lock()
        # By table. Replicas refuse a second INSERT at the same time.
        self._turns: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    @property
    def layout(self) -> Layout:
        """How the tables are spread over servers."""
        if self._layout is None:
            with self._client("layout"):
                pass
        return self._layout or Layout()

    @property
    def servers(self) -> Mapping[str, bool]:
        """Whether each of several servers answered the last probe, by URL; empty for one."""
        return self._failover.answering if self._failover.has_several else {}

    def frame(self, query: str, parts: Parts = (), **parameters: object) -> pl.DataFrame:
        """The rows of a named query, as of `named_query`. DateTime columns arrive as UInt32 unix seconds."""
        with self.line.turn(), self._measure(query):
            body = self._read(f"query {query}", partial(self._arrow, query, parts, parameters))
        return pl.read_ipc_stream(body)

    def _read(self, operation: str, ask: Callable[[Client, float], _T]) -> _T:
        """What the first server answers that does, within the time of the request, or else that of a query.

        `ask` gets its client, and the seconds that are left. While replicas wait for each other, it is called again.
        """
        ends = min(ends_at(), time.monotonic() + self._settings.query_timeout)
        return self._patiently(partial(self._first_answer, operation, ask, ends))

    def _first_answer(self, operation: str, ask: Callable[[Client, float], _T], ends: float) -> _T:
        if self._failover.has_lost_any:
            self._watch()
        tried: list[Endpoint] = []
        while True:
            # Their order may have changed meanwhile.
            server, *others = [each for each in self._failover.candidates() if each not in tried]
            tried.append(server)
            try:
                return self._asked(server, operation, ask, ends)
            except (ServerAway, QuorumPending):
                if not others:
                    raise

    def _asked(self, server: Endpoint, operation: str, ask: Callable[[Client, float], _T], ends: float) -> _T:
        begun = time.monotonic()
        left = max(ends - begun, _LEAST_SECONDS)

        def answer() -> _T:
            with self._using(server, operation) as client:
                return ask(client, left)

        try:
            return server.ask(answer, begun + left, self._watch)
        except (TimeoutError, Busy):
            waited = time.monotonic() - begun
            late = self._late(server, operation, waited)
            if seconds_left() == 0:
                # Else it went in line, or in computing.
                raise self.line.refusal() from (late if waited >= _NOTABLE_SECONDS else None)
            server.forget()
            raise late from None

    def _arrow(self, query: str, parts: Parts, parameters: Mapping[str, object], client: Client, left: float) -> bytes:
        """The rows of a named query as an Arrow stream, in the seconds that are left."""
        body = client.raw_query(
            named_query(query, parts),
            parameters=dict(parameters),
            fmt="ArrowStream",
            settings={
                "max_execution_time": left,
                **self.layout.timeouts,
                "output_format_arrow_compression_method": "none",
                # By default the driver makes the server buffer complete answers. That is not needed, because a
                # truncated answer raises anyway.
                "wait_end_of_query": 0,
                "log_comment": query,
            },
        )
        if not body.endswith(_END_OF_STREAM):
            raise StoreUnavailable(f"ClickHouse broke off its answer (query {query}).")
        return body

    def insert(self, table: str, rows: pl.DataFrame) -> None:
        """Write all rows as one batch. The driver may send it twice, and to the next server when one hangs, so tables
        must absorb repeats."""
        if rows.is_empty():
            return
        operation, block = f"insert into {table}", _stream(rows)

        def write(client: Client, _: float) -> None:
            client.raw_insert(
                table,
                column_names=rows.columns,
                insert_block=block,
                fmt="ArrowStream",
                settings=self._inserting(table),
            )

        with self._turns[table], self.together(operation):
            self._patiently(partial(self._first_answer, operation, write, inf))

    def insert_if(self, table: str, rows: pl.DataFrame, condition: str, **parameters: object) -> bool:
        """Write all rows as one batch if an SQL condition holds when ClickHouse processes the insert. Returns whether
        it did.

        The values of the condition are bound from the parameters.
        """
        if rows.is_empty():
            return True
        operation, block, columns = f"insert into {table}", _stream(rows), ", ".join(rows.columns)
        statement = (
            f"INSERT INTO {table} ({columns}) SELECT {columns} FROM input() WHERE {condition} FORMAT ArrowStream"
        )

        def write(client: Client, _: float) -> bool:
            settings = self._inserting(table)
            summary = client.command(statement, parameters=parameters, data=block, settings=settings)
            return cast(QuerySummary, summary).written_rows > 0

        def write_once() -> bool:
            # The condition need not hold after a repeat.
            return self._asked(self._reached(operation), operation, write, inf)

        with self._turns[table], self.together(operation):
            return self._patiently(write_once)

    def _inserting(self, table: str) -> dict[str, Any]:
        """Settings of an INSERT of rows."""
        return {**_INSERT, **self._limited, "log_comment": f"insert {table}"}

    def _patiently(self, act: Callable[[], _T]) -> _T:
        """The result of a function, which is called again while replicas wait for each other: they refuse a statement
        before they begin with it."""
        seconds = min(ends_at() - time.monotonic(), self._settings.query_timeout)
        return Retries(seconds, _FIRST_PAUSE, _LONGEST_PAUSE, (QuorumPending,))(act)

    def stream(self, query: str, parts: Parts = (), output: str = "Native", /, **parameters: object) -> Iterator[bytes]:
        """The rows of a named query in one of ClickHouse's formats, in chunks.

        StoreUnavailable for a truncated answer. An answer without any bytes is not detected as truncated, although it
        may come from a server that died.
        """
        operation = f"query {query}"
        server = self._reached(operation)

        def open_stream(client: Client) -> BinaryIO:
            stream = client.raw_stream(
                named_query(query, parts),
                parameters=parameters,
                fmt=output,
                settings={**self._limited, "wait_end_of_query": 0, "log_comment": query},
            )
            return cast(BinaryIO, stream)

        def asked(seconds: float, act: Callable[[Client], _T]) -> _T:
            return self._asked(server, operation, lambda client, _: act(client), time.monotonic() + seconds)

        body = asked(self._settings.client_timeout, open_stream)
        try:
            while chunk := asked(_CHUNK_SECONDS, lambda _: body.read(_CHUNK)):
                yield chunk
        finally:
            # It waits for a thread that still reads.
            in_thread(body.close)

    def insert_native(self, table: str, chunks: Generator[bytes]) -> None:
        """Write rows in the Native format, as `stream` yields them, into an empty table."""
        with self._writing(f"insert into {table}") as client:
            client.raw_insert(
                table,
                insert_block=chunks,
                fmt="Native",
                settings={"max_partitions_per_insert_block": 0, "log_comment": f"insert {table}"},
            )

    def execute(self, statement: str, *, in_database: bool = True) -> None:
        """Execute a statement without an answer, such as DDL, as the layout demands; not `in_database`, outside of the
        service's, which may not exist yet."""
        for each in self.layout.rendered(statement, self.database):
            self.command(each, in_database=in_database)

    def run(self, query: str, parts: Parts = (), **parameters: object) -> None:
        """Execute a named statement without an answer."""
        self._carry_out(f"statement {query}", named_query(query, parts), query, parameters=parameters)

    def command(self, statement: str, *, in_database: bool = True) -> None:
        """Execute a statement as it is."""
        self._carry_out("statement", statement, use_database=in_database)

    def _carry_out(self, operation: str, statement: str, comment: str = "", **options: Any) -> None:
        """Execute a statement without an answer, within the time limit of a query. It does not wait for a replica that
        is away, which executes it when it is back."""
        settings = {**self._limited, "log_comment": comment or operation}

        def act() -> object:
            with self._writing(operation) as client:
                try:
                    return client.command(statement, settings=settings, **options)
                except DatabaseError as error:
                    if not is_left_to_others(error):
                        raise
                    log.warning("%s", reason_of(error))
                    return None

        answer = self._patiently(act)
        if away := self.layout.left_out(answer):
            log.warning("%s is away, and executes this when it is back: %s", ", ".join(away), statement.splitlines()[0])
            self._require_all_shards(away, operation)

    def _require_all_shards(self, away: Sequence[str], operation: str) -> None:
        """StoreUnavailable if no server of a shard has executed a statement."""
        layout = self.layout
        if layout.is_split and self.frame("lost_shards", cluster=layout.cluster, servers=list(away))["lost"].item():
            raise StoreUnavailable(f"A shard of cluster {layout.cluster} is away ({operation}): {', '.join(away)}.")

    @property
    def _limited(self) -> dict[str, Any]:
        """The setting that bounds a statement."""
        return {"max_execution_time": self._settings.query_timeout}

    def require_room(self, needed: int = 2**20) -> None:
        """DiskFull when the embedded server has no room for so many bytes; an INSERT reserves at least 1 MiB. It does
        not refuse to create tables then, but loses their definitions."""
        if self._is_embedded and (free := self.frame("free_room")["bytes"].item()) < needed:
            raise DiskFull(f"{free / 2**20:,.0f} MiB are free, {needed / 2**20:,.0f} MiB are needed")

    def server_version(self) -> str:
        """The server's version, such as 26.9.2.1."""
        return self._read("version", lambda client, _: str(client.command("SELECT version()", use_database=False)))

    def sibling(self, database: str) -> "Store":
        """Another database on the same server, to be closed after use."""
        return Store(replace(self._settings, clickhouse_database=database))

    def close(self) -> None:
        """Close all connections."""
        for server in self._failover.candidates():
            server.forget()

    def probe(self, seconds: float) -> None:
        """Make sure that a server answers, within so many seconds; while none does, the line is closed. All are asked
        side by side. Those who wait for one that is slower than a later one by a moment are told to ask that.

        ServerAway if none answers.
        """
        begun, servers = time.monotonic(), self._failover.candidates()
        pings = [in_thread(partial(self._ping, server, seconds)) for server in servers]
        first = first_answer(servers, pings, begun, seconds)
        self._probed_at = time.monotonic()
        # Those of all, if none answers.
        faults = [(server, fault_of(server, pinged)) for server, pinged in zip(servers[:first], pings, strict=False)]
        if first is None:
            for _, fault in faults:
                if not isinstance(fault, StoreUnavailable):
                    raise fault
            cause = " ".join(sorted(str(fault) for _, fault in faults))
            self.line.close(cause)
            raise ServerAway(cause)
        for server, fault in faults:
            self._lose(server, fault)
        for server, fault in faults:
            server.release(str(fault))
        self.line.open()

    def _watch(self) -> None:
        """Have the servers probed, if there are several and nobody has done so lately. Those who wait call this, as not
        every process has a thread that looks at the store."""
        is_due = self._failover.has_several and time.monotonic() - self._probed_at > _PROBE_INTERVAL
        if is_due and self._watching.acquire(blocking=False):
            # It has nothing of the context of who waits, such as its time.
            Context().run(in_thread, self._probe_for_others)

    def _probe_for_others(self) -> None:
        try:
            # Those who wait are told.
            with suppress(AnalyticsError):
                self.probe(_PROBE_SECONDS)
        finally:
            self._watching.release()

    def _ping(self, server: Endpoint, seconds: float) -> None:
        """Make sure that a server answers, and has a client."""
        answers = False
        try:
            with within(seconds, gate=None), self._translated(server, "probe"):
                client = cast(HttpClient, self._client_of(server))
                ping(client.http, server_of(server.settings).url, seconds)
                server.pinged_at = time.monotonic()
                if self._failover.has_several and server.is_in_doubt:
                    _require_long_answer(client)
            answers = True
        finally:
            self._failover.note(server, answers=answers)

    def _reached(self, operation: str) -> Endpoint:
        """The first server that accepts a connection, for a statement that is not repeated elsewhere; else the last."""
        *others, last = self._failover.candidates()
        for server in others:
            with suppress(ServerAway), self._using(server, operation):
                return server
        return last

    @contextmanager
    def _client(self, operation: str) -> Iterator[Client]:
        with self._using(self._reached(operation), operation) as client:
            yield client

    @contextmanager
    def together(self, operation: str) -> Iterator[None]:
        """Check what this thread writes in the block at its end, instead of each statement by itself.

        DiskFull when the embedded server has lost any of it, or of what else it wrote meanwhile (rule 9.5), and
        StoreUnavailable when it was restarted, after which nobody knows.
        """
        if not self._is_embedded or getattr(self._checked, "later", False):
            yield
            return
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
        """A client for a statement that writes."""
        with self.together(operation), self._client(operation) as client:
            yield client

    @property
    def _is_embedded(self) -> bool:
        return self._settings.clickhouse_url is None

    def _lost_writes(self, operation: str) -> tuple[int, int]:
        """The process of the embedded server, and how many writes it has lost."""
        with self._client(operation) as client:
            lost = cast(int, client.command(LOST_WRITES, settings={"log_queries": 0}, use_database=False))
            return require_running(self._settings.data_dir).server, int(lost)

    @contextmanager
    def _using(self, server: Endpoint, operation: str) -> Iterator[Client]:
        """The client of a server. One that is away is asked last from then on."""
        try:
            with self._translated(server, operation):
                yield self._client_of(server)
        except ServerAway as error:
            # The refusal of a line that was closed meanwhile says nothing of this server.
            if str(error) != self.line.cause:
                self._lose(server, error)
            raise

    def _client_of(self, server: Endpoint) -> Client:
        """The client of a server, which is made unless there is one."""

        def make() -> Client:
            client, self._layout = connect(server.settings, _SECONDS_OF_SEVERAL if self._failover.has_several else None)
            return client

        return server.client(make)

    @contextmanager
    def _translated(self, server: Endpoint, operation: str) -> Iterator[None]:
        """Translate driver exceptions into ours, here and nowhere else."""
        try:
            yield
        except (ClickHouseError, urllib3.exceptions.HTTPError, OSError, StoreUnavailable) as error:
            if seconds_left() == 0:
                # The request's time is over, which does not say that the server is away.
                raise Busy from None
            if isinstance(error, StoreUnavailable):
                raise
            raise translated(error, operation, server.url, is_split=self._is_split) from error

    def _late(self, server: Endpoint, operation: str, seconds: float) -> StoreUnavailable:
        is_alone = not (self._is_split and server.answers)
        hint = "" if is_alone else " Perhaps another server of its cluster hangs."
        return StoreUnavailable(
            f"ClickHouse at {server.url} did not answer in time ({operation}, {seconds:.1f} s).{hint}"
        )

    @property
    def _is_split(self) -> bool:
        return self._layout is not None and self._layout.is_split

    def _lose(self, server: Endpoint, error: BaseException) -> None:
        """Ask other servers first. The next use of this one makes sure that it answers."""
        if self._failover.has_several:
            if self._failover.lose(server):
                log.warning("%s Asking the next server.", error)
            server.forget()


def _require_long_answer(client: Client) -> None:
    try:
        client.command(_LONG_ANSWER, settings={"log_queries": 0}, use_database=False)
    except DatabaseError as error:
        # ClickHouse's refusal, such as of too many queries at once, has a code, and is an answer.
        if error.code is None:
            raise


def _stream(rows: pl.DataFrame) -> bytes:
    """Rows as a single record batch of an Arrow stream, which ClickHouse inserts atomically."""
    body = io.BytesIO()
    rows.rechunk().write_ipc_stream(body, compression="uncompressed")
    return body.getvalue()
