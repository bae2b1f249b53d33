"""/api/v1/users/{address}/user: everything that an address has."""

from collections.abc import Mapping
from typing import Any

from analytics_service.http import params
from analytics_service.market.portfolio import Portfolio, User, unlocks_at
from analytics_service.present.positions import USER_POSITION
from analytics_service.resources.current import Current
from analytics_service.state.view import View


class UserPosition(Current):
    """The position of an address; it is empty if the address has none."""

    families = ("prices", "markets", "ptoken", "positions")
    path = (params.ADDRESS,)
    query = (params.WITH_TEXT, params.WITH_VALUE, params.WITH_PERCENT)
    shape = USER_POSITION

    def record(self, view: View, given: Mapping[str, Any]) -> User:
        """Everything that the address has. Only its own rows are read; the rest is shared by all addresses."""
        address = given["address"]
        unlocks = unlocks_at(view.arrangements_of(address), view.ptoken.asset_id, view.head("ptoken").instant)
        return User(Portfolio(view.position(address), view), unlocks)
