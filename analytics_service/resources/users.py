"""/api/v1/users/{address}/user: everything of one address."""

from collections.abc import Mapping
from typing import Any

from analytics_service.http import params
from analytics_service.market.portfolio import Portfolio, portfolio
from analytics_service.present.positions import USER_POSITION
from analytics_service.resources.current import Current
from analytics_service.resources.view import View


class User(Current):
    """The position of an address; one that has none is empty."""

    families = ("prices", "markets", "ptoken", "positions")
    path = (params.ADDRESS,)
    query = (params.WITH_TEXT, params.WITH_VALUE, params.WITH_PERCENT)
    shape = USER_POSITION

    def record(self, view: View, given: Mapping[str, Any]) -> Portfolio:
        """Reads the rows of this address only; what they are seen against is shared by all."""
        owner = given["address"]
        unlocking = view.arrangements_of(owner)
        return portfolio(view.position(owner), unlocking, view.world, view.head("ptoken").instant)
