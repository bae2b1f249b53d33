"""The addresses that the HTTP service listens on."""

import errno
import socket
import time
from pathlib import Path

from analytics_service.config.settings import Settings
from analytics_service.config.values import endpoint
from analytics_service.errors import SettingError

# Environment variable with the file descriptors of the sockets that `up` and `serve` hand to their gunicorns.
SOCKETS = "_ANALYTICS_SOCKETS"
_POLL_SECONDS = 0.1
_PATIENCE = 3.0
_EVERY_INTERFACE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - names only, nothing listens here
# Connections that may wait to be accepted; gunicorn's default.
_BACKLOG = 2048
_LAST_PORT = 65_535
# Only the owner and the group, such as that of a proxy, may connect to a Unix socket.
_SOCKET_MODE = 0o660


def split_address(bind: str) -> tuple[str, int]:
    """Host and port of `host:port` or `[host]:port`."""
    host, _, port = bind.rpartition(":")
    return host.strip("[]"), int(port)


def local_address(bind: str) -> tuple[str, int]:
    """Host and port at which this machine reaches a service that listens on `host:port`."""
    host, port = split_address(bind)
    return _EVERY_INTERFACE.get(host, host), port


def local_url(bind: str) -> str:
    """The URL at which this machine reaches an HTTP service, for a Unix socket without its path."""
    if isinstance(endpoint(bind), str):
        return "http://localhost"
    host, port = local_address(bind)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def connected(bind: str, seconds: float) -> socket.socket:
    """A connection to the service that listens on an address of this machine. OSError when there is none."""
    path = endpoint(bind)
    if not isinstance(path, str):
        return socket.create_connection(local_address(bind), seconds)
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(seconds)
    try:
        connection.connect(path)
    except OSError:
        connection.close()
        raise
    return connection


def require_free(settings: Settings, patience: float = _PATIENCE) -> None:
    """SettingError if an address of the settings cannot be listened on."""
    for bind in settings.binds:
        release(listen(bind, settings, patience))


def listen(bind: str, settings: Settings, patience: float = _PATIENCE) -> socket.socket:
    """A socket that listens on an address. SettingError when that is not possible, or not within `patience` seconds,
    which a service that was killed takes to leave it."""
    deadline = time.monotonic() + patience
    while True:
        try:
            return _listening(bind)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() > deadline:
                raise _refused(bind, settings, error) from error
        time.sleep(_POLL_SECONDS)


def release(listener: socket.socket) -> None:
    """Close a socket of `listen`, and remove its path."""
    path = listener.getsockname()
    if isinstance(path, str):
        Path(path).unlink(missing_ok=True)
    listener.close()


def _listening(bind: str) -> socket.socket:
    path = endpoint(bind)
    if isinstance(path, str):
        return _listening_at(Path(path))
    host, port = split_address(bind)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
    return socket.create_server((host, port), family=family, backlog=_BACKLOG, dualstack_ipv6=both)


def _listening_at(path: Path) -> socket.socket:
    if _is_abandoned(path):
        path.unlink()
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(str(path))
        # Before it listens, nobody can connect.
        path.chmod(_SOCKET_MODE)
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def _is_abandoned(path: Path) -> bool:
    """Whether a path is a socket's whose process was killed."""
    if not path.is_socket():
        return False
    with socket.socket(socket.AF_UNIX) as client:
        # Connecting to one whose queue is full would block.
        client.setblocking(False)
        return client.connect_ex(str(path)) == errno.ECONNREFUSED


def _refused(bind: str, settings: Settings, error: OSError) -> SettingError:
    """The error for an address that nothing can listen on. Its message says what to do."""
    option = "--bind " if bind == settings.bind else "ANALYTICS_METRICS_BIND="
    if isinstance(endpoint(bind), str):
        stop = "Stop what uses it, or name" if error.errno == errno.EADDRINUSE else "Name"
        advice = f"{stop} another path, in a folder of this user, with {option.strip(' =')}."
        return SettingError(f"Nothing can listen on {bind}: {error.strerror}. {advice}")
    host, port = split_address(bind)
    at = f"[{host}]" if ":" in host else host
    another_port = port + 10 if port + 10 <= _LAST_PORT else port - 10
    advice = {
        errno.EADDRINUSE: f"Stop what uses it, or name another port, such as {option}{at}:{another_port}.",
        errno.EACCES: f"Name a port that needs no privileges, such as {option}{at}:{port + 8000}.",
    }.get(error.errno or 0, f"Name an address of this machine, such as {option}127.0.0.1:{port}.")
    # Python repeats the address in its message.
    reason = str(error.strerror).partition(" (while ")[0]
    return SettingError(f"Nothing can listen on {bind}: {reason}. {advice}")
