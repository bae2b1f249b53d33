"""USD values of the markets and of the risk of a snapshot, as observations."""

from collections.abc import Iterable, Mapping
from decimal import Decimal

from analytics_service.market.markets import Market
from analytics_service.market.risk import Risk
from analytics_service.market.supply import MarketValues, supply_of, utilization
from analytics_service.market.values import quantized_below_limit
from analytics_service.store.histories import (
    ACCOUNTS_AT_RISK,
    COLLATERAL,
    DEBT,
    DEBT_AT_RISK,
    DEPOSITS,
    LIQUIDATABLE_DEBT,
    NET_TVL,
    TVL,
    UTILIZATION,
    History,
)
from analytics_service.store.observations import TOTAL, Values


def values_by_history(markets: Iterable[Market], values: Mapping[str, MarketValues]) -> Values:
    """Values by history, from all markets and the values of those that have any, by asset id.

    Unknown values, and those of 10^20 or more, are left out (rule 2.15).
    """
    tvl = supply_of(values.values()).tvl
    by_history: dict[History, Mapping[str, Decimal | None]] = {
        TVL: {TOTAL: tvl.tvl},
        NET_TVL: {TOTAL: tvl.net_tvl},
        DEPOSITS: {asset_id: market.deposits for asset_id, market in values.items()},
        COLLATERAL: {asset_id: market.collateral.balance for asset_id, market in values.items() if market.collateral},
        DEBT: {asset_id: market.debt.balance for asset_id, market in values.items() if market.debt},
        UTILIZATION: {market.asset_id: utilization(market) for market in markets},
    }
    return {history: _storable(by_asset) for history, by_asset in by_history.items()}


def risk_by_history(risk: Risk) -> Values:
    """The values of the histories of risk; those of 10^20 or more are left out."""
    values = {
        DEBT_AT_RISK: risk.at_risk.debt_value,
        ACCOUNTS_AT_RISK: Decimal(risk.at_risk.accounts),
        LIQUIDATABLE_DEBT: risk.liquidatable.debt_value,
    }
    return {history: _storable({TOTAL: value}) for history, value in values.items()}


def _storable(values: Mapping[str, Decimal | None]) -> dict[str, Decimal]:
    return {
        asset_id: value
        for asset_id, value in values.items()
        if value is not None and quantized_below_limit(value) is not None
    }
