"""Base of paths that show current state: rendered once per snapshot and variant, then served as bytes."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import falcon

from analytics_service.http import params
from analytics_service.http.envelope import success
from analytics_service.http.rendered import Rendered
from analytics_service.http.resource import Resource, answer
from analytics_service.present.shapes import Flags, Many, Node, Scope
from analytics_service.resources.view import View, Views


class Current(Resource):
    """A path whose answer changes with the snapshots of some families."""

    families: tuple[str, ...]
    shape: Node

    def __init__(self, views: Views) -> None:
        self._views = views
        self._rendered = Rendered()

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """The record of now in the path's shape."""
        given = params.read(req, self.query)
        view = self._views.newest()
        variant = tuple(given.values())
        body = self._rendered.body(view.versions(self.families), variant, lambda: self._render(view, given))
        answer(resp, body, view.at(self.families))

    @abstractmethod
    def record(self, view: View, given: Mapping[str, Any]) -> Any:
        """What is shown. EntityNotFound when the parameters name nothing."""

    def _render(self, view: View, given: Mapping[str, Any]) -> bytes:
        # Receipt tokens are priced by their markets; a path that does not show markets needs no snapshot of them.
        prices = view.prices if "markets" in self.families else view.quoted
        data = self.shape.render(self.record(view, given), Scope(flags_of(given), view.assets, prices))
        return success(data, count=len(data) if isinstance(self.shape, Many) and isinstance(data, list) else None)


def flags_of(given: Mapping[str, Any]) -> Flags:
    """The variants that a request's parameters ask for."""
    return Flags(
        text=given.get("with_text", False),
        value=given.get("with_value", False),
        percent=given.get("with_percent", False),
    )
