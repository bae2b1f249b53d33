"""Lend and borrow rates as observations."""

from collections.abc import Iterable

from analytics_service.market.markets import Market
from analytics_service.store.histories import BORROW_RATES, LEND_RATES
from analytics_service.store.observations import Values


def rates_of(markets: Iterable[Market]) -> Values:
    """The rates of all lend and debt markets. The store holds rates in [0, 100]."""
    listed = list(markets)
    return {
        LEND_RATES: {market.asset_id: market.lend.apr for market in listed if market.lend},
        BORROW_RATES: {market.asset_id: market.debt.apr for market in listed if market.debt},
    }
