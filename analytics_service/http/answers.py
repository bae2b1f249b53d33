"""Answers kept for whoever asks the same next: bounded in bytes, the least recently used go first."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import NamedTuple

from analytics_service.http.answer import Answer
from analytics_service.http.coding import IDENTITY, Coding

# What an answer takes beside its body and what was asked: labels, headers and places in tables, 1 KB when measured.
_OVERHEAD = 1000
# A page of hundreds of thousands of points would push out thousands of other answers.
_LARGEST_SHARE = 8


class Asked(NamedTuple):
    """What tells answers apart, as the caller wrote it."""

    path: str
    query: str
    coding: Coding

    @property
    def plain(self) -> "Asked":
        """The same without a coding."""
        return self._replace(coding=IDENTITY)


class Answers:
    """At most `bound` bytes of answers, each for one state of what it shows. A bound of 0 keeps nothing."""

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._size = 0
        self._kept: OrderedDict[Asked, Answer] = OrderedDict()
        self._making: dict[tuple[Asked, Hashable], Future[Answer]] = {}
        self._lock = threading.Lock()

    def find(self, asked: Asked) -> Answer | None:
        """The last answer that was kept, of whatever state."""
        with self._lock:
            kept = self._kept.get(asked)
            if kept is not None:
                self._kept.move_to_end(asked)
            return kept

    def get(self, asked: Asked, state: Hashable, make: Callable[[], Answer]) -> Answer:
        """The answer as of a state; made by one thread while others that want the same wait, and kept."""
        with self._lock:
            kept = self._kept.get(asked)
            if kept is not None and kept.label.state == state:
                return kept
            others = self._making.get((asked, state))
            if others is None:
                mine = self._making[asked, state] = Future()
        return self._make(asked, state, make, mine) if others is None else others.result()

    def _make(self, asked: Asked, state: Hashable, make: Callable[[], Answer], promise: Future[Answer]) -> Answer:
        try:
            answer = make()
        except BaseException as error:
            promise.set_exception(error)
            raise
        else:
            promise.set_result(answer)
            self._keep(asked, answer)
            return answer
        finally:
            with self._lock:
                del self._making[asked, state]

    def _keep(self, asked: Asked, answer: Answer) -> None:
        with self._lock:
            self._drop(asked)
            if _size(asked, answer) * _LARGEST_SHARE <= self._bound:
                self._kept[asked] = answer
                self._size += _size(asked, answer)
            while self._size > self._bound:
                self._drop(next(iter(self._kept)))

    def _drop(self, asked: Asked) -> None:
        answer = self._kept.pop(asked, None)
        if answer is not None:
            self._size -= _size(asked, answer)


def _size(asked: Asked, answer: Answer) -> int:
    return _OVERHEAD + len(asked.path) + len(asked.query) + len(answer.body)
