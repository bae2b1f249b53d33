"""Oracle prices: a pure function of seed, asset and second, in whole numbers only. They move like a market."""

from collections.abc import Callable
from functools import lru_cache, partial
from hashlib import blake2b

from analytics_service.market.instants import DAY
from analytics_service.sources.simulated.universe import BITS, LISTINGS, PERIODS, UNIT

# 2024-01-01: until then a liquid staking token is worth as much as its origin; from then on its value grows.
GENESIS = 1_704_067_200
# The period and the phase of an octave of noise, its swing, and what returns an independent value by its number.
Octave = tuple[int, int, int, Callable[[int], int]]


# The price of a day's start serves all amounts of the day that need not be exact.
@lru_cache(maxsize=20_000)
def price(seed: str, asset_id: str, second: int) -> int:
    """USD per standard unit of a listed asset at a unix second, in `UNIT`."""
    listing = LISTINGS[asset_id]
    noise = 0
    for period, phase, swing, value in octaves(seed, asset_id):
        index, within = divmod(second + phase, period)
        before = value(index)
        x = (within << BITS) // period
        eased = x * x * ((3 << BITS) - 2 * x) >> 2 * BITS
        # From -1 to 1, eased between the independent values.
        noise += swing * (before + ((value(index + 1) - before) * eased >> BITS)) >> BITS
    growth = listing.growth * max(second - GENESIS, 0) // (365 * DAY)
    return listing.usd * _power(noise * UNIT >> BITS) // UNIT * _power(growth) // UNIT


def _power(exponent: int) -> int:
    """About e to the power of an exponent, both in `UNIT`."""
    result = UNIT + exponent // 16
    for _ in range(4):
        result = result * result // UNIT
    return result


@lru_cache(maxsize=100)
def octaves(seed: str, asset_id: str) -> tuple[Octave, ...]:
    """The octaves of an asset. Phases differ, because otherwise all assets would be flat at the same instants."""
    listing = LISTINGS[asset_id]
    names = [f"{seed}|{listing.follows}|{period}" for period in PERIODS]
    return tuple(
        (period, _hash(name) % period, swing, lru_cache(maxsize=1_000)(partial(_value, name)))
        for period, name, swing in zip(PERIODS, names, listing.swings, strict=True)
    )


def _value(name: str, index: int) -> int:
    return (_hash(f"{name}|{index}") >> 63 - BITS) - (1 << BITS)


def _hash(key: str) -> int:
    """64 bits of BLAKE2b: the same on every platform and in every version of Python."""
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest())
