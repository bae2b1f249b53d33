"""Checks whether ClickHouse answers at all, and explains in plain words why it does not."""

import os
import ssl
from http.client import BadStatusLine, RemoteDisconnected

import urllib3
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    NameResolutionError,
    NewConnectionError,
    ProtocolError,
    ReadTimeoutError,
    SSLError,
    TimeoutError,
)

from analytics_service.errors import StoreUnavailable

# Part of ClickHouse's answer to HTTP on its native port.
_NATIVE_PORT = b"clickhouse-client"


def ping(pools: urllib3.PoolManager, url: str, seconds: float) -> None:
    """StoreUnavailable, with the cause, when nothing at the URL accepts a connection and answers within `seconds` each.

    User and password are not sent. Any answer counts, except that of ClickHouse's native port.
    """
    # Connecting and reading have separate limits, because on a busy machine connecting alone may take a while.
    timeout = urllib3.Timeout(connect=seconds, read=seconds)
    try:
        try:
            answer = pools.request("GET", f"{url}/ping", timeout=timeout, retries=False, redirect=False)
        except ProtocolError:
            # Servers close connections now and then, so the second attempt counts.
            answer = pools.request("GET", f"{url}/ping", timeout=timeout, retries=False, redirect=False)
    except (HTTPError, OSError) as error:
        raise unreachable(url, cause_of(error)) from error
    if _NATIVE_PORT in answer.data:
        raise unreachable(url, "this is the port of the native protocol, and the service needs that of HTTP")


def unreachable(url: str, cause: str) -> StoreUnavailable:
    """The error of a server that cannot be reached."""
    return StoreUnavailable(f"ClickHouse at {url} cannot be reached: {cause}.")


def cause_of(error: BaseException | None) -> str:
    """The reason why a connection failed, or no answer came."""
    reason = error.args[-1] if error is not None and error.args else None
    if isinstance(error, NameResolutionError):
        return "the name of the host is not known"
    if isinstance(error, NewConnectionError):
        return _of_system(error.__cause__)
    if isinstance(error, ConnectTimeoutError):
        return "nothing accepts the connection"
    if isinstance(error, (ReadTimeoutError, TimeoutError)):
        return "it does not answer"
    if isinstance(error, SSLError):
        return _of_tls(reason)
    if isinstance(error, ProtocolError):
        # RemoteDisconnected is a kind of BadStatusLine.
        is_http = isinstance(reason, RemoteDisconnected) or not isinstance(reason, BadStatusLine)
        return "it closed the connection" if is_http else "it does not answer in HTTP; perhaps it expects https"
    return _of_system(error)


def _of_tls(reason: object) -> str:
    if isinstance(reason, ssl.SSLCertVerificationError):
        refused = f"its certificate is refused: {reason.verify_message.rstrip('.')}"
        return f"{refused}; SSL_CERT_FILE may name the file of the authority that signed it"
    if isinstance(reason, ssl.SSLError):
        return "it does not answer in TLS; perhaps it expects http"
    return "TLS failed"


def _of_system(error: BaseException | None) -> str:
    number = error.errno if isinstance(error, OSError) else None
    return os.strerror(number).lower() if number else "the connection failed"
