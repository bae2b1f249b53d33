"""Middleware for every request: methods, media types and cross-origin access."""

from typing import Any

import falcon

from analytics_service.http.errors import RequestError
from analytics_service.http.resource import ALLOWED, Resource

# Headers that pages of other origins may read.
_EXPOSED = (
    *("Allow", "As-Of", "ETag", "Last-Modified", "Link", "Retry-After", "X-Request-ID"),
    *("RateLimit", "RateLimit-Policy"),
)


class Negotiation:
    """Refuses methods that no route has, and callers that rule out the response's media type."""

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Answers 405 to methods unknown to Falcon, which would answer 400."""
        if req.method not in falcon.COMBINED_METHODS:
            raise falcon.HTTPMethodNotAllowed(ALLOWED)

    def process_resource(
        self, req: falcon.Request, resp: falcon.Response, resource: Resource, params: dict[str, object]
    ) -> None:
        """Runs for known paths only, so that an unknown path is reported first."""
        if req.method in ("GET", "HEAD") and not req.client_accepts(resource.media):
            raise RequestError(
                "content_type_unsupported", f"Accept: {req.accept[:80]} rules out {resource.media}, all there is here."
            )


class CrossOrigin(falcon.CORSMiddleware[Any, Any]):
    """Lets browsers read from other origins. `origins` is the setting: `*` or a comma-separated list."""

    def __init__(self, origins: str) -> None:
        allowed = "*" if origins == "*" else [origin.strip() for origin in origins.split(",")]
        super().__init__(allow_origins=allowed, expose_headers=list(_EXPOSED))

    def process_response(
        self, req: falcon.Request, resp: falcon.Response, resource: object, req_succeeded: bool
    ) -> None:
        """Tells caches that headers depend on the origin, unless every origin is allowed.

        In that case callers without an origin get the headers too: a cache may pass their answer to a browser.
        """
        super().process_response(req, resp, resource, req_succeeded)
        if self.allow_origins == "*":
            resp.set_header("Access-Control-Allow-Origin", "*")
            resp.set_header("Access-Control-Expose-Headers", str(self.expose_headers))
        else:
            resp.append_header("Vary", "Origin")
