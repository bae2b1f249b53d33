"""Randomness by hashing: the same key always draws the same numbers, on every platform."""

from collections.abc import Sequence
from hashlib import blake2b
from struct import Struct
from typing import TypeVar

_Item = TypeVar("_Item")
_WORDS = Struct(">8Q")


class Draws:
    """A sequence of whole numbers drawn from a key."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._block = 0
        self._words: list[int] = []

    def below(self, limit: int) -> int:
        """A number from 0 up to, but not including, the limit; all are equally likely."""
        if not self._words:
            self._words = list(_WORDS.unpack(blake2b(f"{self._key}|{self._block}".encode()).digest()))
            self._block += 1
        return self._words.pop() * limit >> 64

    def between(self, low: int, high: int) -> int:
        """A number from `low` to `high`, both included."""
        return low + self.below(high - low + 1)

    def chance(self, percent: int) -> bool:
        """True with a probability in percent."""
        return self.below(100) < percent

    def sized(self, low: int, doublings: int) -> int:
        """A number from `low` up to `low` doubled several times. Each doubling is equally likely, so most are small."""
        size = low << self.below(doublings)
        return size + self.below(size)

    def pick(self, items: Sequence[_Item]) -> _Item:
        """A random item."""
        return items[self.below(len(items))]

    def sample(self, items: Sequence[_Item], count: int) -> tuple[_Item, ...]:
        """Several different items."""
        remaining = list(items)
        return tuple(remaining.pop(self.below(len(remaining))) for _ in range(min(count, len(remaining))))
