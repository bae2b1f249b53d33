"""Issuance and staking of the simulated protocol token. The same for every seed."""

from dataclasses import dataclass
from decimal import ROUND_DOWN, Context, Decimal

from analytics_service.market.instants import DAY, HOUR
from analytics_service.market.rates import SECONDS_PER_YEAR
from analytics_service.sources.simulated.clock import LAUNCH

# In denom units; a token has 10^6.
TOTAL_SUPPLY = 1_000_000_000 * 10**6
EMISSION_RATE = 40_000_000 * 10**6
TOKENS_PER_WEIGHT = 1_000_000
_ISSUED_AT_LAUNCH = 400_000_000 * 10**6
# Reward weight of all stakes that the accumulator assumes, in denom units.
_REWARD_WEIGHT = 12_000_000 * 10**6
_CONTEXT = Context(prec=40, rounding=ROUND_DOWN)


@dataclass(frozen=True, slots=True)
class PoolTerms:
    """A staking pool's lock-up in seconds, and its multipliers."""

    duration: int
    reward_weight: Decimal
    gov_weight: Decimal
    health_weight: Decimal
    flash_loan_weight: Decimal


POOLS = (
    PoolTerms(14 * DAY, Decimal("0.25"), Decimal("0.25"), Decimal("0.5"), Decimal("0.5")),
    PoolTerms(90 * DAY, Decimal("0.5"), Decimal("0.5"), Decimal("0.75"), Decimal("0.75")),
    PoolTerms(180 * DAY, Decimal("0.75"), Decimal("0.75"), Decimal("0.9"), Decimal("0.9")),
    PoolTerms(365 * DAY, Decimal(1), Decimal(1), Decimal(1), Decimal(1)),
)


def distributed_at(second: int) -> int:
    """Time of the last distribution of rewards, which happens on every full hour."""
    return second - second % HOUR


def issued(second: int) -> int:
    """Denom units issued up to the last distribution, never more than the total supply."""
    return min(_ISSUED_AT_LAUNCH + EMISSION_RATE * _elapsed(second) // SECONDS_PER_YEAR, TOTAL_SUPPLY)


def stake_acc(second: int) -> Decimal:
    """Denom units that a unit of reward weight has earned up to the last distribution, with 18 decimals."""
    earned = Decimal(EMISSION_RATE * _elapsed(second))
    per_weight = _CONTEXT.divide(earned, Decimal(_REWARD_WEIGHT * SECONDS_PER_YEAR))
    return per_weight.quantize(Decimal("1e-18"), context=_CONTEXT)


def _elapsed(second: int) -> int:
    return max(distributed_at(second) - LAUNCH, 0)
