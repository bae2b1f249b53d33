"""What long operations share: the retry policy, how they report progress, and failures of any kind."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from polars.exceptions import PanicException
from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_exponential

from analytics_service.errors import AnalyticsError, StoreUnavailable

ANY_FAILURE = (Exception, PanicException)
"""Caught by threads that continue after a failure. Polars does not derive its panics from Exception."""


class Reporter(Protocol):
    """Shows the progress of a long operation."""

    def stage(self, label: str, total: int) -> None:
        """A stage of `total` units begins; 0 if nobody knows."""

    def advance(self, count: int) -> None:
        """Another `count` units of the stage are done."""


_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Retries:
    """Calls a function until it succeeds, for at most `seconds` in all, then raises its last error. 0 means once.

    Only `errors` are retried. `wait` pauses and, like `threading.Event.wait`, returns true to give up.
    `on_retry` is called before each pause with the error and the length of the pause in seconds.
    """

    seconds: float = 0.0
    first_pause: float = 1.0
    longest_pause: float = 30.0
    errors: tuple[type[AnalyticsError], ...] = (StoreUnavailable,)
    wait: Callable[[float], bool | None] = field(default_factory=lambda: threading.Event().wait)
    on_retry: Callable[[BaseException, float], None] = lambda error, pause: None

    def __call__(self, act: Callable[[], _T], /) -> _T:
        """The result of the function."""
        failures: list[BaseException] = []

        def before_pause(call: RetryCallState) -> None:
            if call.outcome and (error := call.outcome.exception()):
                failures.append(error)
                self.on_retry(error, call.upcoming_sleep)

        def pause(seconds: float) -> None:
            if self.wait(seconds):
                raise failures[-1]

        retrying = Retrying(
            retry=retry_if_exception_type(self.errors),
            wait=wait_exponential(multiplier=self.first_pause, max=self.longest_pause),
            stop=self._is_too_late,
            before_sleep=before_pause,
            sleep=pause,
            reraise=True,
        )
        return retrying(act)

    def _is_too_late(self, call: RetryCallState) -> bool:
        """Whether the next attempt would begin after the time is up. Pauses count in full, even if cut short."""
        elapsed = max(call.seconds_since_start or 0.0, call.idle_for)
        return elapsed + call.upcoming_sleep > self.seconds


# Calls without retrying.
ONCE = Retries()
