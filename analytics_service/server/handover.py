"""Passes listening sockets from a supervisor to the gunicorn that it starts, and reports of ready workers back."""

import contextlib
import os
from collections.abc import Iterable, Sequence

# File descriptors of the sockets to listen on, and of the pipe for reports of ready workers.
_SOCKETS = "_ANALYTICS_LISTENING_SOCKETS"
_READY = "_ANALYTICS_READY"
# Bytes of a report. It is written at once, so that the reports of several workers do not mix.
_MAX_BYTES = 1_000
# gunicorn's variable: another gunicorn started this one, and hands over its sockets.
_GUNICORN_SOCKETS = "GUNICORN_FD"


def variables(listening: Iterable[int], ready: int) -> dict[str, str]:
    """Environment variables that tell a gunicorn which file descriptors it inherits."""
    return {_SOCKETS: " ".join(map(str, listening)), _READY: str(ready)}


def gunicorn_binds(binds: Sequence[str]) -> list[str]:
    """gunicorn's `bind`: the sockets that were handed over, or else each address."""
    handed_over = os.environ.get(_SOCKETS, "").split()
    if not handed_over or _GUNICORN_SOCKETS in os.environ:
        return list(binds)
    return [f"fd://{number}" for number in handed_over]


def is_supervised() -> bool:
    """Whether a supervisor started this gunicorn. It starts another gunicorn when the operator wants new code."""
    return _READY in os.environ


def report_ready(workers: int, reason: str = "") -> None:
    """Tell the supervisor, if there is one, that this worker is ready, and how many workers there will be. `reason`
    says why the worker cannot answer from the store; empty if it can."""
    if ready := os.environ.get(_READY):
        # The supervisor listens only until all of the first workers are ready.
        with contextlib.suppress(OSError):
            line = " ".join([str(workers), *reason.split()])
            os.write(int(ready), line.encode()[:_MAX_BYTES] + b"\n")


def all_ready(reported: bytes) -> bool:
    """Whether all workers that there will be have reported that they are ready."""
    reports = reported.count(b"\n")
    return reports > 0 and reports >= int(reported.split(maxsplit=1)[0])


def obstacle(reported: bytes) -> str:
    """Why a worker that has reported cannot answer from the store; empty if all can."""
    reasons = (line.decode(errors="replace").partition(" ")[2] for line in reported.splitlines())
    return next(filter(None, reasons), "")
