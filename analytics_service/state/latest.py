"""The newest answer to a question that may take long: asked in a thread, so that nobody waits for long."""

import logging
import threading
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from analytics_service.errors import AnalyticsError

log = logging.getLogger(__name__)

_T = TypeVar("_T")


class Newest(NamedTuple, Generic[_T]):
    """The newest answer, None before the first; `new` says whether it was asked for just now."""

    value: _T | None
    new: bool


class Latest(Generic[_T]):
    """Asks when told to, in one thread at a time. `patience` is how long to wait for the answer, seconds."""

    def __init__(self, ask: Callable[[], _T], patience: float) -> None:
        self._ask = ask
        self._patience = patience
        self._lock = threading.Lock()
        self._asking: threading.Thread | None = None
        self._value: _T | None = None
        self._answers = 0

    def get(self) -> Newest[_T]:
        """Ask, and return the answer, or the one before if it fails or takes too long."""
        with self._lock:
            answers = self._answers
            if self._asking is None or not self._asking.is_alive():
                self._asking = threading.Thread(target=self._run, name="latest", daemon=True)
                self._asking.start()
            asking = self._asking
        asking.join(self._patience)
        return Newest(self._value, self._answers > answers)

    def _run(self) -> None:
        try:
            self._value = self._ask()
        except AnalyticsError as error:
            log.warning("What was known before is shown: %s", error)
            return
        self._answers += 1
