"""An independent, slow calculation of the risk of accounts, with fractions, account by account."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from analytics_service.market.positions import Account, Position
from tests.unit.small_protocol import Context

F = Fraction


def round18(value: Fraction) -> Fraction:
    """With 18 decimals, half to even."""
    return F(round(value * 10**18), 10**18)


def decimal(value: Fraction) -> Decimal:
    """A fraction that was rounded."""
    return Decimal(round(value * 10**18)).scaleb(-18)


def prices_of(context: Context, quoted: Mapping[str, Decimal | None]) -> dict[str, Fraction]:
    """The quoted prices, and those of receipt tokens that nobody quotes. None is a price that was lost."""
    prices = {asset_id: F(price) for asset_id, price in quoted.items() if price is not None}
    # Receipt tokens of receipt tokens take another round.
    for _ in context.assets:
        for name, market in context.markets.items():
            receipt = context.assets[name].receipt_asset
            if market.lend and receipt and receipt not in prices and name in prices:
                lent, out = market.lend.principal, market.lend.receipt_supply
                units = F(lent, 10 ** context.assets[name].decimals_denom)
                ratio = round18(units / F(out, 10 ** context.assets[receipt].decimals_denom)) if out else 1
                prices[receipt] = round18(prices[name] * ratio)
    return prices


def lost_of(context: Context, quoted: Mapping[str, Decimal | None]) -> set[str]:
    """The assets whose price was lost, and the receipt tokens that they are the origin of, if nobody quotes them."""
    lost = {asset_id for asset_id, price in quoted.items() if price is None}
    for _ in context.assets:
        lost |= {str(context.assets[name].receipt_asset) for name in lost & context.markets.keys()} - {"None"}
    return lost - prices_of(context, quoted).keys()


@dataclass(frozen=True)
class Judged:
    """An account: values by asset, whether it owes what has no price, whether collateral has none, whether it is in no
    figure, and whether it owes something and a lost price is a cause of that."""

    address: str
    index: int
    collaterals: Mapping[str, Fraction]
    debts: Mapping[str, Fraction]
    unpriced: bool
    unpriced_collateral: bool
    is_unknown: bool
    is_hidden: bool
    health: Fraction | None

    @property
    def collateral(self) -> Fraction:
        return F(sum(self.collaterals.values()))

    @property
    def debt(self) -> Fraction:
        return F(sum(self.debts.values()))

    @property
    def counts(self) -> bool:
        return self.health is not None and not self.is_unknown


def judge(positions: Sequence[Position], context: Context, quoted: Mapping[str, Decimal | None]) -> list[Judged]:
    """All accounts in the order of address and index."""
    prices, lost = prices_of(context, quoted), lost_of(context, quoted)
    judged = [
        _judged(position, account, context, prices, lost) for position in positions for account in position.accounts
    ]
    return sorted(judged, key=lambda account: (account.address, account.index))


def _judged(
    position: Position, account: Account, context: Context, prices: Mapping[str, Fraction], lost: set[str]
) -> Judged:
    sides: dict[str, dict[str, Fraction]] = {"collateral": {}, "debt": {}}
    unpriced: dict[str, set[str]] = {"collateral": set(), "debt": set()}
    secured = F(0)
    for side, held in (
        *(("collateral", held) for held in account.collaterals),
        *(("debt", held) for held in account.debts),
    ):
        market = getattr(context.markets.get(held.asset_id), side, None)
        amount = held.shares * market.balance // market.shares if market and market.shares else 0
        if held.asset_id in prices:
            value = F(amount, 10 ** context.assets[held.asset_id].decimals_denom) * prices[held.asset_id]
            sides[side][held.asset_id] = sides[side].get(held.asset_id, F(0)) + value
            if market and side == "collateral":
                own = held.liquidation_ltv
                secured += value * F(market.config.liquidation_ltv if own is None else own)
        elif amount:
            unpriced[side].add(held.asset_id)
    token = context.ptoken.asset_id
    weights = {pool.index: F(pool.health_weight) for pool in context.ptoken.pools}
    staked = sum(
        F(stake.amount, 10 ** context.assets[token].decimals_denom) * prices.get(token, F(0)) * weights[stake.pool]
        for stake in position.stakes
        if stake.account_index == account.index and stake.pool in weights
    )
    collateral, debt = (F(sum(values.values())) for values in sides.values())
    owes = bool(debt or unpriced["debt"])
    is_boost_lost = (
        token in lost
        and context.config.staking_health_modifier != 0
        and any(
            stake.amount * weights.get(stake.pool, 0) > 0
            for stake in position.stakes
            if stake.account_index == account.index
        )
        and owes
    )
    health = None
    if debt:
        required = F(context.config.stake_collateral_ratio) * collateral
        part = F(0) if not collateral else F(1) if staked >= required else F(staked) / required
        health = round18(secured / debt) + round18(F(context.config.staking_health_modifier) * part)
    return Judged(
        position.address,
        account.index,
        sides["collateral"],
        sides["debt"],
        bool(unpriced["debt"]),
        bool(unpriced["collateral"] or is_boost_lost),
        bool(unpriced["debt"] or unpriced["collateral"] & lost or is_boost_lost),
        owes and bool((unpriced["debt"] | unpriced["collateral"]) & lost or is_boost_lost),
        health,
    )
