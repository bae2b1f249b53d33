"""Markets in upstream's answers, in either shape of the overview (rule 5.2)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import TypeVar

from analytics_service.market.kinds import RATE_LIMIT
from analytics_service.market.markets import (
    CollateralConfig,
    CollateralMarket,
    DebtConfig,
    DebtMarket,
    GlobalConfig,
    LendMarket,
    Market,
)
from analytics_service.sources.upstream.fields import Field, optional, unique

_T = TypeVar("_T")
# The store has times of this many nanoseconds.
_NANOS = 2**64


def read_markets(overview: Field, interest: Mapping[str, int]) -> list[Market]:
    """The markets of every asset that has any, in ascending order of asset id. `interest` was paid to lenders of
    assets, as far as upstream tells it."""
    lends = _by_asset(overview["lend"].contents(), _lend)
    lends = {asset_id: replace(lend, interest_paid=interest.get(asset_id)) for asset_id, lend in lends.items()}
    collaterals = _by_asset(overview["borrow"]["collaterals"].contents(), _collateral)
    debts = _by_asset(overview["borrow"]["debts"].contents(), _debt)
    return [
        Market(asset_id, lends.get(asset_id), collaterals.get(asset_id), debts.get(asset_id))
        for asset_id in sorted({*lends, *collaterals, *debts})
    ]


def read_aprs(markets: Field) -> dict[str, Decimal]:
    """The APR of each market in a list, by asset id."""
    return _by_asset(markets.items(), _apr)


def read_config(config: Field) -> GlobalConfig:
    """The rules of all borrowing."""
    ratios = {
        name: config[name].decimal()
        for name in (
            "partial_liquidation_threshold",
            "target_liquidation_health",
            "liquidation_fee",
            "flash_loan_fee",
            "staking_health_modifier",
            "stake_collateral_ratio",
            "stake_flash_loan_ratio",
            "dynamic_discount_width",
        )
    }
    return GlobalConfig(
        time_window_nanos=config["time_window_nanos"].whole(_NANOS),
        flash_loans_enabled=config["flash_loans_enabled"].flag(),
        hnative=config["hnative"].asset_id(),
        ptoken=config["ptoken"].asset_id(),
        **ratios,
    )


def _by_asset(items: Iterable[Field], read: Callable[[Field], _T]) -> dict[str, _T]:
    markets: dict[str, _T] = {}
    for item in items:
        asset = item["asset_info"]["asset"]
        markets[unique(markets, asset.asset_id(), asset["id"])] = read(item)
    return markets


def _apr(market: Field) -> Decimal:
    field = market["rate"]["apr"]
    apr = field.decimal()
    if not 0 <= apr <= RATE_LIMIT:
        raise field.error(f"is not an APR, a fraction from 0 to {RATE_LIMIT}")
    return apr


def _lend(market: Field) -> LendMarket:
    state = market["state"]
    principal = state.either("principal", "principal_sum").whole()
    return LendMarket(_apr(market), principal, state["receipt_total_supply"].whole())


def _collateral(market: Field) -> CollateralMarket:
    config, state = market["config"], market["state"]
    return CollateralMarket(
        CollateralConfig(
            enabled=config["enabled"].flag(),
            allowable_ltv=config["allowable_ltv"].decimal(),
            liquidation_ltv=config["liquidation_ltv"].decimal(),
            collateral_cap=optional(config.get("collateral_cap"), Field.whole),
            min_discount=config["min_discount"].decimal(),
            max_discount=config["max_discount"].decimal(),
        ),
        balance=state["balance"].whole(),
        # The older shape has no shares; there, what is collateralized stands for them.
        shares=state.either("shares", "collateral_sum").whole(),
    )


def _debt(market: Field) -> DebtMarket:
    config, state = market["config"], market["state"]
    return DebtMarket(
        DebtConfig(
            enabled=config["enabled"].flag(),
            borrow_cap=optional(config.get("borrow_cap"), Field.whole),
            borrow_halt_utilization=config["borrow_halt_utilization"].decimal(),
            interest_fee=config["interest_fee"].decimal(),
        ),
        apr=_apr(market),
        balance=state.either("balance", "balance_sum").whole(),
        shares=state.either("shares", "principal_sum").whole(),
        time_last_distributed_interest=state["time_last_distributed_interest"].time(),
        utilization_accumulator=state["utilization_accumulator"].decimal(),
    )
