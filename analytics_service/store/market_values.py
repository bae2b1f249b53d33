"""What the markets of a snapshot are worth, as observations."""

from collections.abc import Iterable, Mapping
from decimal import Decimal

from analytics_service.market.markets import Market
from analytics_service.market.supply import MarketValues, supply_of, utilization
from analytics_service.market.values import quantized_below_limit
from analytics_service.store.histories import COLLATERAL, DEBT, DEPOSITS, NET_TVL, TVL, UTILIZATION, History
from analytics_service.store.observations import TOTAL, Values


def worth(markets: Iterable[Market], values: Mapping[str, MarketValues]) -> Values:
    """Values by history, from all markets and what those are worth by asset id that have any value.

    What is unknown, or 10^20 or more, is left out (rule 2.15).
    """
    tvl = supply_of(values.values()).tvl
    found: dict[History, Mapping[str, Decimal | None]] = {
        TVL: {TOTAL: tvl.tvl},
        NET_TVL: {TOTAL: tvl.net_tvl},
        DEPOSITS: {asset_id: one.deposits for asset_id, one in values.items()},
        COLLATERAL: {asset_id: one.collateral.balance for asset_id, one in values.items() if one.collateral},
        DEBT: {asset_id: one.debt.balance for asset_id, one in values.items() if one.debt},
        UTILIZATION: {market.asset_id: utilization(market) for market in markets},
    }
    return {history: _storable(own) for history, own in found.items()}


def _storable(values: Mapping[str, Decimal | None]) -> dict[str, Decimal]:
    return {
        asset_id: one for asset_id, one in values.items() if one is not None and quantized_below_limit(one) is not None
    }
