"""Utilization, the resulting rates, and the interest accrued since launch."""

from dataclasses import dataclass
from decimal import Context, Decimal
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise

from analytics_service.market.instants import DAY, HOUR, MINUTE
from analytics_service.market.rates import SECONDS_PER_YEAR
from analytics_service.sources.simulated.clock import LAUNCH
from analytics_service.sources.simulated.noise import UNIT, ease, octave
from analytics_service.sources.simulated.terms import TERMS, Curve

# Periods (seconds) and swings of the waves that add up to utilization; the swings sum to 0.285.
_WAVES = (
    (8 * HOUR, 15 * UNIT // 1000),
    (3 * DAY, 40 * UNIT // 1000),
    (21 * DAY, 100 * UNIT // 1000),
    (120 * DAY, 130 * UNIT // 1000),
)
# Days whose interest is summed and cached together.
_ERA = 64
_CONTEXT = Context(prec=40)


@dataclass(frozen=True)
class Accrued:
    """Borrow rate, lend rate and utilization, each summed over the seconds up to an instant, in `UNIT`."""

    borrowed: int
    lent: int
    utilization: int

    @cached_property
    def debt_index(self) -> int:
        """The debt of a share, in `UNIT`."""
        return _grown(self.borrowed)

    @cached_property
    def lend_index(self) -> int:
        """The amount that a receipt token redeems, in `UNIT`."""
        return _grown(self.lent)


def distributed_at(second: int) -> int:
    """Time of the last distribution of interest, which happens on every full minute."""
    return second - second % MINUTE


def utilization(seed: str, asset_id: str, second: int) -> int:
    """The part of the lent principal that is borrowed, in `UNIT`; from 0.26 to 0.95."""
    curve = _curve(asset_id)
    key = f"{seed}|{asset_id}|utilization"
    return curve.centre + sum(swing * ease(octave(key, period), second) // UNIT for period, swing in _WAVES)


def borrow_rate(asset_id: str, used: int) -> int:
    """Borrow APR at a utilization, both in `UNIT`."""
    curve = _curve(asset_id)
    below, above = min(used, curve.kink), max(used - curve.kink, 0)
    return curve.base + curve.slope * below // curve.kink + curve.steep * above // (UNIT - curve.kink)


def lend_rate(asset_id: str, used: int) -> int:
    """Lend APR at a utilization: the interest that borrowers pay on each unit lent, less the interest fee."""
    debt = TERMS[asset_id].debt
    kept = UNIT - int(debt.interest_fee * UNIT) if debt else UNIT
    return borrow_rate(asset_id, used) * used * kept // UNIT**2


@lru_cache(maxsize=20_000)
def accrued(seed: str, asset_id: str, second: int) -> Accrued:
    """Interest distributed up to a second. Nothing accrues before launch."""
    days, within = divmod(max(distributed_at(second) - LAUNCH, 0), DAY)
    era, day = divmod(days, _ERA)
    sums = _sums(seed, asset_id, era)
    borrow, lend, used = (
        before + (after - before) * within // DAY for before, after in zip(sums[day], sums[day + 1], strict=True)
    )
    return Accrued(borrow, lend, used)


@lru_cache(maxsize=2_000)
def _sums(seed: str, asset_id: str, era: int) -> tuple[tuple[int, int, int], ...]:
    """Borrow rate, lend rate and utilization summed over the seconds up to the start of each day of an era.

    A day earns the mean of the rates at its start and end.
    """
    begin = LAUNCH + era * _ERA * DAY
    levels = [utilization(seed, asset_id, begin + day * DAY) for day in range(_ERA + 1)]
    rates = [(borrow_rate(asset_id, level), lend_rate(asset_id, level), level) for level in levels]
    before = _sums(seed, asset_id, era - 1)[-1] if era else (0, 0, 0)
    days = (
        tuple((a + b) * DAY // 2 for a, b in zip(today, tomorrow, strict=True)) for today, tomorrow in pairwise(rates)
    )
    return tuple(accumulate(days, _plus, initial=before))


def _plus(left: tuple[int, int, int], right: tuple[int, ...]) -> tuple[int, int, int]:
    return left[0] + right[0], left[1] + right[1], left[2] + right[2]


def _grown(rate_seconds: int) -> int:
    """The value of 1 after continuous interest, in `UNIT`."""
    exponent = _CONTEXT.divide(Decimal(rate_seconds), Decimal(UNIT * SECONDS_PER_YEAR))
    return int(_CONTEXT.multiply(_CONTEXT.exp(exponent), Decimal(UNIT)))


def _curve(asset_id: str) -> Curve:
    curve = TERMS[asset_id].curve
    if curve is None:
        raise ValueError(f"{asset_id} cannot be borrowed")
    return curve
