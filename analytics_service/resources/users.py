"""/api/v1/users/{address}/user: everything of one address."""

import falcon

from analytics_service.http import params
from analytics_service.http.envelope import success
from analytics_service.http.resource import Resource, answer
from analytics_service.market.portfolio import portfolio
from analytics_service.present.positions import USER_POSITION
from analytics_service.present.shapes import Scope
from analytics_service.resources.current import flags_of
from analytics_service.resources.view import Views

_FAMILIES = ("prices", "markets", "ptoken", "positions")


class User(Resource):
    """The position of an address; one that has none is empty."""

    path = (params.ADDRESS,)
    query = (params.WITH_TEXT, params.WITH_VALUE, params.WITH_PERCENT)
    shape = USER_POSITION

    def __init__(self, views: Views) -> None:
        self._views = views

    def on_get(self, req: falcon.Request, resp: falcon.Response, address: str) -> None:  # type: ignore[override]
        """Reads the rows of this address only; what they are seen against is shared by all."""
        owner = params.read_path(params.ADDRESS, address)
        flags = flags_of(params.read(req, self.query))
        view = self._views.newest()
        at = view.at(_FAMILIES)
        unlocking = view.arrangements_of(owner)
        record = portfolio(view.position(owner), unlocking, view.world, view.head("ptoken").instant)
        scope = Scope(flags, view.assets, view.prices)
        answer(resp, success(USER_POSITION.render(record, scope)), at)

    def on_head(self, req: falcon.Request, resp: falcon.Response, address: str) -> None:  # type: ignore[override]
        """Answer with the headers that GET would."""
        self.on_get(req, resp, address)
