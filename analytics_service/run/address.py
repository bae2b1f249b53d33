"""The addresses that the HTTP service listens on."""

import socket

from analytics_service.config import Settings
from analytics_service.errors import SettingError

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


def require_free(settings: Settings) -> None:
    """SettingError when nothing can listen on one of the addresses that the settings name."""
    _require_free(settings.bind, "--bind ")
    if settings.metrics_port is not None:
        _require_free(settings.metrics_bind, "ANALYTICS_METRICS_BIND=")


def _require_free(bind: str, option: str) -> None:
    host, port = split_address(bind)
    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError as error:
        raise SettingError(
            f"Nothing can listen on {bind} ({error.strerror}). "
            f"Stop what does, or name another address, such as {option}127.0.0.1:{port % 65525 + 10}."
        ) from error
