"""Middleware that checks API keys (rule 3.5)."""

import re
from collections.abc import Mapping

import falcon

from analytics_service.config.values import BEARER
from analytics_service.http.api_keys import digest
from analytics_service.http.errors import RequestError
from analytics_service.http.measuring import OWN_REQUEST

_GUARDED = "/api/v1"
# It has no data, and people who read /docs have no key.
_OPEN = "/api/v1/openapi.json"
_BEARER = re.compile(f"bearer +({BEARER.pattern}) *", re.IGNORECASE)
_CHALLENGE = 'Bearer realm="analytics-service"'


def is_guarded(path: str) -> bool:
    """Whether a path needs a key, if any does. It may be a path that no route has."""
    return (path == _GUARDED or path.startswith(f"{_GUARDED}/")) and path != _OPEN


class Guard:
    """Checks API keys. It comes before everything else that refuses requests, so that callers without a key learn
    nothing."""

    def __init__(self, keys: Mapping[str, str]) -> None:
        self._keys = keys

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        """RequestError `unauthorized`. OPTIONS is allowed: browsers send it without a key."""
        if req.method == "OPTIONS" or OWN_REQUEST in req.env:
            return
        req.context.key = name = self._keys.get(digest(_key(req)))
        if name is None and is_guarded(req.path):
            raise _unauthorized(req)

    def process_response(
        self, req: falcon.Request, resp: falcon.Response, resource: object, req_succeeded: bool
    ) -> None:
        """Mark answers that need a key as private, so that no shared cache keeps them."""
        if is_guarded(req.path):
            resp.append_header("Vary", "Authorization")
            if cache_control := resp.get_header("Cache-Control"):
                resp.set_header("Cache-Control", cache_control.replace("public", "private"))


def _key(req: falcon.Request) -> str:
    """The bearer token of a request. It is empty, which is no valid key, without a token or with another scheme."""
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
