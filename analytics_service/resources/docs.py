"""/api/v1/openapi.json and /docs: what the service answers, for programs and for people."""

import falcon
import orjson

from analytics_service.http.docs import page
from analytics_service.http.openapi import Object
from analytics_service.http.resource import Fixed


class OpenApi(Fixed):
    """The OpenAPI document, as it is: it has no envelope."""

    def __init__(self, document: Object) -> None:
        super().__init__(orjson.dumps(document))


class Docs(Fixed):
    """The OpenAPI document as a page. Nothing in it is allowed to run or to be fetched."""

    media = falcon.MEDIA_HTML

    def __init__(self, document: Object) -> None:
        policy = ("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
        super().__init__(page(document).encode(), (("Content-Type", self.media), policy))
