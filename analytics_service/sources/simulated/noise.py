"""Noise that moves like a market: a pure function of a key and a second, in whole numbers only."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from hashlib import blake2b

# The number 1 in fixed-point arithmetic.
UNIT = 10**18
_THRICE, _SQUARE = 3 * UNIT, UNIT**2
# Seconds between independent values of each octave: 2 minutes, 8 minutes, ... up to 364 days.
PERIODS = tuple(120 * 4**octave for octave in range(10))
# Draws of octaves with at least this period are cached, because many instants share them.
_KEPT_FROM = 7_680


def wander(key: str, second: int, swings: tuple[int, ...]) -> int:
    """The sum of the octaves, each scaled by its swing (in the order of PERIODS); from -sum(swings) to sum(swings)."""
    return sum([swing * ease(wave, second) // UNIT for wave, swing in zip(_octaves(key), swings, strict=True)])


@dataclass(frozen=True, slots=True)
class Octave:
    """Noise with an independent value every `period` seconds. `step` returns a value by its number, and the difference
    to the next value."""

    period: int
    phase: int
    step: Callable[[int], tuple[int, int]]


@lru_cache(maxsize=1_000)
def octave(key: str, period: int) -> Octave:
    """The octave of a key and a period. Phases differ, because otherwise all assets would be flat at the same
    instants."""
    name = f"{key}|{period}"
    step = partial(_step, name)
    return Octave(period, _hash(name) % period, lru_cache(maxsize=10_000)(step) if period >= _KEPT_FROM else step)


def ease(wave: Octave, second: int) -> int:
    """The value of an octave, -UNIT to UNIT: independent every `period` seconds, and eased in between.

    Its slope is at most 3 UNIT per period.
    """
    index, within = divmod(second + wave.phase, wave.period)
    before, rise = wave.step(index)
    x = within * UNIT // wave.period
    return before + rise * (x * x * (_THRICE - 2 * x) // _SQUARE) // UNIT


@lru_cache(maxsize=100)
def _octaves(key: str) -> tuple[Octave, ...]:
    return tuple(octave(key, period) for period in PERIODS)


def _step(name: str, index: int) -> tuple[int, int]:
    before = _draw(name, index)
    return before, _draw(name, index + 1) - before


def _draw(name: str, index: int) -> int:
    """A value drawn from [-UNIT, UNIT) by hashing."""
    return (_hash(f"{name}|{index}") * 2 * UNIT >> 64) - UNIT


def _hash(key: str) -> int:
    """64 bits of BLAKE2b: the same on every platform and in every version of Python."""
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest())
