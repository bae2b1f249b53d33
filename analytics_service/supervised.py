"""Child processes that end with the process that started them, also when that one is killed."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

# Set for children whose standard input is a pipe that their supervisor holds open for as long as it lives.
_VARIABLE = "_ANALYTICS_SUPERVISED"


def python(
    arguments: Sequence[str],
    environ: Mapping[str, str],
    *,
    output: int | None = None,
    pass_fds: Sequence[int] = (),
) -> "subprocess.Popen[bytes]":
    """Start this Python with arguments, such as `-m module`; its end of input is the end of this process.

    `output` is a file descriptor for its standard output and error; None leaves them as they are.
    """
    return subprocess.Popen(
        [sys.executable, "-P", *arguments],
        env={**environ, "PYTHONPATH": _path(environ), _VARIABLE: "1"},
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=output,
        pass_fds=pass_fds,
        # Ctrl-C in the terminal is for the supervisor, which then stops its children in order.
        start_new_session=True,
    )


def end_with_supervisor() -> None:
    """Have this process stop as on SIGTERM when its supervisor is gone; does nothing without one."""
    if os.environ.pop(_VARIABLE, None):
        threading.Thread(target=_watch, name="supervisor-watcher", daemon=True).start()


def _watch() -> None:
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _path(environ: Mapping[str, str]) -> str:
    """This very copy of the package comes first on the child's path, installed or not."""
    package = str(Path(__file__).resolve().parents[1])
    return os.pathsep.join(filter(None, [package, environ.get("PYTHONPATH", "")]))


def replace_process(arguments: Sequence[str], environ: Mapping[str, str]) -> NoReturn:
    """Go on as this Python with other arguments, in the same process."""
    sys.stdout.flush()
    sys.stderr.flush()
    environ = {**environ, "PYTHONPATH": _path(environ)}
    os.execve(sys.executable, [sys.executable, "-P", *arguments], environ)  # noqa: S606 - no shell is wanted
