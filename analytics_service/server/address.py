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

# Environment variable with the file descriptors of the sockets that `up` and `serve` hand to their gunicorns.
SOCKETS = "_ANALYTICS_SOCKETS"
_POLL_SECONDS = 0.1
# Seconds in which a service that was killed leaves its addresses.
_PATIENCE = 3.0
_LOCAL = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104 - names only, nothing listens here
# Only the owner and the group, such as that of a proxy, may connect to a Unix socket.
_SOCKET_MODE = 0o660


def local_url(bind: str) -> str:
    """The URL at which this machine reaches an HTTP service, for a Unix socket without its path."""
    host, _, port = bind.rpartition(":")
    return "http://localhost" if host == "unix" else f"http://{_LOCAL.get(host, host)}:{port}"


def connect_to(bind: str, seconds: float) -> socket.socket:
    """A connection to the service that listens on an address of this machine. OSError when there is none."""
    dataset, address = _socket_address(bind)
    connection = socket.socket(dataset)
    connection.settimeout(seconds)
    try:
        connection.connect(address)
    except OSError:
        connection.close()
        raise
    return connection


@contextmanager
def is_bound(settings: Settings, patience: float = _PATIENCE) -> Iterator[list[socket.socket]]:
    """Sockets at the addresses of the settings for the duration of the block. gunicorn makes them listen.

    SettingError if that is not possible, or not within `patience` seconds.
    """
    with ExitStack() as stack:
        sockets = []
        for option, bind in zip(("--bind", "ANALYTICS_METRICS_BIND"), settings.binds, strict=False):
            sockets.append(_bound_within(patience, bind, option))
            stack.callback(release_socket, sockets[-1], bind)
        yield sockets


def release_socket(listener: socket.socket, bind: str) -> None:
    """Close a socket of `bound`, and remove its path. Nothing happens if it is closed."""
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
    dataset, address = _socket_address(bind)
    if dataset == socket.AF_UNIX and Path(address).is_socket():
        with socket.socket(dataset) as client:
            client.settimeout(_POLL_SECONDS)
            if client.connect_ex(address) == errno.ECONNREFUSED:
                # The process that listened here was killed.
                Path(address).unlink()
    listener = socket.socket(dataset)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if dataset == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind(address)
        if dataset == socket.AF_UNIX:
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
