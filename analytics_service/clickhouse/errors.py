"""Translates errors of ClickHouse, and of connections to it, into the service's; retries."""

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import urllib3
from clickhouse_connect.driver.exceptions import (
    ClickHouseError,
    DatabaseError,
    OperationalError,
)
from polars.exceptions import PanicException

from analytics_service.clickhouse.client import cause_of, unreachable
from analytics_service.errors import (
    AccessDenied,
    AnalyticsError,
    DiskFull,
    QuorumPending,
    SchemaError,
    StoreFailure,
    StoreUnavailable,
)

ANY_FAILURE = (Exception, PanicException)
"""Caught by threads that continue after a failure. Panics of Polars do not derive from Exception."""
_T = TypeVar("_T")
# Transient errors of the server: TOO_MANY_SIMULTANEOUS_QUERIES, TIMEOUT_EXCEEDED, SOCKET_TIMEOUT,
# NETWORK_ERROR, ABORTED (shutting down), MEMORY_LIMIT_EXCEEDED, TABLE_IS_READ_ONLY, TOO_MANY_PARTS.
_PASSING = frozenset({159, 202, 209, 210, 236, 241, 242, 252})
# Transient errors of other servers of a cluster, or of ClickHouse Keeper: ALL_CONNECTION_TRIES_FAILED, NO_ZOOKEEPER,
# TOO_FEW_LIVE_REPLICAS, UNKNOWN_STATUS_OF_INSERT, KEEPER_EXCEPTION, and ATTEMPT_TO_READ_AFTER_EOF if a server ends
# while it answers.
_PASSING_ELSEWHERE = frozenset({32, 225, 279, 285, 319, 999})
# UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE, which wrote nothing, and REPLICA_IS_NOT_IN_QUORUM.
_QUORUM = {286: "is still busy with another INSERT into the table", 289: "lacks rows of other replicas"}
# UNFINISHED, and its message if only replicas that do not answer are left.
_UNFINISHED, _INACTIVE = 341, "some replicas are inactive"
# UNKNOWN_USER, WRONG_PASSWORD, REQUIRED_PASSWORD, AUTHENTICATION_FAILED.
_REFUSED_USER = frozenset({192, 193, 194, 516})
# UNKNOWN_TABLE, UNKNOWN_DATABASE, UNKNOWN_IDENTIFIER in our own queries: the schema is missing or old.
_NO_SCHEMA = frozenset({47, 60, 81})
# NOT_ENOUGH_SPACE, and the message of other errors if the disk is full.
_DISK_FULL, _NO_SPACE = 243, "No space left on device"
# The server's reason for refusing a statement within the driver's message, and the number of characters shown.
_REASON = re.compile(r"DB::Exception: (.+?)(?: \(version [0-9.]+|$)", re.DOTALL)
_REASON_CHARACTERS = 500


class Reporter(Protocol):
    """Shows the progress of a long operation."""

    def stage(self, label: str, total: int) -> None:
        """A stage of `total` units begins; 0 if unknown."""

    def advance(self, count: int) -> None:
        """`count` more units of the stage are done."""


@dataclass(frozen=True, slots=True)
class Retries:
    """Calls a function until it succeeds, for at most `seconds`, then raises its last error. 0 means once.

    Only `errors` are retried. `wait` pauses, and returns true to give up, like `threading.Event.wait`. `on_retry` is
    called with the error before each pause.
    """

    seconds: float = 0.0
    first_pause: float = 1.0
    longest_pause: float = 30.0
    errors: tuple[type[AnalyticsError], ...] = (StoreUnavailable,)
    wait: Callable[[float], bool | None] = field(default_factory=lambda: threading.Event().wait)
    on_retry: Callable[[AnalyticsError], None] = lambda error: None

    def __call__(self, act: Callable[[], _T], /) -> _T:
        begun, pause, paused = time.monotonic(), self.first_pause, 0.0
        while True:
            try:
                return act()
            except self.errors as error:
                # Pauses count in full, even if cut short.
                if max(time.monotonic() - begun, paused) + pause > self.seconds:
                    raise
                self.on_retry(error)
                if self.wait(pause):
                    raise
            paused += pause
            pause = min(2 * pause, self.longest_pause)


# Calls without retrying.
ONCE = Retries()


def translate(error: Exception, operation: str, url: str) -> AnalyticsError:
    """Our exception for an error of the driver, or of a connection to the server at the URL."""
    if not isinstance(error, ClickHouseError):
        return unreachable(url, cause_of(error))
    if not isinstance(error, DatabaseError):
        return StoreFailure(f"ClickHouse could not be used: {operation}.")
    return _of_server(error, operation, url)


def _of_server(error: DatabaseError, operation: str, url: str) -> AnalyticsError:
    if error.code in _NO_SCHEMA:
        return SchemaError(
            f"ClickHouse lacks a table or column of this version ({operation}); run `analytics-service migrate`.",
            reason_of(error),
        )
    if error.code in _REFUSED_USER:
        return AccessDenied(
            f"ClickHouse at {url} rejects the user or the password; "
            "check ANALYTICS_CLICKHOUSE_USER and ANALYTICS_CLICKHOUSE_PASSWORD."
        )
    if error.code == _DISK_FULL or _NO_SPACE in str(error):
        return DiskFull(operation)
    if isinstance(error.__cause__, urllib3.exceptions.ReadTimeoutError):
        return StoreUnavailable(f"ClickHouse at {url} did not answer in time ({operation}).")
    if isinstance(error.__cause__, urllib3.exceptions.HTTPError):
        return unreachable(url, cause_of(error.__cause__))
    if error.code in _QUORUM:
        return QuorumPending(f"ClickHouse at {url} {_QUORUM[error.code]} ({operation}).")
    if error.code in _PASSING_ELSEWHERE or (error.code == _UNFINISHED and _INACTIVE in str(error)):
        return StoreUnavailable(
            f"ClickHouse at {url} cannot reach all servers of its cluster ({operation}): {reason_of(error)}"
        )
    if error.code in _PASSING or (error.code is None and isinstance(error, OperationalError)):
        late = f": {reason_of(error)}" if " DDL task " in str(error) else "."
        return StoreUnavailable(f"ClickHouse at {url} cannot answer now ({operation}){late}")
    if error.code is None:
        return StoreUnavailable(f"The server at {url} is not ClickHouse; check ANALYTICS_CLICKHOUSE_URL.")
    return StoreFailure(f"ClickHouse refused: {operation}: {reason_of(error)}")


def reason_of(error: DatabaseError) -> str:
    """The server's reason for refusing a statement, on one line, without its version and address."""
    match = _REASON.search(str(error))
    return " ".join((match[1] if match else str(error)).split())[:_REASON_CHARACTERS]
