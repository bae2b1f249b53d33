"""Starts, watches, restarts and stops child processes that run this Python (rule 9.2, restarts)."""

import logging
import math
import os
import signal
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from analytics_service.concurrency import beside
from analytics_service.errors import AnalyticsError, ProcessError

log = logging.getLogger(__name__)

# Set for children whose standard input is a pipe that their parent keeps open.
_VARIABLE = "_ANALYTICS_SUPERVISED"
# Seconds between checks of children, and after a failed check.
_CHECK_SECONDS, _FAILURE_SECONDS = 0.05, 10.0
_READY_POLL_SECONDS = 0.02
# Seconds between questions whether a running child still answers.
_ASK_SECONDS = 1.0
# Attempts at the first start. The program must adapt something before each further attempt.
_FIRST_STARTS = 3
# Seconds before a restart. They double with each restart in succession, and begin anew after a child has run for a
# minute.
_FIRST_DELAY, _LONGEST_DELAY = 0.1, 30.0
_LONG_LIVED = 60.0


class Child(subprocess.Popen[bytes]):
    """A child process that leads its own session and should end when its standard input ends."""

    def end_input(self) -> None:
        """Close the child's standard input, which asks some children to stop."""
        if self.stdin is not None:
            self.stdin.close()

    def ends_within(self, seconds: float) -> bool:
        """Wait for the child to end; False if it still runs after this many seconds."""
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

    `output` is a file descriptor for the child's standard output and error; None means this process's.
    """
    # The path begins with this copy of the package, installed or not.
    root = str(Path(__file__).resolve().parents[1])
    path = os.pathsep.join(filter(None, [root, environ.get("PYTHONPATH", "")]))
    return Child(
        [sys.executable, "-P", *arguments],
        env={**environ, "PYTHONPATH": path, _VARIABLE: "1"},
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=output,
        pass_fds=pass_fds,
        # Ctrl-C in the terminal reaches only the parent, which then stops its children in order.
        start_new_session=True,
    )


def end_with_parent() -> None:
    """Stop this process, as on SIGTERM, when its supervising parent is gone. Without a supervisor, do nothing."""
    if os.environ.pop(_VARIABLE, None):
        threading.Thread(target=_watch_parent, name="parent-watcher", daemon=True).start()


def _watch_parent() -> None:
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


class Program(ABC):
    """A program that runs as a child process. The defaults suit programs that stop on SIGTERM and share our log."""

    # Follows "The" in messages.
    name: str
    # Seconds from the request to stop until the child and its session are killed.
    grace: float
    # Seconds from launch to the first answer, and between later answers, after which a child is killed. Without a limit
    # it is not asked again.
    ready_seconds = 60.0
    silent_seconds = math.inf
    # The end of a message about a failure.
    where_logged = "See its log lines above."

    @abstractmethod
    def launch(self) -> Child:
        """Start a child process. OSError if the system refuses."""

    def answers(self) -> bool:
        """Whether the running child has finished starting, and has answered since the last call. Returns at once."""
        return True

    def fault(self) -> str:
        """Why a child that answers must be restarted, as the rest of a sentence; empty if it need not be."""
        return ""

    def adapt(self) -> bool:
        """Remove the cause of the last failed start; False if there is nothing to remove. OSError or ProcessError if
        that fails."""
        return False

    def ask_to_stop(self, child: Child) -> None:
        """Begin an orderly stop."""
        child.terminate()

    def explain(self, code: int) -> str:
        """Why the child ended, in full sentences."""
        return f"The {self.name} {end_child(code)}. {self.where_logged}"


def end_child(code: int) -> str:
    """How a process with this exit code ended, as the rest of a sentence."""
    if code == -signal.SIGKILL:
        return "was killed by signal 9, possibly because memory ran out"
    return f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"


class Supervisor:
    """Keeps a program running while check() is called regularly. Another thread may call the other methods."""

    def __init__(
        self,
        program: Program,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._program = program
        self._clock = clock
        self._pause = pause
        self._lock = threading.Lock()
        self._child: Child | None = None
        # When the child was last asked, and its seconds without an answer by then.
        self._asked_at = self._silent = 0.0
        self._ready_at: float | None = None
        self._restart_at: float | None = None
        self._next_delay = _FIRST_DELAY

    def start(self) -> None:
        """Return when the child is ready. ProcessError if the child cannot be started, ends before it is ready, or
        takes too long."""
        for remaining in reversed(range(_FIRST_STARTS)):
            try:
                child = self._launch()
            except OSError as error:
                raise ProcessError(self._not_started(error)) from error
            while not (failure := self._failure(child)) and self._ready_at is None:
                self._pause(_READY_POLL_SECONDS)
            if not failure:
                return
            self._forget()
            if not remaining or not self._program.adapt():
                raise ProcessError(failure)

    def check(self) -> None:
        """Detect that the child has ended or is silent, and restart it after a delay."""
        with self._lock:
            if self._restart_at is not None:
                if self._clock() >= self._restart_at:
                    self._restart()
            elif self._child is not None:
                was_ready = self._ready_at is not None
                if failure := self._failure(self._child):
                    self._schedule_restart(failure)
                elif self._ready_at is not None and not was_ready:
                    log.info("The %s is ready again.", self._program.name)

    def signal(self, number: int) -> None:
        with self._lock:
            if self._child is not None:
                self._child.send_signal(number)

    def replace(self) -> None:
        """Start another child, and close the input of the running one, which then finishes its work. The running child
        continues if the system refuses to start another."""
        with self._lock:
            before = self._child
            try:
                self._launch()
            except OSError as error:
                log.error("%s The running one continues.", self._not_started(error))
                return
            if before is not None:
                before.end_input()

    def stop(self) -> None:
        """Return when the child has stopped, or was killed with its session after the grace period."""
        self._restart_at = None
        if self._child is not None and self._child.poll() is None:
            self._program.ask_to_stop(self._child)
            if not self._child.ends_within(self._program.grace):
                log.warning("The %s did not stop in %.0f s. Killing it.", self._program.name, self._program.grace)
                self._child.kill()
        self._forget()

    def _launch(self) -> Child:
        child = self._program.launch()
        self._child, self._asked_at, self._silent = child, self._clock(), 0.0
        self._restart_at = self._ready_at = None
        return child

    def _restart(self) -> None:
        try:
            self._program.adapt()
            self._launch()
        except (OSError, AnalyticsError) as error:
            self._schedule_restart(self._not_started(error))

    def _failure(self, child: Child) -> str:
        """Why the child ended or was killed; empty while it is healthy. Records when it became ready."""
        program = self._program
        if (code := child.poll()) is not None:
            return program.explain(code)
        self._ask()
        limit = program.ready_seconds if self._ready_at is None else program.silent_seconds
        fault = f"has not answered for {limit:.0f} s" if self._silent >= limit else program.fault()
        if not fault:
            return ""
        child.kill()
        return f"The {program.name} {fault}. {program.where_logged}"

    def _ask(self) -> None:
        """Ask whether the child answers, once it is ready at most once a second. A pause of this process counts as a
        second of silence, so that it does not cost a healthy child."""
        now = self._clock()
        elapsed = now - self._asked_at
        if self._ready_at is not None and (self._program.silent_seconds == math.inf or elapsed < _ASK_SECONDS):
            return
        self._asked_at = now
        self._silent += min(elapsed, _ASK_SECONDS)
        if self._program.answers():
            self._silent = 0.0
            self._ready_at = self._ready_at or now

    def _not_started(self, error: Exception) -> str:
        return f"The {self._program.name} could not be started: {str(error).rstrip('.')}."

    def _schedule_restart(self, failure: str) -> None:
        now = self._clock()
        # The time until it was ready does not count.
        is_long_lived = self._ready_at is not None and now - self._ready_at >= _LONG_LIVED
        delay = _FIRST_DELAY if is_long_lived else self._next_delay
        self._next_delay = min(2 * delay, _LONGEST_DELAY)
        self._forget()
        log.error("%s Restarting it in %s s.", failure, delay)
        self._restart_at = now + delay

    def _forget(self) -> None:
        """Close the pipe of a child that has ended."""
        if self._child is not None:
            self._child.end_input()
        self._child = self._ready_at = None


@contextmanager
def run_children(supervisors: Sequence[Supervisor]) -> Iterator[None]:
    """Start programs in order, keep them running during the block, and stop them in reverse order."""

    def check_all(stop: threading.Event) -> None:
        while not stop.wait(_CHECK_SECONDS):
            try:
                for supervisor in supervisors:
                    supervisor.check()
            except Exception:
                log.exception("A check of child processes failed unexpectedly")
                stop.wait(_FAILURE_SECONDS)

    with ExitStack() as at_end:
        for supervisor in supervisors:
            at_end.callback(supervisor.stop)
            supervisor.start()
        with beside("process-watcher", check_all):
            yield
