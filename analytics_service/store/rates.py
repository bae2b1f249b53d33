"""Lend and borrow rates as observations."""

from analytics_service.market.rates import Rates
from analytics_service.store.histories import BORROW_RATES, LEND_RATES
from analytics_service.store.observations import Values


def values_of(rates: Rates) -> Values:
    """The rates by history. The store holds rates in [0, 100]."""
    return {LEND_RATES: rates.lend, BORROW_RATES: rates.borrow}
