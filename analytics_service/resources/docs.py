"""/api/v1/openapi.json and /docs: the API, described for programs and for people."""

import falcon
import orjson

from analytics_service.http.components import published
from analytics_service.http.docs import page
from analytics_service.http.openapi import Object
from analytics_service.http.resource import Fixed


class OpenApi(Fixed):
    """The OpenAPI document, without an envelope."""

    def __init__(self, document: Object) -> None:
        super().__init__(orjson.dumps(published(document)))


class Docs(Fixed):
    """The OpenAPI document as a page. Its policy forbids scripts and external resources."""

    media = falcon.MEDIA_HTML

    def __init__(self, document: Object) -> None:
        policy = ("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
        super().__init__(page(document).encode(), (("Content-Type", self.media), policy))
