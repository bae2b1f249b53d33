"""What the position of an address comes to: the metrics of its history, at one instant (rules 6.4 and 6.7)."""

from decimal import Decimal
from enum import StrEnum

from analytics_service.market.health import INFINITE
from analytics_service.market.portfolio import BorrowAccount, Portfolio, held_value, value_of
from analytics_service.market.values import ZERO, fraction, known_total, quantized_below_limit


class Metric(StrEnum):
    """A number that sums up a position: USD values, the least health, and debt divided by collateral."""

    NET_VALUE = "net-value"
    COLLATERAL = "collateral"
    DEBT = "debt"
    DEPOSITS = "deposits"
    HEALTH = "health"
    LTV = "ltv"


# Those of a single borrow account, too.
OF_ACCOUNTS = (Metric.COLLATERAL, Metric.DEBT, Metric.HEALTH, Metric.LTV)
# Those that staked protocol token adds to.
WITH_STAKES = (Metric.NET_VALUE, Metric.HEALTH)


def worth(metric: Metric, portfolio: Portfolio, account: int | None = None) -> Decimal | None:
    """The metric, or that of a borrow account, with 18 decimals; None if it is unknown, infinite, or 10^20 or more."""
    value = _worth(metric, portfolio, [one for one in portfolio.accounts if account in (None, one.index)])
    return None if value is None else quantized_below_limit(value)


def _worth(metric: Metric, portfolio: Portfolio, accounts: list[BorrowAccount]) -> Decimal | None:
    if metric is Metric.HEALTH:
        results = [one.health.result for one in accounts]
        return None if None in results else min((result for result in results if result is not None), default=INFINITE)
    if metric is Metric.DEPOSITS:
        return _deposits(portfolio, "total")
    posted = known_total(one.values.known("collateral") for one in accounts)
    if metric is Metric.COLLATERAL:
        return posted
    owed = known_total(one.values.known("debt") for one in accounts)
    if metric is Metric.DEBT:
        return owed
    if metric is Metric.LTV:
        return fraction(owed, posted) if owed is not None and posted else None
    parts = (posted, _deposits(portfolio, "held"), _wallet(portfolio), _staked(portfolio), owed and owed.copy_negate())
    return known_total(parts)


def _deposits(portfolio: Portfolio, part: str) -> Decimal | None:
    """What the receipt tokens redeem: all of them, or those that are held. Collateral has the others."""
    context, values = portfolio.context, []
    for lend in portfolio.lends:
        is_known = held_value(getattr(lend.receipt_amounts, part), lend.asset_id, context) is not None
        value = value_of(getattr(lend.origin_equivalent, part), lend.asset_id, context)
        values.append(value if is_known else None)
    return known_total(values)


def _wallet(portfolio: Portfolio) -> Decimal | None:
    """The wallet without the receipt tokens that are deposits."""
    balances = (balance for balance in portfolio.position.wallet if balance.asset_id not in portfolio.redeemed)
    return known_total(held_value(balance.amount, balance.asset_id, portfolio.context) for balance in balances)


def _staked(portfolio: Portfolio) -> Decimal | None:
    """Protocol token that is staked, unstaking, or to be claimed."""
    position = portfolio.position
    amount = position.unclaimed + position.claimable_rewards + position.claimable_unbonding
    amount += sum(stake.amount for stake in position.stakes) + sum(leaving.amount for leaving in position.unbondings)
    return held_value(amount, portfolio.context.ptoken.asset_id, portfolio.context) if amount else ZERO
