"""Base classes of resources, which answer GET, HEAD and OPTIONS."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import falcon
from polars.exceptions import PanicException

from analytics_service.http.answer import NO_STORE, Answer, Headers, answer_of, send
from analytics_service.http.declared_params import Param, parse_params
from analytics_service.present.shapes import Node

ALLOWED = ("GET", "HEAD", "OPTIONS")
DESCRIPTIVE = "public, max-age=300"
"""Cache-Control of paths that describe the API."""


class Resource(ABC):
    """A path. Falcon drops the body of a HEAD response and keeps its Content-Length."""

    query: tuple[Param, ...] = ()
    """Query parameters. All others are refused."""
    path: tuple[Param, ...] = ()
    """Path parameters."""
    shape: Node | None = None
    """Shape of `data`. Paths without a shape are not in the OpenAPI document."""
    media: tuple[str, ...] = (falcon.MEDIA_JSON,)
    """Media types of the answer, the default first."""
    summary = ""
    """Summary for /docs, in one line."""

    @abstractmethod
    def respond(self, req: falcon.Request, resp: falcon.Response, **path: str) -> None: ...

    def on_get(self, req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        """Answer the request. A panic of Polars is raised as a RuntimeError: it is not an Exception, so Falcon would
        neither answer it nor call the middleware at the end."""
        try:
            self.respond(req, resp, **path)
        except PanicException as panic:
            raise RuntimeError("Polars panicked.") from panic

    def on_head(self, req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        self.on_get(req, resp, **path)

    def on_options(self, req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        """List the methods. Middleware adds the cross-origin headers."""
        resp.set_header("Allow", ", ".join(ALLOWED))
        resp.set_header("Content-Length", "0")

    def parse(self, req: falcon.Request, path: Mapping[str, str]) -> dict[str, Any]:
        """The values of all declared parameters by name. Raises RequestError for the first fault."""
        return parse_params(req, self.query, self.path, path)


class Live(Resource):
    """A path without parameters whose answer is rendered for each request and must not be cached. `make` returns the
    body, and may raise NotReady; `headers` describe it."""

    cache_control = NO_STORE

    def __init__(self, make: Callable[[], bytes], headers: Headers = ()) -> None:
        self.answer: Callable[[], Answer] = lambda: answer_of(make(), headers)

    def respond(self, req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        self.parse(req, path)
        send(req, resp, self.answer(), self.cache_control)


class Fixed(Live):
    """A path without parameters whose answer never changes while the process runs. The first request renders it."""

    cache_control = DESCRIPTIVE

    def __init__(self, make: Callable[[], bytes], headers: Headers = ()) -> None:
        super().__init__(make, headers)
        self.answer = cache(self.answer)
