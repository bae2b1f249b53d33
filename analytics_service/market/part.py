"""A lazy attribute: calculated, or read from the store, on first use."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

_T = TypeVar("_T")


class Part(Generic[_T]):
    """Like functools.cached_property, but threads never wait for each other. Two threads may both calculate the value,
    with equal results.

    Before Python 3.12 cached_property has a lock. All threads of a worker might wait there for a thread that waits for
    the store (rule 8.9).
    """

    def __init__(self, make: Callable[[Any], _T]) -> None:
        self._make = make
        self._name = make.__name__
        self.__doc__ = make.__doc__

    def __get__(self, instance: object, owner: type) -> _T:
        value = instance.__dict__[self._name] = self._make(instance)
        return value
