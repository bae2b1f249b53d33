"""Attributes that are computed on first use."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

_T = TypeVar("_T")


class cached_attribute(Generic[_T]):  # noqa: N801 - a decorator
    """functools.cached_property without its lock, which Python 3.11 shares between all instances. Several threads may
    compute the value at the same time."""

    def __init__(self, compute: Callable[[Any], _T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __get__(self, instance: Any, owner: type) -> _T:
        value = self._compute(instance)
        vars(instance)[self._compute.__name__] = value
        return value
