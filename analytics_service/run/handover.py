"""What passes between a supervisor and the gunicorn that it starts: listening sockets, and word that it is ready."""

import contextlib
import os
from collections.abc import Iterable, Sequence

# File descriptors of the sockets to listen on, and one to report ready workers to.
_SOCKETS = "_ANALYTICS_LISTENING_SOCKETS"
_READY = "_ANALYTICS_READY"
# gunicorn's own: it was started by another gunicorn, which hands its sockets over.
_GUNICORN_SOCKETS = "GUNICORN_FD"


def variables(listening: Iterable[int], ready: int) -> dict[str, str]:
    """What the environment of a gunicorn tells it: file descriptors that it inherits."""
    return {_SOCKETS: " ".join(map(str, listening)), _READY: str(ready)}


def to_listen_on(binds: Sequence[str]) -> list[str]:
    """What gunicorn is to listen on: sockets that were handed over, or else each `host:port`."""
    handed_over = os.environ.get(_SOCKETS, "").split()
    if not handed_over or _GUNICORN_SOCKETS in os.environ:
        return list(binds)
    return [f"fd://{number}" for number in handed_over]


def report_ready(workers: int) -> None:
    """Tell the supervisor, if there is one, that this worker is ready, and how many there will be."""
    if ready := os.environ.get(_READY):
        # The supervisor listens only until all of the first workers are ready.
        with contextlib.suppress(OSError):
            os.write(int(ready), b"%d\n" % workers)


def all_ready(reported: bytes) -> bool:
    """Whether as many workers as there will be have reported that they are ready."""
    lines = reported.split()
    return bool(lines) and len(lines) >= int(lines[0])
