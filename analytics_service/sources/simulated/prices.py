"""Oracle prices: a pure function of seed, asset and second, in whole numbers only. They move like a market."""

from collections.abc import Callable
from decimal import Context, Decimal
from functools import lru_cache, partial
from hashlib import blake2b
from typing import NamedTuple

from analytics_service.market.instants import DAY
from analytics_service.sources.simulated.universe import LISTINGS, PERIODS, UNIT

# 2024-01-01: until then a liquid staking token is worth as much as its origin; from then on its value grows.
GENESIS = 1_704_067_200
# Draws of octaves with at least this period are cached, because many instants share them.
_KEPT_FROM = 7_680
# Enough for 18 decimals of prices up to 10^20. exp() is rounded correctly, so results are the same on every platform.
_CONTEXT = Context(prec=40)


# The price of a day's start serves all amounts of the day that need not be exact.
@lru_cache(maxsize=20_000)
def price(seed: str, asset_id: str, second: int) -> int:
    """USD per standard unit of a listed asset at a unix second, in `UNIT`."""
    listing = LISTINGS[asset_id]
    waves = octaves(f"{seed}|{listing.follows}")
    noise = sum([swing * _ease(wave, second) // UNIT for wave, swing in zip(waves, listing.swings, strict=True)])
    growth = listing.growth * max(second - GENESIS, 0) // (365 * DAY)
    factor = _CONTEXT.exp(_CONTEXT.divide(Decimal(noise + growth), Decimal(UNIT)))
    return int(_CONTEXT.multiply(listing.usd, factor).scaleb(18).to_integral_value(context=_CONTEXT))


class Octave(NamedTuple):
    """Noise with an independent value every `period` seconds. `step` returns a value by its number, and the difference
    to the next value."""

    period: int
    phase: int
    step: Callable[[int], tuple[int, int]]


@lru_cache(maxsize=100)
def octaves(key: str) -> tuple[Octave, ...]:
    """The octaves of a key. Phases differ, because otherwise all assets would be flat at the same instants."""
    waves = []
    for period in PERIODS:
        name = f"{key}|{period}"
        step = partial(_step, name)
        kept = lru_cache(maxsize=10_000)(step) if period >= _KEPT_FROM else step
        waves.append(Octave(period, _hash(name) % period, kept))
    return tuple(waves)


def _ease(wave: Octave, second: int) -> int:
    """A value from -UNIT to UNIT, eased between the independent ones. Its slope is at most 3 UNIT per period."""
    index, within = divmod(second + wave.phase, wave.period)
    before, rise = wave.step(index)
    x = within * UNIT // wave.period
    return before + rise * (x * x * (3 * UNIT - 2 * x) // UNIT**2) // UNIT


def _step(name: str, index: int) -> tuple[int, int]:
    before, after = ((_hash(f"{name}|{number}") * 2 * UNIT >> 64) - UNIT for number in (index, index + 1))
    return before, after - before


def _hash(key: str) -> int:
    """64 bits of BLAKE2b: the same on every platform and in every version of Python."""
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest())
