"""Noise that moves like a market: a pure function of a key and a second, in whole numbers only."""

from functools import lru_cache
from hashlib import blake2b

# Fixed-point numbers: this many are 1.
UNIT = 10**18
# Seconds between independent values of each octave: 2 minutes, 8 minutes, ... up to 364 days.
PERIODS = tuple(120 * 4**octave for octave in range(10))


def wander(key: str, second: int, swings: tuple[int, ...]) -> int:
    """The sum of the octaves, each scaled by its swing (one for each of PERIODS); from -sum(swings) to sum(swings)."""
    return sum(
        swing * ease(f"{key}|{period}", second, period) // UNIT for period, swing in zip(PERIODS, swings, strict=True)
    )


def ease(key: str, second: int, period: int) -> int:
    """One octave, -UNIT to UNIT: an independent value every `period` seconds, eased from one to the next.

    Its slope is at most 3 UNIT per period.
    """
    # If all had the same phase, the octaves of all assets would be flat at the same instants.
    index, within = divmod(second + _phase(key, period), period)
    before, after = _draw(key, index), _draw(key, index + 1)
    x = within * UNIT // period
    return before + (after - before) * (x * x * (3 * UNIT - 2 * x) // UNIT**2) // UNIT


@lru_cache(maxsize=100_000)
def _draw(key: str, index: int) -> int:
    """A value drawn from [-UNIT, UNIT) by hashing."""
    return (_hash(f"{key}|{index}") * 2 * UNIT >> 64) - UNIT


@lru_cache(maxsize=10_000)
def _phase(key: str, period: int) -> int:
    return _hash(key) % period


def _hash(text: str) -> int:
    """64 bits of BLAKE2b: the same on every platform and in every version of Python."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest())
