"""Interest rates: from APR to APY, and the mean of several."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal
from functools import lru_cache

from analytics_service.market.values import DECIMALS, EXACT, fraction, total

SECONDS_PER_YEAR = 365 * 86_400
# An APY of the greatest APR has 44 digits before the point.
RATE_LIMIT = Decimal(100)
_QUANTUM = Decimal(1).scaleb(-DECIMALS)
_CONTEXT = Context(prec=100, rounding=ROUND_HALF_EVEN)


@dataclass(frozen=True, slots=True)
class MarketRate:
    """An interest rate (interface section 2), stated as APR: a fraction a year."""

    apr: Decimal

    @property
    def apy(self) -> Decimal:
        """The rate compounded."""
        return apy(self.apr)


@lru_cache(maxsize=10_000)
def apy(apr: Decimal) -> Decimal:
    """(1 + apr/n)^n - 1 for the n seconds of a 365-day year (decisions 4.5), 18 decimals, half to even."""
    quantize_rate(apr)
    each_second = _CONTEXT.add(1, _CONTEXT.divide(apr, SECONDS_PER_YEAR))
    return _CONTEXT.subtract(_CONTEXT.power(each_second, SECONDS_PER_YEAR), 1).quantize(_QUANTUM, context=_CONTEXT)


def quantize_rate(apr: Decimal) -> Decimal:
    """The APR with 18 decimals, half to even. ValueError outside [0, 100]."""
    if not apr.is_finite() or not 0 <= apr <= RATE_LIMIT:
        raise ValueError(f"{apr} is not an APR: it must be a fraction from 0 to {RATE_LIMIT}")
    return apr.quantize(_QUANTUM, context=_CONTEXT)


def net_rate(parts: Iterable[tuple[Decimal, Decimal]]) -> MarketRate:
    """The mean of the APRs in pairs of value and APR, weighted by value; 0 where nothing has a value."""
    weighed = [(value, EXACT.multiply(value, apr)) for value, apr in parts]
    whole = total(value for value, _ in weighed)
    return MarketRate(fraction(total(interest for _, interest in weighed), whole))
