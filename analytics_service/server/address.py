"""The addresses that the HTTP service listens on."""

import errno
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from gunicorn.util import parse_address

from analytics_service.config.settings import Settings
from analytics_service.errors import SettingError

# Environment variable with the file descriptors of the sockets that `up` and `serve` pass to gunicorn.
SOCKETS = "_ANALYTICS_SOCKETS"
_POLL_SECONDS = 0.1
# Seconds to wait for the addresses of a service that is just ending.
_PATIENCE = 3.0
_LOCAL = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104 - names only, nothing listens here
# Only the owner and the group, such as a proxy's, may connect to a Unix socket.
_SOCKET_MODE = 0o660


def local_url(bind: str) -> str:
    """The URL of an HTTP service for clients on this machine, without the path of a Unix socket."""
    host, _, port = bind.rpartition(":")
    return "http://localhost" if host == "unix" else f"http://{_LOCAL.get(host, host)}:{port}"


def connect_to(bind: str, seconds: float) -> socket.socket:
    """A connection to the service that listens on an address of this machine. OSError if none listens."""
    kind, address = _socket_address(bind)
    connection = socket.socket(kind)
    connection.settimeout(seconds)
    try:
        connection.connect(address)
    except OSError:
        connection.close()
        raise
    return connection


@contextmanager
def is_bound(settings: Settings, patience: float = _PATIENCE) -> Iterator[list[socket.socket]]:
    """Sockets bound to the addresses of the settings during the block. gunicorn makes them listen.

    SettingError if an address cannot be bound within `patience` seconds.
    """
    with ExitStack() as stack:
        sockets = []
        for option, bind in zip(("--bind", "ANALYTICS_METRICS_BIND"), settings.binds, strict=False):
            sockets.append(_bound_within(patience, bind, option))
            stack.callback(release_socket, sockets[-1], bind)
        yield sockets


def release_socket(listener: socket.socket, bind: str) -> None:
    """Close a socket of `is_bound` and remove its path, unless it is already closed."""
    if listener.fileno() != -1:
        listener.close()
        if bind.startswith("unix:"):
            Path(bind.removeprefix("unix:")).unlink(missing_ok=True)


def _bound_within(seconds: float, bind: str, option: str) -> socket.socket:
    deadline = time.monotonic() + seconds
    while True:
        try:
            return _bound(bind)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() > deadline:
                advice = f"Stop what uses it, or name another address with {option}."
                raise SettingError(f"Nothing can listen on {bind}: {error.strerror}. {advice}") from error
        time.sleep(_POLL_SECONDS)


def _bound(bind: str) -> socket.socket:
    kind, address = _socket_address(bind)
    if kind == socket.AF_UNIX and Path(address).is_socket():
        with socket.socket(kind) as client:
            client.settimeout(_POLL_SECONDS)
            if client.connect_ex(address) == errno.ECONNREFUSED:
                # The process that listened here was killed.
                Path(address).unlink()
    listener = socket.socket(kind)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if kind == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind(address)
        if kind == socket.AF_UNIX:
            Path(address).chmod(_SOCKET_MODE)
    except OSError:
        listener.close()
        raise
    return listener


def _socket_address(bind: str) -> tuple[socket.AddressFamily, Any]:
    address = parse_address(bind)
    if isinstance(address, str):
        return socket.AF_UNIX, address
    return (socket.AF_INET6 if ":" in address[0] else socket.AF_INET), address
