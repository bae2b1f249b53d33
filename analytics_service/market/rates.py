"""Interest: APY from APR, weighted means of rates, and the earnings of lenders."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal
from functools import lru_cache
from typing import Annotated

from analytics_service.market.decimals import EXACT, ZERO, as_fraction, quantize, sum_decimals
from analytics_service.market.instants import DAY
from analytics_service.market.kinds import AssetId, Rate
from analytics_service.market.markets import DebtMarket, LendMarket, Market

SECONDS_PER_YEAR = 365 * DAY
# Enough digits to compound exactly to 18 decimals; EXACT would take seven times as long.
_COMPOUNDING = Context(prec=100, rounding=ROUND_HALF_EVEN)
# Interest is summed in units of 2^-64 denom units, each rounded up, so that whole denom units of the sum are exact.
_BITS = 64


@dataclass(frozen=True, slots=True)
class MarketRate:
    """An interest rate, or a mean of rates: fractions per year."""

    apr: Annotated[Decimal, Rate("Without compounding")]
    apy: Annotated[Decimal, Rate("Compounded every second")]


class UnknownRate:
    """A mean of rates with an unknown weight, because an asset has lost its price."""

    apr = apy = None


@dataclass(frozen=True, slots=True)
class Apr:
    """The APR of a market."""

    asset_id: Annotated[str, AssetId("Asset id")]
    apr: Annotated[Decimal, Rate("Without compounding")]


@dataclass(frozen=True, slots=True)
class Rates:
    """The APRs of all lend markets and of all debt markets, by asset id."""

    lend: Mapping[str, Decimal]
    borrow: Mapping[str, Decimal]

    @classmethod
    def of(cls, markets: Iterable[Market]) -> "Rates":
        listed = list(markets)
        return cls(
            lend={market.asset_id: market.lend.apr for market in listed if market.lend},
            borrow={market.asset_id: market.debt.apr for market in listed if market.debt},
        )


@lru_cache(maxsize=10_000)
def apy(apr: Decimal) -> Decimal:
    """(1 + apr/n)^n - 1 for the n seconds of a 365-day year, with 18 decimals, half to even (rule 4.5, yearly rates).
    The APR must be in the range that can be stored."""
    per_second = _COMPOUNDING.add(1, _COMPOUNDING.divide(apr, SECONDS_PER_YEAR))
    return quantize(_COMPOUNDING.subtract(_COMPOUNDING.power(per_second, SECONDS_PER_YEAR), 1))


def rate_of(market: LendMarket | DebtMarket | None) -> MarketRate:
    """The rate of a market; 0 without a market."""
    apr = market.apr if market else ZERO
    return MarketRate(apr, apy(apr))


def net_rate(parts: Iterable[tuple[Decimal | None, MarketRate]]) -> MarketRate | UnknownRate:
    """The means of rates weighted by value, from pairs of value and rate, with at most 18 decimals (rule 6.5, net
    rates). 0 if nothing has a value, and unknown if a value is unknown."""
    listed = list(parts)
    pairs = [(value, rate) for value, rate in listed if value is not None]
    if len(pairs) < len(listed):
        return UnknownRate()
    total_value = sum_decimals(value for value, _ in pairs)
    return MarketRate(
        apr=as_fraction(sum_decimals(EXACT.multiply(value, rate.apr) for value, rate in pairs), total_value),
        apy=as_fraction(sum_decimals(EXACT.multiply(value, rate.apy) for value, rate in pairs), total_value),
    )


@dataclass(frozen=True, slots=True)
class Earned:
    """The earnings of lenders since the first snapshot of their market: the rise of the redemption ratio above its
    maximum so far, times the receipts at the snapshot before. A recovered loss earns nothing.

    `highest` is the maximum, as principal and receipts in denom units; None before there were receipts.
    """

    highest: tuple[int, int] | None = None
    receipts: int = 0
    parts: int = 0

    @property
    def units(self) -> int:
        """Denom units of the lent asset, rounded down."""
        return self.parts >> _BITS

    def after(self, snapshots: Iterable[tuple[int, int]]) -> "Earned":
        """The earnings after later snapshots, from principal and receipts of each, oldest first."""
        highest, out, parts = self.highest, self.receipts, self.parts
        for principal, receipts in snapshots:
            if receipts:
                top, base = highest or (0, 1)
                if (rise := principal * base - top * receipts) > 0 and highest:
                    parts -= -(out * rise << _BITS) // (receipts * base)
                if rise > 0 or not highest:
                    highest = principal, receipts
            out = receipts
        return Earned(highest, out, parts)
