"""/api/v1/openapi.json and /docs: the API, described for programs and for people."""

import re

import falcon
import orjson

from analytics_service.errors import AnalyticsError
from analytics_service.http.answer import Answer, Validators, send, tag_of
from analytics_service.http.coding import negotiate
from analytics_service.http.components import published
from analytics_service.http.docs import marked_simulated, page
from analytics_service.http.openapi import Object
from analytics_service.http.resource import DESCRIPTIVE, Fixed, Resource
from analytics_service.resources.examples import values
from analytics_service.state.heads import Heads
from analytics_service.state.view import View, Views

# What a host may be called in the examples; anything else might not be what a shell takes it for.
_HOST = re.compile(r"[A-Za-z0-9._:\[\]-]+")


class OpenApi(Fixed):
    """The OpenAPI document, without an envelope."""

    def __init__(self, document: Object) -> None:
        super().__init__(orjson.dumps(published(document)))


class Docs(Resource):
    """The OpenAPI document as a page, which says when data is simulated. Its example requests are to this service, and
    for data that it has. Its policy forbids scripts and external resources."""

    media = (falcon.MEDIA_HTML,)

    def __init__(self, document: Object, views: Views, heads: Heads) -> None:
        policy = ("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
        self._headers = (("Content-Type", self.media[0]), policy)
        self._document = document
        self._views = views
        self._heads = heads

    def on_get(self, req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        """Send the page."""
        self.given(req, path)
        body = self._page(req.prefix if _HOST.fullmatch(req.netloc) else "http://HOST").encode()
        coding = negotiate(req.get_header("Accept-Encoding"))
        send(req, resp, Answer(Validators(tag_of(body)), coding, body, self._headers), DESCRIPTIVE)

    def _page(self, base: str) -> str:
        def of(view: View) -> str:
            return page(self._document, base, lambda path: values(path, view))

        try:
            html = self._views.of_newest(of)
            is_simulated = any(origin.simulated for origin in self._heads.known().origins)
        except AnalyticsError:
            # The page describes the API, also while the store is away.
            return page(self._document, base, lambda path: {})
        return marked_simulated(html) if is_simulated else html
