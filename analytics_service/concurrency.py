"""How threads share work and wait: deadlines, the line before the store, and values that one makes for all."""

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
# Seconds after which a thread that waits for another one looks whether that can go on at all.
_GLANCE = 0.2
_LEAST_SECONDS = 0.001


class CircuitBreaker:
    """What threads that wait for each other all wait for in the end: open, or closed for a cause.

    At most so many threads wait at the same time, so that a worker has others for probes and answers from memory.
    """

    cause = ""

    def __init__(self, most_waiting: int = maxsize) -> None:
        self._places = threading.Semaphore(most_waiting)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Wait in the block. Busy if too many threads wait already."""
        if not self._places.acquire(blocking=False):
            raise Busy
        try:
            yield
        finally:
            self._places.release()


_OPEN = CircuitBreaker()


class _Deadline(NamedTuple):
    ends_at: float
    breaker: CircuitBreaker | None


_DEADLINE: ContextVar[_Deadline | None] = ContextVar("budget", default=None)


@contextmanager
def deadline(seconds: float, breaker: CircuitBreaker | None = _OPEN) -> Iterator[None]:
    """Bound every wait of this thread in the block: in seconds, and while the gate is open. Without a gate its queries
    do not wait in line."""
    token = _DEADLINE.set(_Deadline(min(deadline_at(), time.monotonic() + seconds), breaker))
    try:
        yield
    finally:
        _DEADLINE.reset(token)


def remaining() -> float | None:
    """The seconds that this thread may still wait, at least 0; None where nothing bounds it."""
    return None if _DEADLINE.get() is None else max(deadline_at() - time.monotonic(), 0.0)


def deadline_at() -> float:
    """When this thread's time is over, on the monotonic clock."""
    deadline_now = _DEADLINE.get()
    return inf if deadline_now is None else deadline_now.ends_at


def cap_timeout(limit: float) -> float:
    """So many seconds, or what this thread has left if that is less. Never 0, which others take for no limit."""
    return max(min(limit, deadline_at() - time.monotonic()), _LEAST_SECONDS)


def needs_slot() -> bool:
    """Whether this thread's queries wait in line before the store."""
    deadline_now = _DEADLINE.get()
    return deadline_now is not None and deadline_now.breaker is not None


def in_thread(call: Callable[[], _T]) -> Future[_T]:
    """The result of a call, in the context of this thread and a thread of its own, for those who may abandon it.

    The thread is a daemon, so the process may end meanwhile. It would wait for threads of a ThreadPoolExecutor.
    """
    result = Future[_T]()
    threading.Thread(target=copy_context().run, args=(_run, call, result), name="call", daemon=True).start()
    return result


@contextmanager
def beside(
    name: str, work: Callable[[threading.Event], None], patience: float | None = None
) -> Iterator[threading.Event]:
    """Work in a thread of this name for the duration of the block. It gets an event, which is also yielded, and ends
    once that is set: at the latest when the block ends, which waits for it for `patience` seconds, or until it has."""
    stop = threading.Event()
    thread = threading.Thread(target=work, args=(stop,), name=name, daemon=True)
    thread.start()
    try:
        yield stop
    finally:
        stop.set()
        thread.join(patience)


def _run(call: Callable[[], _T], result: Future[_T]) -> None:
    # Whoever abandons a call may have set its result.
    with suppress(InvalidStateError):
        try:
            value = call()
        except BaseException as error:
            result.set_exception(error)
        else:
            result.set_result(value)


class QuerySlots(CircuitBreaker):
    """Lets `width` threads have a turn at the same time. Others wait while their request has time. The oldest request
    is next: if each waited anew for every query, all might be late in the end.

    While it is closed nobody waits. Threads that answer no request, such as those of jobs or those that load memory, do
    not wait in it.
    """

    def __init__(self, width: int, most_waiting: int = maxsize) -> None:
        super().__init__(most_waiting)
        self._free = width
        # With the seconds at which their requests end.
        self._waiting: dict[Future[None], float] = {}
        self._lock = threading.Lock()

    @contextmanager
    def acquire(self) -> Iterator[None]:
        """Have a turn in the block. Busy when the request's time is over first, StoreUnavailable while the line is
        closed."""
        if not needs_slot():
            yield
            return
        with self._lock:
            enters = self._takes_free()
        if not enters:
            with self.waiting():
                self._wait()
        try:
            yield
        finally:
            self._leave()

    def close(self, cause: str) -> None:
        """Refuse all who wait, and who comes later, until the line is opened again."""
        with self._lock:
            self.cause = cause
            refused = [*self._waiting]
            self._waiting.clear()
        for waiting in refused:
            waiting.set_exception(StoreUnavailable(cause))

    def open(self) -> None:
        """Let threads have turns again."""
        self.cause = ""

    def refusal(self) -> Busy | StoreUnavailable:
        """The error of a thread whose time is over."""
        return StoreUnavailable(self.cause) if self.cause else Busy()

    def _takes_free(self) -> bool:
        """Whether a turn was free, and is taken. StoreUnavailable while the line is closed."""
        if self.cause:
            raise StoreUnavailable(self.cause)
        is_free = self._free > 0
        self._free -= is_free
        return is_free

    def _wait(self) -> None:
        with self._lock:
            if self._takes_free():
                return
            own = Future[None]()
            self._waiting[own] = deadline_at()
        try:
            own.result(remaining())
        except TimeoutError:
            with self._lock:
                if own in self._waiting:
                    del self._waiting[own]
                    raise Busy from None
            # It was called up, or refused, at the last moment.
            own.result()

    def _leave(self) -> None:
        with self._lock:
            following = min(self._waiting, key=self._waiting.__getitem__, default=None)
            if following is None:
                self._free += 1
            else:
                del self._waiting[following]
        if following is not None:
            following.set_result(None)


class SingleFlight(Generic[_T]):
    """Values by key, each made by one thread at a time. They stay in `kept`, if given, which may evict them."""

    def __init__(self, kept: MutableMapping[Any, _T] | None = None) -> None:
        self._kept = kept
        self._making: dict[Hashable, Future[_T]] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """The value of a key. If making it fails, all that wait get the error, and the next call makes it again.

        Busy if another thread is still making it when this thread's time is over, StoreUnavailable when the gate is
        closed.
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
            # Its frames would hold, until garbage is collected, all that is half made.
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
    """Values that may take longer to make than those who need them may wait: each is made in a thread of its own, which
    does not wait in line, and one after the other. Who has no more time gets Busy; a later call finds the value made.
    """

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

        # An empty context has no budget.
        Context().run(in_thread, partial(super()._made, key, own, make_alone))
        return _result(own)


def _result(future: Future[_T]) -> _T:
    deadline_now = _DEADLINE.get()
    breaker = _OPEN if deadline_now is None or deadline_now.breaker is None else deadline_now.breaker
    with breaker.waiting():
        while True:
            left = remaining()
            try:
                return future.result(None if left is None else min(left, _GLANCE))
            except TimeoutError:
                if future.done():
                    # At the last moment; or what made it has raised a TimeoutError.
                    return future.result()
            if breaker.cause:
                raise StoreUnavailable(breaker.cause)
            if left == 0:
                raise Busy


class locked_cached_property(Generic[_T]):  # noqa: N801 - used like functools.cached_property
    """A lazy attribute that threads share. In Python 3.11 the lock of cached_property is that of all instances."""

    def __init__(self, make: Callable[[Any], _T]) -> None:
        self._make = make
        self._name = make.__name__
        self.__doc__ = make.__doc__

    def __get__(self, instance: Any, owner: type) -> _T:
        parts = vars(instance)
        # Of its own, it keeps nothing: else the instance would hold itself until garbage is collected.
        share: SingleFlight[_T] = parts.setdefault("_share", SingleFlight())

        def make() -> _T:
            if self._name not in parts:
                parts[self._name] = self._make(instance)
            return cast(_T, parts[self._name])

        return share.get(self._name, make)
