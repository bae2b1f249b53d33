"""Base of all resources: GET, and HEAD which is GET without its body."""

from abc import ABC, abstractmethod
from datetime import UTC, datetime

import falcon

from analytics_service.http.params import Param
from analytics_service.present.shapes import Node

ALLOWED = ("GET", "HEAD", "OPTIONS")


class Resource(ABC):
    """A path that answers GET and HEAD; Falcon drops the body of a HEAD and keeps its length."""

    query: tuple[Param, ...] = ()
    """Query parameters the path takes; all others are refused."""
    path: tuple[Param, ...] = ()
    """Parameters in the path itself."""
    shape: Node | None = None
    """What `data` is. A list has a count too; paths without a shape are not in the OpenAPI document."""
    media: str = falcon.MEDIA_JSON
    """Media type of the answer; callers that rule it out are refused."""
    summary: str
    """What the path answers, in a line: that of the class's docstring, unless a resource sets its own."""

    def __init_subclass__(cls) -> None:
        if "summary" not in vars(cls):
            cls.summary = (cls.__doc__ or "").strip().partition("\n")[0]

    @abstractmethod
    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Answer the request."""

    def on_head(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Answer with the headers that GET would."""
        self.on_get(req, resp)

    def on_options(self, req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        """Say which methods there are; cross-origin headers are added for browsers."""
        resp.set_header("Allow", ", ".join(ALLOWED))
        resp.set_header("Content-Length", "0")


def answer(resp: falcon.Response, body: bytes, at: int | None = None) -> None:
    """Send a body; `at` is the newest snapshot in it, unix seconds, which becomes Last-Modified (decisions 7)."""
    resp.data = body
    if at is not None:
        resp.last_modified = datetime.fromtimestamp(at, UTC)
