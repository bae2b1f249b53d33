"""Errors in responses: one table from kind of error to status and scope (rule 3.1)."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus

import falcon

from analytics_service.errors import (
    AccessRefused,
    BeingCorrected,
    Busy,
    EntityNotFound,
    Lost,
    NoSnapshot,
    NotReady,
    ParameterInvalid,
    SchemaError,
    StoreUnavailable,
)
from analytics_service.http.answer import EXPOSED, NO_STORE, PROTECTIVE, failure, reason
from analytics_service.http.requests import HEADER, OWN_REQUEST, target_for_log
from analytics_service.logs import Seldom

log = logging.getLogger(__name__)

_RETRY_AFTER, _RETRY_AFTER_CORRECTION = "5", "30"


class RequestError(Exception):
    """A request that is refused. `kind` names a row of the table below; `headers` are sent with the answer."""

    def __init__(self, kind: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.headers = dict(headers or {})


@dataclass(frozen=True, slots=True)
class Case:
    """A row of the table of errors."""

    status: HTTPStatus
    scope: str


CASES = {
    "unauthorized": Case(HTTPStatus.UNAUTHORIZED, "client"),
    "path_unknown": Case(HTTPStatus.NOT_FOUND, "client"),
    "method_not_allowed": Case(HTTPStatus.METHOD_NOT_ALLOWED, "client"),
    "path_parameter_invalid": Case(HTTPStatus.BAD_REQUEST, "client"),
    "query_parameter_missing": Case(HTTPStatus.BAD_REQUEST, "client"),
    "query_parameter_invalid": Case(HTTPStatus.BAD_REQUEST, "client"),
    "query_parameter_unknown": Case(HTTPStatus.BAD_REQUEST, "client"),
    "entity_not_found": Case(HTTPStatus.NOT_FOUND, "user"),
    "content_type_unsupported": Case(HTTPStatus.NOT_ACCEPTABLE, "client"),
    "request_malformed": Case(HTTPStatus.BAD_REQUEST, "client"),
    "uri_too_long": Case(HTTPStatus.REQUEST_URI_TOO_LONG, "client"),
    "headers_too_large": Case(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "client"),
    "unavailable": Case(HTTPStatus.SERVICE_UNAVAILABLE, "server"),
    "internal": Case(HTTPStatus.INTERNAL_SERVER_ERROR, "server"),
}
# Further kinds, which nginx answers (`example nginx`).
NGINX_KINDS = ("content_too_large", "rate_limited")
_MESSAGES = {
    "request_malformed": "The request is malformed: it must follow HTTP/1.1, and percent-encode all but visible ASCII.",
    "uri_too_long": "The request's path and query are too long; 8,190 bytes fit in its first line.",
    "headers_too_large": "The request's headers are too long or too many.",
    "internal": "The service failed unexpectedly. The reason is in its log, with this answer's X-Request-ID.",
}
_UNAVAILABLE = "The service cannot read its store at the moment. Try again in a few seconds."


def shortened(value: str) -> str:
    """A caller's value, quoted and shortened for a message."""
    return repr(value if len(value) <= 80 else value[:77] + "...")


def install(app: falcon.App[falcon.Request, falcon.Response], paths: str = "/docs lists all paths") -> None:
    """Make the app answer every error in the envelope. `paths` is the hint in the answer to an unknown path."""
    app.add_error_handler(Exception, _unexpected)
    app.add_error_handler(falcon.HTTPError, partial(_from_falcon, paths))
    app.add_error_handler(RequestError, _request_error)
    app.add_error_handler(ParameterInvalid, _parameter_invalid)
    app.add_error_handler(EntityNotFound, partial(_told, "entity_not_found"))
    refusals = Seldom()
    app.add_error_handler((StoreUnavailable, AccessRefused, SchemaError), partial(_store_unavailable, refusals))
    app.add_error_handler((NoSnapshot, NotReady, Lost), partial(_told, "unavailable"))
    app.add_error_handler(Busy, partial(_busy, refusals))


def malformed(kind: str, request_id: str, *, any_origin: bool) -> bytes:
    """The complete response to a request that the application never sees. It closes the connection."""
    status = CASES[kind].status
    body = failure(status, kind, CASES[kind].scope, _MESSAGES[kind])
    head = [f"HTTP/1.1 {status.value} {reason(status)}", f"Content-Type: {falcon.MEDIA_JSON}"]
    head += [
        f"Content-Length: {len(body)}",
        f"Cache-Control: {NO_STORE}",
        "Connection: close",
        f"{HEADER}: {request_id}",
    ]
    head += [f"{name}: {value}" for name, value in PROTECTIVE.items()]
    if any_origin:
        head += ["Access-Control-Allow-Origin: *", f"Access-Control-Expose-Headers: {', '.join(EXPOSED)}"]
    return "\r\n".join([*head, "", ""]).encode() + body


def _answer(resp: falcon.Response, kind: str, message: str) -> None:
    case = CASES[kind]
    resp.status = case.status
    resp.content_type = falcon.MEDIA_JSON
    resp.data = failure(case.status, kind, case.scope, message)
    resp.set_header("Cache-Control", NO_STORE)
    if kind == "unavailable":
        resp.set_header("Retry-After", _RETRY_AFTER)


def _request_error(req: falcon.Request, resp: falcon.Response, error: RequestError, params: object) -> None:
    _answer(resp, error.kind, str(error))
    resp.set_headers(error.headers)


def _parameter_invalid(req: falcon.Request, resp: falcon.Response, error: ParameterInvalid, params: object) -> None:
    value = req.get_param(error.parameter)
    assignment = "" if value is None else f"={shortened(value)}"
    _answer(resp, "query_parameter_invalid", f"Query parameter {error.parameter}{assignment}: {error}.")


def _told(kind: str, req: falcon.Request, resp: falcon.Response, error: Exception, params: object) -> None:
    _answer(resp, kind, str(error))


def _busy(seldom: Seldom, req: falcon.Request, resp: falcon.Response, error: Busy, params: object) -> None:
    if (more := seldom.passes(_kind(error))) is not None:
        said = "Requests are answered with 503, because they would wait for more than five seconds."
        log.warning("%s%s%s", said, _cause(error), more)
    _answer(resp, "unavailable", str(error))
    if isinstance(error, BeingCorrected):
        resp.set_header("Retry-After", _RETRY_AFTER_CORRECTION)


def _cause(error: Exception) -> str:
    # ClickHouse's own messages may have several lines.
    return f" ({' '.join(str(error.__cause__).split())})" if error.__cause__ else ""


def _kind(error: Exception) -> str:
    """What refusals for the same cause have in common: all but the query, the seconds and the like in parentheses."""
    return str(error.__cause__ or error).partition(" (")[0]


def _store_unavailable(
    seldom: Seldom, req: falcon.Request, resp: falcon.Response, error: Exception, params: object
) -> None:
    # No client waits for the requests that a worker sends to itself while it starts.
    level = logging.DEBUG if OWN_REQUEST in req.env else logging.WARNING
    more = "" if level == logging.DEBUG else seldom.passes(_kind(error))
    if more is not None:
        log.log(level, "%s %s: %s%s%s", req.method, target_for_log(req), error, _cause(error), more)
    _answer(resp, "unavailable", _UNAVAILABLE)


def _from_falcon(
    paths: str, req: falcon.Request, resp: falcon.Response, error: falcon.HTTPError, params: object
) -> None:
    if error.status_code == HTTPStatus.NOT_FOUND:
        hint = "no path ends with a slash" if req.path.endswith("/") else paths
        _answer(resp, "path_unknown", f"There is nothing at {req.path[:200]}; {hint}.")
    elif error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        _answer(resp, "method_not_allowed", f"{req.method[:20]} is not allowed; GET, HEAD and OPTIONS are.")
        resp.set_headers(error.headers or {})
    elif error.status_code < HTTPStatus.INTERNAL_SERVER_ERROR:
        _answer(resp, "request_malformed", _MESSAGES["request_malformed"])
    else:
        _unexpected(req, resp, error, params)


def _unexpected(req: falcon.Request, resp: falcon.Response, error: Exception, params: object) -> None:
    log.error("%s %s failed", req.method, target_for_log(req), exc_info=error)
    _answer(resp, "internal", _MESSAGES["internal"])
