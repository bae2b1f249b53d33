"""The pages for people, and the files that they load."""

from functools import cache

import falcon

from analytics_service.http.answer import Answer, Validators, send, tag_of
from analytics_service.http.coding import Coding, negotiate
from analytics_service.http.errors import RequestError
from analytics_service.http.resource import Fixed, Resource
from analytics_service.web import files

# Scripts, styles and data of this service only. The charting library sets styles of elements.
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)


class Page(Fixed):
    """An HTML page. It names its files by their versions, so browsers ask for it every time."""

    media = (falcon.MEDIA_HTML,)
    cache_control = "no-cache"

    def __init__(self, name: str, **facts: str) -> None:
        headers = (("Content-Type", self.media[0]), ("Content-Security-Policy", _POLICY))
        super().__init__(files.page(name, **facts), headers)

    def on_get(self, req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        """Send the page, whatever the query: that is for the page's own scripts."""
        self._send(req, resp)


class Files(Resource):
    """Files of the pages. What is at a path never changes."""

    media = tuple(files.TYPES.values())
    cache_control = "public, max-age=31536000, immutable"

    def __init__(self) -> None:
        self._answer = cache(_answer)

    def on_get(self, req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        """Send a file. RequestError for a name or version that there is not."""
        version, name = path.pop("version"), path.pop("name")
        self.given(req, path)
        if (version, name) not in files.files():
            raise RequestError("path_unknown", f"There is nothing at {req.path[:200]}; reload the page that names it.")
        send(req, resp, self._answer(version, name, negotiate(req.get_header("Accept-Encoding"))), self.cache_control)


def _answer(version: str, name: str, coding: Coding) -> Answer:
    file = files.files()[version, name]
    return Answer(Validators(tag_of(file.body)), coding, file.body, (("Content-Type", file.media),))
