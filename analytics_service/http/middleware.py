"""Middleware for every request: hosts, methods, media types and cross-origin access."""

import re
import socket
from functools import cache, lru_cache
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any

import falcon
from falcon.util.mediatypes import quality

from analytics_service.http.answer import EXPOSED, PROTECTIVE
from analytics_service.http.errors import RequestError, shortened
from analytics_service.http.requests import path_as_sent
from analytics_service.http.resource import ALLOWED, Resource

_FORMAT = re.compile(r"(?:^|&)format=")


class OwnHosts:
    """Refuses requests for names that are not this machine's (rule 1.4).

    A web page can make its own name lead here, and then read answers in its visitors' browsers (DNS rebinding). No
    name leads to a Unix socket.
    """

    def __init__(self, bind: str) -> None:
        self._names = ("localhost", bind.rpartition(":")[0].lower())
        self._is_checked = not bind.startswith("unix:")

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        """RequestError `request_malformed` if the `Host` is neither an address nor an own name."""
        host = req.host.lower()
        own = host in self._names or _is_address(host) or host in _names_of_machine()
        if self._is_checked and not own:
            raise RequestError(
                "request_malformed",
                f"Host: {shortened(req.host)} is no name of this machine: use its address, localhost, its host name, "
                "or the name in ANALYTICS_METRICS_BIND.",
            )


def _is_address(host: str) -> bool:
    try:
        return bool(ip_address(host))
    except ValueError:
        return False


@cache
def _names_of_machine() -> tuple[str, str]:
    """Its host name, and that with its domain, which may be asked of the network."""
    return socket.gethostname().lower(), socket.getfqdn().lower()


class Conventions:
    """What holds for every path: how requests are spelled, which media types there are, and headers that protect people
    who open a response in a browser."""

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Refuses ambiguous paths (rule 7.2), and answers 405 to methods unknown to Falcon, which would answer 400.

        HTTP/1.1 requires a `Host` (RFC 9112, 3.2); gunicorn leaves it to the application to say so.
        """
        if "HTTP_HOST" not in req.env and req.env["SERVER_PROTOCOL"] == "HTTP/1.1":
            raise RequestError("request_malformed", "The request is malformed: HTTP/1.1 requires a Host header.")
        path = path_as_sent(req)
        if "//" in path or "%2f" in path.lower():
            raise RequestError(
                "path_unknown", f"There is nothing at {path[:200]}; no path has double or percent-encoded slashes."
            )
        if req.method not in falcon.COMBINED_METHODS:
            raise falcon.HTTPMethodNotAllowed(ALLOWED)

    def process_resource(
        self, req: falcon.Request, resp: falcon.Response, resource: Resource, params: dict[str, object]
    ) -> None:
        """Puts the media type that the caller prefers in the context. RequestError if it rules out all of them, unless
        the query has a format. It runs for known paths only, so an unknown path is reported first."""
        if req.method not in ("GET", "HEAD"):
            return
        media = resource.media
        chosen = preferred(req.accept, media)
        if chosen is None and not (len(media) > 1 and _FORMAT.search(req.query_string)):
            raise RequestError(
                "content_type_unsupported",
                f"Accept: {req.accept[:80]} rules out {', '.join(media)}, all there is here.",
            )
        req.context.media = chosen or media[0]

    def process_response(
        self, req: falcon.Request, resp: falcon.Response, resource: object, req_succeeded: bool
    ) -> None:
        """A header that the response already has takes precedence. A 304 leaves the headers of the 200 in force."""
        if resp.status_code != HTTPStatus.NOT_MODIFIED:
            for name, value in PROTECTIVE.items():
                if resp.get_header(name) is None:
                    resp.set_header(name, value)


class CrossOrigin(falcon.CORSMiddleware[Any, Any]):
    """Lets browsers read from other origins. `origins` is the setting: `*` or a comma-separated list."""

    def __init__(self, origins: str) -> None:
        allowed = "*" if origins == "*" else [origin.strip() for origin in origins.split(",")]
        super().__init__(allow_origins=allowed, expose_headers=list(EXPOSED))

    def process_response(
        self, req: falcon.Request, resp: falcon.Response, resource: object, req_succeeded: bool
    ) -> None:
        """Tells caches that headers depend on the origin, unless every origin is allowed.

        If every origin is allowed, callers without an origin get the headers too: a cache may pass the answer on.
        """
        super().process_response(req, resp, resource, req_succeeded)
        if self.allow_origins == "*":
            resp.set_header("Access-Control-Allow-Origin", "*")
            resp.set_header("Access-Control-Expose-Headers", str(self.expose_headers))
        else:
            resp.append_header("Vary", "Origin")


@lru_cache(maxsize=256)
def preferred(accept: str, media: tuple[str, ...]) -> str | None:
    """The type with the highest q; at equal q a type that the header names, then the first (rule 7.4). None if all are
    ruled out.

    Case and empty elements do not matter (RFC 9110, 5.6.1 and 8.3.1). Any other malformed header allows nothing.
    """
    ranges = ",".join(part for part in accept.lower().split(",") if part.strip())
    if not ranges:
        return media[0]
    named = {part.partition(";")[0].strip() for part in ranges.split(",")}
    try:
        best = max(media, key=lambda media_type: (quality(media_type, ranges), media_type in named))
        return best if quality(best, ranges) > 0 else None
    except ValueError:
        return None
