"""The address that the HTTP service listens on."""

import socket

from analytics_service.errors import SettingError

_EVERY_INTERFACE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - names only, nothing listens here
# Connections that wait to be accepted, as gunicorn has it.
_BACKLOG = 2048


def listen(bind: str) -> socket.socket:
    """A socket that listens on `host:port`, which was free before. SettingError when something else was faster."""
    host, port = split_address(bind)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG, dualstack_ipv6=both)
    except OSError as error:
        raise SettingError(f"Nothing can listen on {bind} any more ({error.strerror}).") from error


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


def require_free(bind: str) -> None:
    """SettingError when nothing can listen on `host:port`."""
    host, port = split_address(bind)
    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError as error:
        raise SettingError(
            f"Nothing can listen on {bind} ({error.strerror}). "
            f"Stop what does, or name another address, such as --bind 127.0.0.1:{port % 65535 + 1}."
        ) from error
