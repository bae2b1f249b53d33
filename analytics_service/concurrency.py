"""How threads share work and wait: deadlines, query slots, and single flight (rule 8.9, query slots)."""

import threading
import time
from collections.abc import Callable, Hashable, Iterator, MutableMapping
from concurrent.futures import Future, InvalidStateError
from contextlib import contextmanager, suppress
from contextvars import Context, ContextVar, copy_context
from functools import partial
from math import inf
from sys import maxsize
from traceback import clear_frames
from typing import Any, Generic, NamedTuple, TypeVar, cast

from analytics_service.errors import Busy, StoreUnavailable

_T = TypeVar("_T")
_MISSING = object()
# Seconds between looks at whether the store answers, while a thread waits for another thread.
_GLANCE = 0.2
_LEAST_SECONDS = 0.001


class _Deadline(NamedTuple):
    ends_at: float
    slots: "QuerySlots | None"


_NO_DEADLINE = _Deadline(inf, None)
_DEADLINE: ContextVar[_Deadline] = ContextVar("deadline", default=_NO_DEADLINE)


@contextmanager
def deadline(seconds: float, slots: "QuerySlots | None" = None) -> Iterator[None]:
    """Bound every wait of this thread in the block: by time, and by the query slots of a request, which end all waits
    while the store does not answer. Without them, the thread's queries need no slot."""
    token = _DEADLINE.set(_Deadline(min(deadline_at(), time.monotonic() + seconds), slots))
    try:
        yield
    finally:
        _DEADLINE.reset(token)


def remaining() -> float | None:
    """Seconds until this thread's deadline, at least 0; None without a deadline."""
    return None if deadline_at() == inf else max(deadline_at() - time.monotonic(), 0.0)


def deadline_at() -> float:
    """This thread's deadline on the monotonic clock; infinite without one."""
    return _DEADLINE.get().ends_at


def cap_timeout(limit: float) -> float:
    """The lesser of `limit` and the seconds until this thread's deadline. Never 0, which clients read as no limit."""
    return max(min(limit, deadline_at() - time.monotonic()), _LEAST_SECONDS)


def in_thread(call: Callable[[], _T]) -> Future[_T]:
    """Run a call in a new thread, with this thread's context, so that the caller may abandon it.

    The thread is a daemon, so the process may exit meanwhile. With a ThreadPoolExecutor it would wait for the thread.
    """
    result = Future[_T]()
    threading.Thread(target=copy_context().run, args=(_run, call, result), name="call", daemon=True).start()
    return result


@contextmanager
def beside(
    name: str, work: Callable[[threading.Event], None], patience: float | None = None
) -> Iterator[threading.Event]:
    """Run `work` in a thread of this name beside the block. It gets a stop event, which is also yielded, and must
    return once the event is set. The end of the block sets the event, and waits `patience` seconds, or forever."""
    stop = threading.Event()
    thread = threading.Thread(target=work, args=(stop,), name=name, daemon=True)
    thread.start()
    try:
        yield stop
    finally:
        stop.set()
        thread.join(patience)


def _run(call: Callable[[], _T], result: Future[_T]) -> None:
    # A caller that abandoned the call may have set its result.
    with suppress(InvalidStateError):
        try:
            value = call()
        except BaseException as error:
            result.set_exception(error)
        else:
            result.set_result(value)


class QuerySlots:
    """Lets `width` threads query the store at once. Others wait until their deadline; the oldest request is next. If
    each query queued anew, all requests could be late.

    At most `most_waiting` threads wait at once, so that a worker keeps threads for probes and answers from memory; none
    waits while `cause` says why the store does not answer. Threads that answer no request, such as jobs, need no slot.
    """

    def __init__(self, width: int, most_waiting: int = maxsize) -> None:
        self.cause = ""
        self._free = width
        self._places = threading.Semaphore(most_waiting)
        # Deadlines of the threads that wait for a slot.
        self._waiting: dict[Future[None], float] = {}
        self._lock = threading.Lock()

    @contextmanager
    def acquire(self) -> Iterator[None]:
        """Hold a query slot. Raises Busy or StoreUnavailable as `result` does."""
        if _DEADLINE.get().slots is None:
            yield
            return
        own = self._own_slot()
        try:
            self.result(own)
        except StoreUnavailable:
            with self._lock:
                still_waited = self._waiting.pop(own, None)
            if still_waited is None:
                # It got the slot at the last moment.
                self._leave()
            raise
        try:
            yield
        finally:
            self._leave()

    def result(self, future: Future[_T]) -> _T:
        """The result of a future that another thread sets. Raises Busy if the deadline passes first, or if too many
        threads wait already; StoreUnavailable while the store does not answer."""
        if future.done():
            return future.result()
        if not self._places.acquire(blocking=False):
            raise Busy
        try:
            while not future.done():
                if self.cause or remaining() == 0:
                    raise self.refusal()
                with suppress(TimeoutError):
                    future.result(cap_timeout(_GLANCE))
        finally:
            self._places.release()
        return future.result()

    def refusal(self) -> Busy | StoreUnavailable:
        """The error for a thread whose deadline has passed."""
        return StoreUnavailable(self.cause) if self.cause else Busy()

    def _own_slot(self) -> Future[None]:
        """A future that is done once this thread has a slot."""
        own = Future[None]()
        with self._lock:
            if self.cause:
                raise StoreUnavailable(self.cause)
            if self._free:
                self._free -= 1
                own.set_result(None)
            else:
                self._waiting[own] = deadline_at()
        return own

    def _leave(self) -> None:
        with self._lock:
            following = min(self._waiting, key=self._waiting.__getitem__, default=None)
            if following is None:
                self._free += 1
            else:
                del self._waiting[following]
        if following is not None:
            following.set_result(None)


_NO_REQUEST = QuerySlots(0)


class SingleFlight(Generic[_T]):
    """Values by key, each computed by one thread while others wait. `kept`, if given, caches them, and may evict."""

    def __init__(self, kept: MutableMapping[Any, _T] | None = None) -> None:
        self._kept = kept
        self._making: dict[Hashable, Future[_T]] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """The value of a key. If `make` fails, all waiting threads get its error, and the next call tries again.

        Raises Busy if another thread is still computing the value at this thread's deadline, and StoreUnavailable once
        the store does not answer.
        """
        with self._lock:
            if self._kept is not None and (kept := self._kept.get(key, _MISSING)) is not _MISSING:
                return cast(_T, kept)
            other = self._making.get(key)
            if other is None:
                own = self._making[key] = Future[_T]()
        return self._made(key, own, make) if other is None else _result(other)

    def _made(self, key: Hashable, own: Future[_T], make: Callable[[], _T]) -> _T:
        try:
            value = make()
        except BaseException as error:
            with self._lock:
                del self._making[key]
            # Else its frames would hold half-made values until garbage is collected.
            clear_frames(error.__traceback__)
            own.set_exception(error)
            raise
        with self._lock:
            if self._kept is not None:
                self._kept[key] = value
            del self._making[key]
        own.set_result(value)
        return value


class DetachedSingleFlight(SingleFlight[_T]):
    """Single flight for values that may take longer than a request's deadline. Each is computed in a new thread, one at
    a time, without a query slot. A caller whose deadline passes gets Busy; a later call finds the value."""

    def __init__(self, kept: MutableMapping[Any, _T]) -> None:
        super().__init__(kept)
        self._one_at_a_time = threading.Lock()

    def _made(self, key: Hashable, own: Future[_T], make: Callable[[], _T]) -> _T:
        left = remaining()

        def make_alone() -> _T:
            if not self._one_at_a_time.acquire(timeout=-1 if left is None else left):
                raise Busy
            try:
                return make()
            finally:
                self._one_at_a_time.release()

        # An empty context has no deadline.
        Context().run(in_thread, partial(super()._made, key, own, make_alone))
        return _result(own)


def _result(future: Future[_T]) -> _T:
    return (_DEADLINE.get().slots or _NO_REQUEST).result(future)


class locked_cached_property(Generic[_T]):  # noqa: N801 - used like functools.cached_property
    """A lazy attribute that threads share. In Python 3.11 all instances share the lock of a cached_property."""

    def __init__(self, make: Callable[[Any], _T]) -> None:
        self._make = make
        self._name = make.__name__
        self.__doc__ = make.__doc__

    def __get__(self, instance: Any, owner: type) -> _T:
        parts = vars(instance)
        # It keeps no values, so that the instance does not reference itself until garbage is collected.
        flight: SingleFlight[_T] = parts.setdefault("_flight", SingleFlight())

        def make() -> _T:
            if self._name not in parts:
                parts[self._name] = self._make(instance)
            return cast(_T, parts[self._name])

        return flight.get(self._name, make)
