"""The newest answer to a slow question. A thread asks it, so that callers wait for a bounded time only."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from analytics_service.errors import AnalyticsError
from analytics_service.store.failures import ANY_FAILURE

log = logging.getLogger(__name__)

_T = TypeVar("_T")


class Newest(NamedTuple, Generic[_T]):
    """The newest answer, None before the first.

    `error` is the failure of the last question, if it failed; `late` says whether the present question takes longer
    than callers wait.
    """

    value: _T | None
    error: AnalyticsError | None
    late: bool


class Latest(Generic[_T]):
    """Asks a question on demand, in one thread at a time. An answer is reused for `holds` seconds after its question.

    Callers wait until `patience` seconds after the question was asked, however late they call. So while the store
    hangs, request threads are free most of the time.
    """

    def __init__(
        self,
        ask: Callable[[], _T],
        patience: float,
        holds: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask = ask
        self._patience = patience
        self._holds = holds
        self._clock = clock
        self._lock = threading.Lock()
        self._asking: threading.Thread | None = None
        self._asked_at = float("-inf")
        self._value: _T | None = None
        self._error: AnalyticsError | None = None

    def get(self) -> Newest[_T]:
        """The answer to a question asked now, or the previous answer if it fails or takes too long."""
        with self._lock:
            now = self._clock()
            asking = self._asking
            if asking is None or (not asking.is_alive() and now >= self._asked_at + self._holds):
                self._asked_at = now
                asking = self._asking = threading.Thread(target=self._run, name="latest", daemon=True)
                asking.start()
            patience = self._asked_at + self._patience - now
        asking.join(max(patience, 0))
        return Newest(self._value, self._error, asking.is_alive())

    def _run(self) -> None:
        try:
            self._value = self._ask()
        except AnalyticsError as error:
            log.warning("The last answer is shown again, because a new one failed: %s", error)
            self._error = error
        except ANY_FAILURE:
            log.exception("The last answer is shown again, because a new one failed")
            self._error = AnalyticsError("An unexpected error; the log has it.")
        else:
            self._error = None
