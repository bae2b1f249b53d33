"""Bases of resources: GET, and HEAD which is GET without its body."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cache
from typing import Any

import falcon

from analytics_service.http import params
from analytics_service.http.answer import NO_STORE, Answer, Headers, Label, send, tag_of_body
from analytics_service.http.coding import chosen
from analytics_service.http.params import Param
from analytics_service.present.shapes import Node

ALLOWED = ("GET", "HEAD", "OPTIONS")
_FIXED = "public, max-age=300"


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
    def on_get(self, req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        """Answer the request."""

    def on_head(self, req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        """Answer with the headers that GET would."""
        self.on_get(req, resp, **path)

    def on_options(self, req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        """Say which methods there are; cross-origin headers are added for browsers."""
        resp.set_header("Allow", ", ".join(ALLOWED))
        resp.set_header("Content-Length", "0")

    def given(self, req: falcon.Request, path: Mapping[str, str]) -> dict[str, Any]:
        """All declared parameters, parsed, in their order. RequestError when one is wrong."""
        in_path = {param.name: params.read_path(param, path[param.name]) for param in self.path}
        return in_path | params.read(req, self.query)


class Live(Resource):
    """A path without parameters whose answer is as of now, and nobody's to keep."""

    headers: Headers = ()
    """Headers beside those that every answer has."""

    def on_get(self, req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        """The body of now."""
        self.given(req, path)
        body, coding = self.body(), chosen(req.get_header("Accept-Encoding"))
        send(req, resp, Answer(Label(tag_of_body(body)), coding, body, self.headers), NO_STORE)

    @abstractmethod
    def body(self) -> bytes:
        """The body of now. NotReady when there is none."""


class Fixed(Resource):
    """A path without parameters that answers the same as long as the process runs."""

    def __init__(self, body: bytes, headers: Headers = ()) -> None:
        label = Label(tag_of_body(body))
        self._answer = cache(lambda coding: Answer(label, coding, body, headers))

    def on_get(self, req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        """The body."""
        self.given(req, path)
        send(req, resp, self._answer(chosen(req.get_header("Accept-Encoding"))), _FIXED)
