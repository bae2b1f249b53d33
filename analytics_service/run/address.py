"""The address that the HTTP service listens on."""

import socket
import time

import click

from analytics_service.errors import SettingError
from analytics_service.processes.child import is_orphan
from analytics_service.sockets import listening

_POLL_SECONDS = 0.2
_EVERY_INTERFACE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - names only, nothing listens here


def split_address(bind: str) -> tuple[str, int]:
    """Host and port of `host:port` or `[host]:port`."""
    host, _, port = bind.rpartition(":")
    return host.strip("[]"), int(port)


def local_address(bind: str) -> tuple[str, int]:
    """Host and port at which this machine reaches a service that listens on `host:port`."""
    host, port = split_address(bind)
    return _EVERY_INTERFACE.get(host, host), port


def local_url(bind: str) -> str:
    """The URL at which this machine reaches an HTTP service that listens on `host:port`."""
    host, port = local_address(bind)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def require_free(bind: str, patience: float = 30.0) -> None:
    """SettingError when nothing can listen on `host:port`.

    For `patience` seconds it waits for processes of a service that was killed, which serve their last clients.
    """
    deadline = time.monotonic() + patience
    told = False
    while (fault := _fault(bind)) is not None:
        _, port = split_address(bind)
        if time.monotonic() > deadline or not any(is_orphan(pid) for pid in listening(port)):
            raise SettingError(
                f"Nothing can listen on {bind} ({fault}). "
                f"Stop what does, or name another address, such as --bind 127.0.0.1:{port % 65535 + 1}."
            )
        if not told:
            click.echo(f"Waiting for {bind}, which processes of a service that was killed still use; Ctrl-C to stop.")
            told = True
        time.sleep(_POLL_SECONDS)


def _fault(bind: str) -> str | None:
    """Why nothing can listen there; None when something can."""
    host, port = split_address(bind)
    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError as error:
        return error.strerror
    return None
