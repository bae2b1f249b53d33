"""Supervises one child process: starts it, notices its end, restarts it after a delay, stops it."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from analytics_service import logs
from analytics_service.processes.child import Child
from analytics_service.processes.program import Program
from analytics_service.processes.restarts import Restarts

log = logging.getLogger(__name__)

_READY_POLL_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class _Failure:
    reason: str
    hopeless: bool = False


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

    def start(self) -> None:
        """Return once the child is ready. The program's error when the child ends before that or takes too long."""
        while (failure := self._first_start()) is not None:
            if not self._program.adapt():
                raise self._program.error(failure.reason)

    def check(self) -> None:
        """Notice the child's end, and restart it when that is due. The program's error when restarts do not help."""
        if self._restart_at is not None:
            if self._clock() >= self._restart_at:
                self._restart()
        elif self._child is not None:
            was_ready = self._ready_at is not None
            failure = self._look(self._child)
            if failure is not None:
                self._schedule_restart(failure)
            elif self._ready_at is not None and not was_ready:
                log.warning("The %s was restarted.", self._program.name, extra={logs.ABOUT: self._program.name})

    def stop(self) -> None:
        """Return once the child is gone: in an orderly way, or killed with its session after the grace period."""
        self._restart_at = None
        child = self._child
        if child is None:
            return
        if child.poll() is None:
            self._program.ask_to_stop(child)
            if not child.wait(self._program.grace):
                log.warning("The %s did not stop in %.0f s and is killed.", self._program.name, self._program.grace)
                child.kill()
        self._release()

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
        self._launched_at = self._clock()
        self._child = self._program.launch()
        self._note_readiness()
        return self._child

    def _look(self, child: Child) -> _Failure | None:
        """Why the child ended or has to be given up; None while it is well. Notes when the child became ready."""
        code = child.poll()
        if code is not None:
            return _Failure(self._program.explain(code), hopeless=code in self._program.hopeless)
        self._note_readiness()
        if self._ready_at is None and self._clock() - self._launched_at >= self._program.ready_seconds:
            child.kill()
            seconds, where = self._program.ready_seconds, self._program.where_logged
            return _Failure(f"The {self._program.name} was not ready after {seconds:.0f} s. {where}")
        return None

    def _note_readiness(self) -> None:
        if self._ready_at is None and self._program.is_ready():
            self._ready_at = self._clock()

    def _restart(self) -> None:
        try:
            self._launch()
        except OSError as error:
            self._schedule_restart(_Failure(f"The {self._program.name} could not be started: {error}."))

    def _schedule_restart(self, failure: _Failure) -> None:
        # A child that never became ready has not lived, however long its start took.
        lifetime = 0.0 if self._ready_at is None else self._clock() - self._ready_at
        self._release()
        delay = None if failure.hopeless else self._restarts.next_delay(lifetime)
        if delay is None:
            raise self._program.error(f"Restarting the {self._program.name} did not help; giving up. {failure.reason}")
        log.error("%s It is restarted in %s s.", failure.reason, delay, extra={logs.ABOUT: self._program.name})
        self._restart_at = self._clock() + delay

    def _release(self) -> None:
        """Close the pipe to a child that has ended."""
        if self._child is not None:
            self._child.end_input()
        self._child = None
