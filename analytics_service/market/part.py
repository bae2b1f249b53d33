"""A lazy attribute: calculated, or read from the store, when it is first used."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

_T = TypeVar("_T")


class Part(Generic[_T]):
    """Like functools.cached_property, but threads never wait for each other: two may both make it, and either value is
    right.

    Before Python 3.12 cached_property has a lock, at which all threads of a worker might wait for a single one that
    waits for the store (rule 8.9).
    """

    def __init__(self, make: Callable[[Any], _T]) -> None:
        self._make = make
        self._name = make.__name__
        self.__doc__ = make.__doc__

    def __get__(self, whole: object, owner: type) -> _T:
        value = whole.__dict__[self._name] = self._make(whole)
        return value
