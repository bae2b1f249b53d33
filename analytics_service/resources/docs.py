"""/api/v1/openapi.json and /docs: what the service answers, for programs and for people."""

import falcon
import orjson

from analytics_service.http import params
from analytics_service.http.docs import page
from analytics_service.http.openapi import Object
from analytics_service.http.resource import Resource, answer


class OpenApi(Resource):
    """The OpenAPI document, as it is: it has no envelope."""

    def __init__(self, document: Object) -> None:
        self._body = orjson.dumps(document)

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """The document."""
        params.read(req, self.query)
        answer(resp, self._body)


class Docs(Resource):
    """The OpenAPI document as a page."""

    media = falcon.MEDIA_HTML

    def __init__(self, document: Object) -> None:
        self._body = page(document).encode()

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """The page. Nothing in it is allowed to run or to be fetched."""
        params.read(req, self.query)
        resp.content_type = self.media
        resp.set_header("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
        answer(resp, self._body)
