"""/api/v1/analytics/market/state: how much the markets have been used."""

from collections.abc import Mapping
from typing import Any

from analytics_service.present.analytics import MARKET_STATE, MarketState
from analytics_service.resources.current import Current
from analytics_service.state.view import View


class AnalyticsState(Current):
    """How much the markets have been used so far."""

    families = ("markets", "loans", "positions")
    describes_assets = False
    shape = MARKET_STATE

    def record(self, view: View, arguments: Mapping[str, Any]) -> MarketState:
        """Cumulative loans and interest, and the numbers of users."""
        return MarketState(view.activity, view.loans, view.interest_paid)
