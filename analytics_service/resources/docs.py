"""/api/v1/openapi.json and /docs: the description of the API, for programs and for people."""

from collections.abc import Callable

import falcon
import orjson

from analytics_service.http.docs import POLICY, render_docs
from analytics_service.http.openapi import Object, Routes
from analytics_service.http.resource import Fixed


class OpenApi(Fixed):
    """The OpenAPI document, without an envelope."""

    def __init__(self, document: Callable[[], Object]) -> None:
        super().__init__(lambda: orjson.dumps(document()))


class Docs(Fixed):
    """The API as a web page."""

    media = (falcon.MEDIA_HTML,)

    def __init__(self, document: Callable[[], Object], routes: Routes) -> None:
        headers = (("Content-Type", self.media[0]), ("Content-Security-Policy", POLICY))
        super().__init__(lambda: render_docs(document(), routes).encode(), headers)
