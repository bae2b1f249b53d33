"""Middleware that measures every request, and logs it if the settings say so."""

import logging
import time

import falcon

from analytics_service.http.instruments import UNKNOWN, Instruments
from analytics_service.http.requests import target_for_log
from analytics_service.logs import ACCESS, FIELDS

log = logging.getLogger(ACCESS)

# Set in the environment of requests that a worker sends to itself, which do not count. No header can have this name.
OWN_REQUEST = "analytics_service.own_request"
_LINE = "%(client)s %(key)s %(method)s %(path)s %(status)s %(bytes)s B %(ms)s ms %(cache)s"
_NOT_MODIFIED = 304
_FIRST_ERROR = 400


class Measuring:
    """Measures each request, including the time of other middleware. So only RequestIds may come before it."""

    def __init__(self, instruments: Instruments, *, logs: bool) -> None:
        self._instruments = instruments
        self._logs = logs

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        if OWN_REQUEST not in req.env:
            req.context.begun = time.perf_counter()
            self._instruments.in_flight.inc()

    def process_response(
        self, req: falcon.Request, resp: falcon.Response, resource: object, req_succeeded: bool
    ) -> None:
        if OWN_REQUEST in req.env:
            return
        self._instruments.in_flight.dec()
        status = resp.status_code
        seconds = time.perf_counter() - req.context.begun
        route, size, outcome = req.uri_template or UNKNOWN, _size(req, resp, status), _cache_outcome(req, status)
        # The guard knows it.
        key: str | None = getattr(req.context, "key", None)
        self._instruments.answered(route, status, seconds, size, outcome)
        if key is not None:
            self._instruments.answered_key(key, status)
        if self._logs:
            fields = {
                "client": req.env.get("REMOTE_ADDR") or None,
                "key": key,
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


def _cache_outcome(req: falcon.Request, status: int) -> str | None:
    """What the cache of answers did for a request; None for paths without a cache, and for errors."""
    outcome: str | None = getattr(req.context, "cache", None)
    if outcome is None or status >= _FIRST_ERROR:
        return None
    return "not_modified" if status == _NOT_MODIFIED else outcome


def _size(req: falcon.Request, resp: falcon.Response, status: int) -> int:
    if req.method == "HEAD" or status == _NOT_MODIFIED:
        return 0
    return len(resp.data) if resp.data is not None else int(resp.content_length or 0)
