"""Supervises a child process: starts it, notices its end or silence, restarts it after a delay, stops it (rule 9.2)."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from analytics_service.errors import AnalyticsError
from analytics_service.processes.child import Child
from analytics_service.processes.program import Program

log = logging.getLogger(__name__)

_READY_POLL_SECONDS = 0.02
_ANSWER_POLL_SECONDS = 1.0
# Attempts at the first start. Before each further attempt the program must be able to adapt something.
_FIRST_STARTS = 3
# Limit of short-lived starts of a program that has never worked.
_TRIALS = 5
# Exit codes from this number on mean signals, as in shells.
_SIGNALS = 128


@dataclass(slots=True)
class Restarts:
    """Counts consecutive short-lived starts. A process that ran for `long_lived` seconds resets the count."""

    delays: tuple[float, ...] = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0)
    long_lived: float = 60.0
    short_lived_starts: int = 0

    def next_delay(self, lifetime: float) -> float:
        """Seconds to wait before the next start. They grow with each short-lived start, up to the last delay."""
        if lifetime >= self.long_lived:
            self.short_lived_starts = 0
        self.short_lived_starts += 1
        return self.delays[min(self.short_lived_starts, len(self.delays)) - 1]


@dataclass(frozen=True, slots=True)
class _Failure:
    reason: str
    hopeless: bool = False
    # Whether it ended with its own error code. Otherwise it was stopped, killed, or could not be started.
    by_itself: bool = False


class Supervisor:
    """Keeps a program running as long as check() is called regularly. For one thread at a time."""

    def __init__(
        self,
        program: Program,
        restarts: Restarts,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._program = program
        self._restarts = restarts
        self._clock = clock
        self._pause = pause
        self._child: Child | None = None
        self._launched_at = 0.0
        self._ready_at: float | None = None
        self._restart_at: float | None = None
        self._ask_at = 0.0
        self._unanswered = 0
        self._works = False

    def start(self) -> None:
        """Return once the child is ready. The program's error when the child cannot be started, ends before it is ready
        or takes too long."""
        try:
            self._start()
        except OSError as error:
            raise self._program.error(self._not_started(error)) from error

    def require_able(self) -> None:
        """The program's error when the ready child must not take over from a working child."""
        if obstacle := self._program.obstacle():
            raise self._program.error(f"The new {self._program.name} is not able to take over: {obstacle}")

    def check(self) -> None:
        """Detect the child's end or its silence, and restart it after a delay.

        The program's error when its exit code says that no restart helps, or when it has never worked and five restarts
        did not help.
        """
        if self._restart_at is not None:
            if self._clock() >= self._restart_at:
                self._restart()
        elif self._child is not None:
            was_ready = self._ready_at is not None
            failure = self._look(self._child)
            if failure is not None:
                self._schedule_restart(failure)
            elif self._ready_at is not None and not was_ready:
                log.warning("The %s was restarted.", self._program.name)

    def signal(self, number: int) -> None:
        if self._child is not None:
            self._child.send_signal(number)

    def stop(self) -> None:
        """Return once the child has stopped, or has been killed with its session after the grace period."""
        self._restart_at = None
        child = self._child
        if child is None:
            return
        if child.poll() is None:
            self._program.ask_to_stop(child)
            if not child.ends_within(self._program.grace):
                log.warning("The %s did not stop in %.0f s and is killed.", self._program.name, self._program.grace)
                child.kill()
        self._release()

    def _start(self) -> None:
        for remaining in reversed(range(_FIRST_STARTS)):
            failure = self._first_start()
            if failure is None:
                return
            if not remaining or not self._program.adapt():
                raise self._program.error(failure.reason)

    def _first_start(self) -> _Failure | None:
        child = self._launch()
        while True:
            failure = self._look(child)
            if failure is not None:
                self._release()
                return failure
            if self._ready_at is not None:
                return None
            self._pause(_READY_POLL_SECONDS)

    def _launch(self) -> Child:
        self._restart_at = self._ready_at = None
        self._unanswered = 0
        self._launched_at = self._clock()
        self._child = self._program.launch()
        self._note_readiness()
        return self._child

    def _look(self, child: Child) -> _Failure | None:
        """The reason why the child ended or has to be killed; None while it is well. Records when it became ready."""
        code = child.poll()
        if code is not None:
            hopeless, by_itself = code in self._program.hopeless, 0 < code < _SIGNALS
            return _Failure(self._program.explain(code), hopeless, by_itself)
        self._note_readiness()
        fault = self._fault()
        if fault is None:
            return None
        child.kill()
        return _Failure(f"The {self._program.name} {fault}. {self._program.where_logged}")

    def _fault(self) -> str | None:
        """The reason why the running child has to be killed, as the rest of a sentence; None while it is well."""
        if self._is_silent():
            return f"has not answered for {self._program.silent_seconds} s"
        if self._ready_at is None and self._clock() - self._launched_at >= self._program.ready_seconds:
            return f"was not ready after {self._program.ready_seconds:.0f} s"
        return self._program.fault() or None

    def _note_readiness(self) -> None:
        if self._ready_at is None and self._program.is_ready() and self._program.announce():
            self._ready_at = self._clock()

    def _is_silent(self) -> bool:
        """Whether the child has missed too many consecutive pings. Pings are counted instead of time, because this
        process may have been paused."""
        maximum = self._program.silent_seconds
        if maximum is None or self._ready_at is None or self._clock() < self._ask_at:
            return False
        self._ask_at = self._clock() + _ANSWER_POLL_SECONDS
        self._unanswered = 0 if self._program.is_answering() else self._unanswered + 1
        return self._unanswered >= maximum

    def _restart(self) -> None:
        try:
            self._program.adapt()
            self._launch()
        except (OSError, AnalyticsError) as error:
            self._schedule_restart(_Failure(self._not_started(error)))

    def _not_started(self, error: Exception) -> str:
        return f"The {self._program.name} could not be started: {str(error).rstrip('.')}."

    def _schedule_restart(self, failure: _Failure) -> None:
        # A child that never became ready counts as short-lived, however long its start took.
        lifetime = 0.0 if self._ready_at is None else self._clock() - self._ready_at
        self._works |= self._ready_at is not None and lifetime >= self._program.trial_seconds
        self._release()
        delay = self._restarts.next_delay(lifetime)
        never_works = failure.by_itself and not self._works and self._restarts.short_lived_starts > _TRIALS
        if failure.hopeless or never_works:
            raise self._program.error(f"Restarting the {self._program.name} did not help; giving up. {failure.reason}")
        log.error("%s It is restarted in %s s.", failure.reason, delay)
        self._restart_at = self._clock() + delay

    def _release(self) -> None:
        """Close the pipe to a child that has ended, and its other resources."""
        if self._child is not None:
            self._child.end_input()
            self._program.release()
        self._child = None


class Replaceable:
    """A Supervisor, and a way to replace it. One thread may call `check` while another calls the other methods."""

    def __init__(self, make: Callable[[], Supervisor]) -> None:
        self._make = make
        self._current = make()
        self._others: list[Supervisor] = []
        self._lock = threading.Lock()

    def start(self) -> None:
        self._current.start()

    def check(self) -> None:
        with self._lock:
            self._current.check()

    def signal(self, number: int) -> None:
        with self._lock:
            self._current.signal(number)

    def replace(self) -> None:
        """Start a second instance, and stop the first once the second is ready and able. If that fails, the first goes
        on."""
        successor = self._make()
        self._others.append(successor)
        try:
            successor.start()
            successor.require_able()
        except AnalyticsError as error:
            log.error("%s The one that was running goes on.", error)
            successor.stop()
            self._others.remove(successor)
            return
        with self._lock:
            before, self._current = self._current, successor
        self._others = [before]
        before.stop()
        self._others = []

    def stop(self) -> None:
        """Stop the program, and the other instance if a replacement was interrupted."""
        for supervisor in (self._current, *self._others):
            supervisor.stop()
