"""Starts, watches, restarts and stops child processes that run this Python (rule 9.2, restarts)."""

import logging
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
_ANSWER_POLL_SECONDS = 1.0
# Attempts at the first start. The program must adapt something before each further attempt.
_FIRST_STARTS = 3
# Seconds before the first, second, ... restart in succession. The count restarts after a child has run for a minute.
_DELAYS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0)
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
    # Seconds from launch until a child that is not ready is killed.
    ready_seconds = 60.0
    # Consecutive pings, a second apart, that a running child may miss before it is killed; None means no pings.
    silent_seconds: int | None = None
    # The end of a message about a failure.
    where_logged = "See its log lines above."

    @abstractmethod
    def launch(self) -> Child:
        """Start a child process. OSError if the system refuses."""

    def is_ready(self) -> bool:
        """Whether the running child has finished starting."""
        return True

    def is_answering(self) -> bool:
        """Whether the running child has answered since the last call. Returns at once."""
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

    def release(self) -> None:  # noqa: B027 - most programs have nothing to close
        """Close the resources of a child that has ended."""

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
        delays: Sequence[float] = _DELAYS,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._program = program
        self._delays = delays
        self._clock = clock
        self._pause = pause
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._launched_at = self._ask_at = 0.0
        self._ready_at: float | None = None
        self._restart_at: float | None = None
        self._unanswered = self._restarts = 0

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
                    log.warning("The %s is ready again.", self._program.name)

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
        self._child, self._launched_at = child, self._clock()
        self._restart_at = self._ready_at = None
        self._unanswered = 0
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
        if self._ready_at is None and program.is_ready():
            self._ready_at = self._clock()
        if self._is_silent():
            fault = f"has not answered for {program.silent_seconds} s"
        elif self._ready_at is None and self._clock() - self._launched_at >= program.ready_seconds:
            fault = f"was not ready after {program.ready_seconds:.0f} s"
        else:
            fault = program.fault()
        if not fault:
            return ""
        child.kill()
        return f"The {program.name} {fault}. {program.where_logged}"

    def _is_silent(self) -> bool:
        """Ping the child, at most once a second. A pause of this process counts as one missed answer."""
        silent, now = self._program.silent_seconds, self._clock()
        if silent is None or self._ready_at is None or now < self._ask_at:
            return False
        self._ask_at = now + _ANSWER_POLL_SECONDS
        self._unanswered = 0 if self._program.is_answering() else self._unanswered + 1
        return self._unanswered >= silent

    def _not_started(self, error: Exception) -> str:
        return f"The {self._program.name} could not be started: {str(error).rstrip('.')}."

    def _schedule_restart(self, failure: str) -> None:
        now = self._clock()
        # The time until it was ready does not count.
        is_long_lived = self._ready_at is not None and now - self._ready_at >= _LONG_LIVED
        delay = self._delays[0 if is_long_lived else min(self._restarts, len(self._delays) - 1)]
        self._restarts = 1 if is_long_lived else self._restarts + 1
        self._forget()
        log.error("%s Restarting it in %s s.", failure, delay)
        self._restart_at = now + delay

    def _forget(self) -> None:
        """Close the pipe and other resources of a child that has ended."""
        if self._child is not None:
            self._child.end_input()
            self._program.release()
        self._child = None


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
