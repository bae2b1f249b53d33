"""Child processes that run this Python and end with their parent process, even when that is killed."""

import os
import select
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

# Set for children whose standard input is a pipe that their parent holds open while it lives.
_VARIABLE = "_ANALYTICS_SUPERVISED"


class Child(subprocess.Popen[bytes]):
    """A child process that leads a session of its own and should end when its standard input ends."""

    def end_input(self) -> None:
        """Close the child's standard input, which asks some children to stop."""
        if self.stdin is not None:
            self.stdin.close()

    def ends_within(self, seconds: float) -> bool:
        """Wait for the child to end; False when it still runs after this many seconds."""
        try:
            self.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self) -> None:
        """Kill the child and every process of its session, such as gunicorn's workers, and wait for the child."""
        if self.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)
            self.wait()


def start_python(
    arguments: Sequence[str],
    environ: Mapping[str, str],
    *,
    output: int | None = None,
    pass_fds: Sequence[int] = (),
) -> Child:
    """Start this Python with arguments, such as `-m module`.

    `output` is a file descriptor for the child's standard output and error; with None it shares this process's.
    """
    return Child(
        [sys.executable, "-P", *arguments],
        env={**environ, "PYTHONPATH": _path(environ), _VARIABLE: "1"},
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=output,
        pass_fds=pass_fds,
        # Ctrl-C in the terminal reaches the parent only, which then stops its children in order.
        start_new_session=True,
    )


def end_with_parent() -> None:
    """Make this process stop, as on SIGTERM, once its supervising parent is gone. Without a supervisor, do nothing."""
    if os.environ.pop(_VARIABLE, None):
        threading.Thread(target=_watch_parent, name="parent-watcher", daemon=True).start()


def is_orphan(pid: int) -> bool:
    """Whether a process was started by start_python and its parent is gone. If so, it is about to end."""
    try:
        # Opening the child's standard input takes nothing from it.
        descriptor = os.open(f"/proc/{pid}/fd/0", os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        return False
    try:
        events = select.poll()
        events.register(descriptor, 0)
        return stat.S_ISFIFO(os.fstat(descriptor).st_mode) and bool(events.poll(0))
    finally:
        os.close(descriptor)


def _watch_parent() -> None:
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _path(environ: Mapping[str, str]) -> str:
    """A PYTHONPATH that begins with this very copy of the package, installed or not."""
    root = str(Path(__file__).resolve().parents[2])
    return os.pathsep.join(filter(None, [root, environ.get("PYTHONPATH", "")]))
