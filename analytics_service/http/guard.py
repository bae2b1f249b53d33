"""Middleware that checks API keys, and the rate limit (rules 3.5 and 3.6)."""

import re

import falcon

from analytics_service.config.values import BEARER, Networks
from analytics_service.http.api_keys import ApiKeys
from analytics_service.http.errors import RequestError
from analytics_service.http.measuring import OWN_REQUEST
from analytics_service.http.rate_limit import LEFT, POLICY, RateLimit
from analytics_service.http.requests import client_of

_GUARDED = "/api/v1"
# It has no data, and people who read /docs have no key.
_OPEN = "/api/v1/openapi.json"
# Load balancers ask these, often from an address that they share with clients.
_PROBES = ("/healthz", "/readyz")
_BEARER = re.compile(f"bearer +({BEARER.pattern}) *", re.IGNORECASE)
_CHALLENGE = 'Bearer realm="analytics-service"'


def is_guarded(path: str) -> bool:
    """Whether a path needs a key, if any does. It may be a path that no route has."""
    return (path == _GUARDED or path.startswith(f"{_GUARDED}/")) and path != _OPEN


class Guard:
    """Checks API keys and the rate limit, if they are set. It comes before everything else that refuses requests, so
    that callers without a key learn nothing."""

    def __init__(self, keys: ApiKeys | None, limit: RateLimit | None, trusted: Networks) -> None:
        self._keys = keys
        self._limit = limit
        self._trusted = trusted

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        """RequestError `unauthorized` or `rate_limited`. OPTIONS is allowed: browsers send it without a key."""
        if req.method == "OPTIONS" or OWN_REQUEST in req.env or req.path in _PROBES:
            return
        name = self._keys.name_of(_key(req)) if self._keys is not None else None
        req.context.key = name
        if self._limit is not None:
            # Requests with a wrong key count against their address.
            client = f"address {client_of(req, self._trusted)}" if name is None else f"key {name}"
            quota = self._limit.take(client)
            resp.set_header(POLICY, self._limit.policy)
            resp.set_header(LEFT, self._limit.left(quota))
            if not quota.allowed:
                requests, seconds = self._limit.rate
                raise RequestError(
                    "rate_limited",
                    f"At most {requests:,} requests in {seconds:,} s are allowed; try again in {quota.seconds:,} s.",
                    {"Retry-After": str(quota.seconds)},
                )
        if self._keys is not None and name is None and is_guarded(req.path):
            raise _unauthorized(req)

    def process_response(
        self, req: falcon.Request, resp: falcon.Response, resource: object, req_succeeded: bool
    ) -> None:
        """Mark answers that need a key as private, so that no shared cache keeps them."""
        if self._keys is not None and is_guarded(req.path):
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
