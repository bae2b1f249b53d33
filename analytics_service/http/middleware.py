"""Middleware: the steps around each responder, in their order."""

import logging
import re
import time
from collections.abc import Callable, Mapping
from functools import lru_cache

import falcon
from falcon.util.mediatypes import quality

from analytics_service.config.parsers import BEARER
from analytics_service.http.answer import EXPOSED, PROTECTIVE
from analytics_service.http.api_keys import digest
from analytics_service.http.errors import (
    HEADER,
    OWN_REQUEST,
    RequestError,
    new_request_id,
    path_as_sent,
    shorten,
    target_for_log,
)
from analytics_service.http.instruments import UNKNOWN, Instruments
from analytics_service.http.resource import ALLOWED, Resource
from analytics_service.logs import ACCESS, FIELDS, REQUEST_ID

log = logging.getLogger(ACCESS)

_PLAIN_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_BEARER = re.compile(f"bearer +({BEARER.pattern}) *", re.IGNORECASE)
_CHALLENGE = 'Bearer realm="analytics-service"'
_FORMAT = re.compile(r"(?:^|&)format=")
_READABLE = ("Access-Control-Expose-Headers", ", ".join(EXPOSED))
_LINE = "%(client)s %(key)s %(method)s %(path)s %(status)s %(bytes)s B %(ms)s ms %(cache)s"
_NOT_MODIFIED = 304
_FIRST_ERROR = 400


def is_guarded(path: str) -> bool:
    """Whether a path, even an unknown path, needs a key where keys are in use. The OpenAPI document has no data, and
    its readers have no key yet."""
    return (path == "/api/v1" or path.startswith("/api/v1/")) and path != "/api/v1/openapi.json"


class Middleware:
    """The steps around each responder. Without `instruments` nothing is measured. `keys` maps digests to names; without
    it no path needs a key. Pages of `origins` may read answers: `*`, or a list with commas, which may be empty. With
    `is_own_host`, requests for other hosts are refused (rule 1.4, operators)."""

    def __init__(
        self,
        instruments: Instruments | None = None,
        keys: Mapping[str, str] | None = None,
        origins: str = "",
        is_own_host: Callable[[str], bool] | None = None,
        *,
        logs: bool = False,
    ) -> None:
        self._instruments = instruments
        self._keys = keys
        self._origins = {origin.strip() for origin in origins.split(",") if origin}
        self._is_own_host = is_own_host
        self._logs = logs
        allowed = [("Access-Control-Allow-Origin", "*"), _READABLE] if origins == "*" else []
        self._headers = [*PROTECTIVE.items(), *allowed]

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Set the request id and the headers, and start measuring. Then check the host; the key, so that callers
        without a key learn nothing else; and the form."""
        request_id = req.env.get("HTTP_X_REQUEST_ID", "")
        if not _PLAIN_ID.fullmatch(request_id):
            request_id = new_request_id()
        REQUEST_ID.set(request_id)
        resp.set_headers([(HEADER, request_id), *self._headers])
        req.context.begun = time.perf_counter()
        is_own = OWN_REQUEST in req.env
        if self._is_own_host is not None and not self._is_own_host(req.host.lower()):
            raise _foreign_host(req.host)
        # Browsers send OPTIONS without a key.
        if self._keys is not None and not is_own and req.method != "OPTIONS":
            req.context.key = self._keys.get(digest(_key(req)))
            if req.context.key is None and is_guarded(req.path):
                raise _unauthorized(req)
        _require_form(req)

    def process_resource(
        self, req: falcon.Request, resp: falcon.Response, resource: Resource, params: dict[str, object]
    ) -> None:
        """Store the preferred media type in the context. Unknown paths do not get here, so they are reported first.

        Raises RequestError if the caller accepts none of the path's types, unless the query has a format.
        """
        if req.method not in ("GET", "HEAD"):
            return
        media = resource.media
        chosen = preferred(req.accept, media)
        if chosen is None and not (len(media) > 1 and _FORMAT.search(req.query_string)):
            raise RequestError(
                "content_type_unsupported",
                f"Accept: {req.accept[:80]} rules out every media type of this path: {', '.join(media)}.",
            )
        req.context.media = chosen or media[0]

    def process_response(
        self, req: falcon.Request, resp: falcon.Response, resource: object, req_succeeded: bool
    ) -> None:
        """Finish the headers, measure, log, and clear the request id: the thread serves another request next."""
        if self._keys is not None and is_guarded(req.path):
            _keep_private(resp)
        if self._origins:
            self._allow_origin(req, resp, is_preflight=req_succeeded and req.method == "OPTIONS")
        if self._instruments is not None and OWN_REQUEST not in req.env:
            self._measure(self._instruments, req, resp)
        REQUEST_ID.set("")

    def _allow_origin(self, req: falcon.Request, resp: falcon.Response, *, is_preflight: bool) -> None:
        """Let browsers of other origins read the answer. Unless all origins are allowed, `Vary` has Origin. If they
        are, requests without an origin get the headers, too, because a cache may reuse the answer for a browser."""
        if "*" not in self._origins:
            resp.append_header("Vary", "Origin")
            if (origin := req.get_header("Origin")) not in self._origins:
                return
            resp.set_headers([("Access-Control-Allow-Origin", str(origin)), _READABLE])
        if is_preflight and req.get_header("Access-Control-Request-Method"):
            resp.set_header("Access-Control-Allow-Methods", resp.get_header("Allow") or "")
            requested = req.get_header("Access-Control-Request-Headers") or "*"
            resp.set_headers([("Access-Control-Allow-Headers", requested), ("Access-Control-Max-Age", "86400")])

    def _measure(self, instruments: Instruments, req: falcon.Request, resp: falcon.Response) -> None:
        status, seconds = resp.status_code, time.perf_counter() - req.context.begun
        route, size, outcome = req.uri_template or UNKNOWN, _size(req, resp, status), _cache_outcome(req, status)
        instruments.answered(route, status, seconds, size, outcome)
        if self._logs:
            fields = {
                "client": req.env.get("REMOTE_ADDR") or None,
                "key": getattr(req.context, "key", None),
                "method": req.method,
                "path": target_for_log(req),
                "route": route,
                "status": status,
                "bytes": size,
                "ms": round(seconds * 1000, 3),
                "cache": outcome,
            }
            shown = {name: "-" if value is None else value for name, value in fields.items()}
            log.info(_LINE, shown, extra={FIELDS: fields})


def _foreign_host(host: str) -> RequestError:
    return RequestError(
        "request_malformed",
        f"Host: {shorten(host)} is not a name of this machine. Use its address, localhost, its host name, or the name "
        "in ANALYTICS_METRICS_BIND.",
    )


def _key(req: falcon.Request) -> str:
    """The bearer token of a request; empty, which is not a valid key, without a token or with another scheme."""
    match = _BEARER.fullmatch(req.get_header("Authorization") or "")
    return match[1] if match else ""


def _unauthorized(req: falcon.Request) -> RequestError:
    if req.get_header("Authorization") is None:
        message, challenge = "An API key is required", _CHALLENGE
    elif _key(req):
        message, challenge = "The API key is not valid", f'{_CHALLENGE}, error="invalid_token"'
    else:
        message, challenge = "The Authorization header is malformed", f'{_CHALLENGE}, error="invalid_request"'
    return RequestError(
        "unauthorized", f"{message}: send a header Authorization: Bearer KEY.", {"WWW-Authenticate": challenge}
    )


def _require_form(req: falcon.Request) -> None:
    """Refuse ambiguous paths (rule 7.2, ambiguous paths), and methods that Falcon does not know: 405, where Falcon
    answers 400. HTTP/1.1 requires a `Host` (RFC 9112, 3.2), which gunicorn leaves to the application."""
    if "HTTP_HOST" not in req.env and req.env["SERVER_PROTOCOL"] == "HTTP/1.1":
        raise RequestError("request_malformed", "The request is malformed: HTTP/1.1 requires a Host header.")
    path = path_as_sent(req)
    if "//" in path or "%2f" in path.lower():
        raise RequestError(
            "path_unknown", f"There is nothing at {path[:200]}; no path has double or percent-encoded slashes."
        )
    if req.method not in falcon.COMBINED_METHODS:
        raise falcon.HTTPMethodNotAllowed(ALLOWED)


@lru_cache(maxsize=256)
def preferred(accept: str, media: tuple[str, ...]) -> str | None:
    """The media type that an Accept header prefers (rule 7.4, media types); None if it rules out all.

    The highest q wins; among equals a type that the header names, then the first type. Case and empty elements do not
    matter (RFC 9110, 5.6.1 and 8.3.1). Any other malformed header allows nothing.
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


def _keep_private(resp: falcon.Response) -> None:
    """Mark an answer that needs a key as private, so that shared caches do not keep it."""
    resp.append_header("Vary", "Authorization")
    if cache_control := resp.get_header("Cache-Control"):
        resp.set_header("Cache-Control", cache_control.replace("public", "private"))


def _cache_outcome(req: falcon.Request, status: int) -> str | None:
    """The answer cache's outcome for a request; None for paths without a cache, and for errors."""
    outcome: str | None = getattr(req.context, "cache", None)
    if outcome is None or status >= _FIRST_ERROR:
        return None
    return "not_modified" if status == _NOT_MODIFIED else outcome


def _size(req: falcon.Request, resp: falcon.Response, status: int) -> int:
    if req.method == "HEAD" or status == _NOT_MODIFIED:
        return 0
    return len(resp.data) if resp.data is not None else int(resp.content_length or 0)
