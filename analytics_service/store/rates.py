"""Lend and borrow rates as observations."""

from collections.abc import Iterable

from analytics_service.market.markets import Market
from analytics_service.store.histories import BORROW_RATES, LEND_RATES
from analytics_service.store.observations import Values


def rates_of(markets: Iterable[Market]) -> Values:
    """The rates of all lend and debt markets. The store holds those in [0, 100]."""
    listed = list(markets)
    return {
        LEND_RATES: {one.asset_id: one.lend.apr for one in listed if one.lend},
        BORROW_RATES: {one.asset_id: one.debt.apr for one in listed if one.debt},
    }
