"""/api/v1/openapi.json and /docs: the API, described for programs and for people."""

import falcon
import orjson

from analytics_service.errors import AnalyticsError
from analytics_service.http.components import published
from analytics_service.http.docs import marked_simulated, page
from analytics_service.http.openapi import Object
from analytics_service.http.resource import Fixed
from analytics_service.state.heads import Heads


class OpenApi(Fixed):
    """The OpenAPI document, without an envelope."""

    def __init__(self, document: Object) -> None:
        super().__init__(orjson.dumps(published(document)))


class Docs(Fixed):
    """The OpenAPI document as a page, which says when data is simulated. Its policy forbids scripts and external
    resources."""

    media = (falcon.MEDIA_HTML,)

    def __init__(self, document: Object, heads: Heads) -> None:
        policy = ("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
        headers = (("Content-Type", self.media[0]), policy)
        plain = page(document)
        super().__init__(plain.encode(), headers)
        self._simulated = Fixed(marked_simulated(plain).encode(), headers)
        self._heads = heads

    def on_get(self, req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        """Send the page."""
        if self._has_simulated_data():
            self._simulated.on_get(req, resp, **path)
        else:
            super().on_get(req, resp, **path)

    def _has_simulated_data(self) -> bool:
        try:
            return any(origin.simulated for origin in self._heads.known().origins)
        except AnalyticsError:
            # The page describes the API, also while the store is away.
            return False
