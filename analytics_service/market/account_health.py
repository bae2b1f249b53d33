"""Values and health of a borrow account (rules 6.4 and 6.8)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Literal, Protocol

from analytics_service.market.assets import Asset
from analytics_service.market.decimals import EXACT, ZERO, as_fraction, sum_decimals
from analytics_service.market.kinds import Ratio
from analytics_service.market.markets import GlobalConfig, Market
from analytics_service.market.prices import Prices
from analytics_service.market.ptoken import Ptoken

INFINITE = Decimal("Infinity")
Side = Literal["collateral", "debt", "stake"]


class Rules(Protocol):
    """Inputs of the values and health of accounts, other than prices. Mappings are by asset id."""

    @property
    def assets(self) -> Mapping[str, Asset]: ...

    @property
    def markets(self) -> Mapping[str, Market]: ...

    @property
    def config(self) -> GlobalConfig: ...

    @property
    def ptoken(self) -> Ptoken: ...


@dataclass(frozen=True, slots=True)
class Group:
    """Items that are valued alike: by side of the account, asset or staking pool, and their own liquidation LTV."""

    side: Side
    asset_id: str = ""
    pool: int = 0
    own_ltv: Decimal | None = None

    def priced_by(self, rules: Rules) -> str:
        """The asset whose price values the group."""
        return rules.ptoken.asset_id if self.side == "stake" else self.asset_id


@dataclass(frozen=True, slots=True)
class Unit:
    """A denom unit of a group: its USD value, weighted if it is staked, and the liquidation LTV of collateral. `hides`:
    items of the group make health unknown."""

    value: Decimal = ZERO
    ltv: Decimal = ZERO
    is_priced: bool = True
    hides: bool = False


def unit_of(group: Group, rules: Rules, prices: Prices) -> Unit:
    """A unit of a group. Without a price it is worth 0, and hides health if it is a debt, or if its asset has lost its
    price. A stake without effect on health does not hide it."""
    asset_id = group.priced_by(rules)
    price = prices.get(asset_id)
    if price is not None and (group.side == "stake" or asset_id in rules.assets):
        return unit_at(group, rules, price)
    is_lost = price is None and asset_id in prices
    counts = group.side != "stake" or bool(_weight(group, rules) and rules.config.staking_health_modifier)
    return Unit(is_priced=False, hides=group.side == "debt" or (is_lost and counts))


def unit_at(group: Group, rules: Rules, price: Decimal) -> Unit:
    """A unit of a group at a price of its asset; worth 0 if the asset is not defined."""
    asset = rules.assets.get(group.priced_by(rules))
    if group.side == "stake":
        return Unit(EXACT.multiply(EXACT.scaleb(price, -asset.decimals_denom if asset else 0), _weight(group, rules)))
    value = EXACT.scaleb(price, -asset.decimals_denom) if asset else ZERO
    if group.side == "debt":
        return Unit(value)
    market = rules.markets.get(group.asset_id)
    market_ltv = market.collateral.config.liquidation_ltv if market and market.collateral else ZERO
    return Unit(value, market_ltv if group.own_ltv is None else group.own_ltv)


def _weight(group: Group, rules: Rules) -> Decimal:
    """The health weight of a stake's pool; 0 if the protocol token does not list the pool."""
    return next((pool.health_weight for pool in rules.ptoken.pools if pool.index == group.pool), ZERO)


@dataclass(frozen=True, slots=True)
class Health:
    """An account's health. Without debt, base and result are infinite and boost is 0. All are None if health cannot be
    computed: a debt has no price, collateral has lost its price, or there is debt and a stake has lost its price."""

    base: Annotated[Decimal | None, Ratio("Value of collateral, times its liquidation LTV, divided by value of debt")]
    boost: Annotated[Decimal | None, Ratio("Increase by staked protocol token")]

    @property
    def result(self) -> Decimal | None:
        return None if self.base is None or self.boost is None else EXACT.add(self.base, self.boost)


@dataclass(frozen=True, slots=True)
class AccountValues:
    """Exact USD values of an account: each collateral with its liquidation LTV, all debts, and the weighted stakes. The
    values of `hidden` sides are unknown; here they include known items only."""

    collaterals: Sequence[tuple[Decimal, Decimal]]
    debt: Decimal
    staked: Decimal
    hidden: frozenset[Side] = frozenset()

    @property
    def collateral(self) -> Decimal:
        return sum_decimals(value for value, _ in self.collaterals)

    @property
    def secured(self) -> Decimal:
        return sum_decimals(EXACT.multiply(value, ltv) for value, ltv in self.collaterals)

    def known(self, side: Literal["collateral", "debt"]) -> Decimal | None:
        """The value of a side; None if it is unknown."""
        if side in self.hidden:
            return None
        return self.debt if side == "debt" else self.collateral

    def health(self, config: GlobalConfig) -> Health:
        if self.hidden & {"collateral", "debt"} or (self.hidden and self.debt):
            return Health(None, None)
        return account_health(self.collaterals, self.debt, self.staked, config)


def account_values(items: Iterable[tuple[Group, Unit, int]]) -> AccountValues:
    """The values of an account, from group, unit and amount (denom units) of each item."""
    collaterals: list[tuple[Decimal, Decimal]] = []
    debt, staked = ZERO, ZERO
    hidden: set[Side] = set()
    for group, unit, amount in items:
        value = EXACT.multiply(amount, unit.value)
        if group.side == "collateral":
            collaterals.append((value, unit.ltv))
        elif group.side == "debt":
            debt = EXACT.add(debt, value)
        else:
            staked = EXACT.add(staked, value)
        if unit.hides and amount:
            hidden.add(group.side)
    return AccountValues(collaterals, debt, staked, frozenset(hidden))


def account_health(
    collaterals: Iterable[tuple[Decimal, Decimal]], debt: Decimal, staked: Decimal, config: GlobalConfig
) -> Health:
    """Health from pairs of collateral value and liquidation LTV, the value of debts, and the value of weighted stakes.

    Values are in USD, not rounded; base and boost are rounded to 18 decimals. Debts worth 0 USD count as no debt.
    """
    if not debt:
        return Health(INFINITE, ZERO)
    pairs = list(collaterals)
    secured = sum_decimals(EXACT.multiply(value, ltv) for value, ltv in pairs)
    return Health(as_fraction(secured, debt), _boost(sum_decimals(value for value, _ in pairs), staked, config))


def _boost(collateral: Decimal, staked: Decimal, config: GlobalConfig) -> Decimal:
    """The boost grows with the stake, up to the modifier. Without collateral it is 0."""
    if not collateral:
        return ZERO
    required = EXACT.multiply(config.stake_collateral_ratio, collateral)
    if staked >= required:
        return config.staking_health_modifier
    return as_fraction(EXACT.multiply(config.staking_health_modifier, staked), required)
