"""Errors in responses: one table maps kinds of errors to status and scope (rule 3.1, error kinds)."""

import logging
import random
import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from http import HTTPStatus
from ipaddress import ip_address
from urllib.parse import quote

import falcon

from analytics_service.errors import (
    AccessDenied,
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
from analytics_service.http.answer import EXPOSED, NO_STORE, PROTECTIVE, failure, reason_phrase
from analytics_service.logs import RateLimited

HEADER = "X-Request-ID"
# Marks, in the WSGI environment, requests that a worker sends to itself, which do not count. No header can set it.
OWN_REQUEST = "analytics_service.own_request"
# The path within a request target: after any scheme and host, and before the query.
_PATH = re.compile(r"(?:[^/?#]+://[^/?#]*)?([^?#]*)")
# The service has no such parameters, but clients of other services send keys in them.
_SECRET = re.compile(r"((?:^|&)[^=&]*(?:key|token|secret|passw|auth)[^=&]*=)[^&]+", re.IGNORECASE)
log = logging.getLogger(__name__)
_RETRY_AFTER, _RETRY_AFTER_CORRECTION = "5", "30"
# Kinds that nginx answers (`example nginx`).
NGINX_KINDS = ("content_too_large", "rate_limited")
_MESSAGES = {
    "request_malformed": "The request is malformed: it must follow HTTP/1.1, and percent-encode all but visible ASCII.",
    "uri_too_long": "The path and query are too long: the first line of a request may have 8,190 bytes.",
    "headers_too_large": "The request's headers are too long or too many.",
    "internal": "The service failed unexpectedly. Its log has the reason under this answer's X-Request-ID.",
}
_UNAVAILABLE = "The service cannot read its store right now. Try again in a few seconds."


def new_request_id() -> str:
    """A request id: 16 hex digits."""
    # It need not be secret. os.urandom releases the interpreter lock, which a busy worker then waits for: a cached
    # answer took a tenth more processor time.
    return f"{random.getrandbits(64):016x}"


def path_as_sent(req: falcon.Request) -> str:
    """The path before percent-decoding, which turns %2F into a slash, and %0A into a line break in the log."""
    # gunicorn passes RAW_URI on, and refuses anything but visible ASCII in it.
    match = _PATH.match(req.env.get("RAW_URI") or quote(req.path))
    return match[1] if match else ""


def target_for_log(req: falcon.Request) -> str:
    """The path with its query; values of parameters that look like secrets are masked."""
    query = _SECRET.sub(r"\1***", req.query_string)
    return f"{path_as_sent(req)}?{query}" if query else path_as_sent(req)


def own_host(bind: str) -> Callable[[str], bool]:
    """A function that tests whether a request's host name is this machine's or the bind's (rule 1.4, operators).

    A web page can point its own name here, and then read answers in its visitors' browsers (DNS rebinding). No name
    leads to a Unix socket.
    """
    names, is_checked = ("localhost", bind.rpartition(":")[0].lower()), not bind.startswith("unix:")
    return lambda host: not is_checked or host in names or _is_address(host) or host in _names_of_machine()


def _is_address(host: str) -> bool:
    try:
        return bool(ip_address(host))
    except ValueError:
        return False


@cache
def _names_of_machine() -> tuple[str, str]:
    """The host name, and the name with its domain, which may take a DNS query."""
    return socket.gethostname().lower(), socket.getfqdn().lower()


class RequestError(Exception):
    """Refuses a request. `kind` is a key of `CASES`; `headers` are sent with the answer."""

    def __init__(self, kind: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.headers = dict(headers or {})


@dataclass(frozen=True, slots=True)
class Case:
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


def shorten(value: str) -> str:
    """A caller's value, quoted and shortened for a message."""
    return repr(value if len(value) <= 80 else value[:77] + "...")


def add_error_handlers(app: falcon.App[falcon.Request, falcon.Response], paths: str = "/docs lists all paths") -> None:
    """Make the app answer every error in the envelope. `paths` is the hint for unknown paths."""
    app.add_error_handler(Exception, _unexpected)
    app.add_error_handler(falcon.HTTPError, partial(_from_falcon, paths))
    app.add_error_handler(RequestError, _request_error)
    app.add_error_handler(ParameterInvalid, _parameter_invalid)
    app.add_error_handler(EntityNotFound, partial(_message, "entity_not_found"))
    app.add_error_handler((StoreUnavailable, AccessDenied, SchemaError), partial(_unavailable, RateLimited()))
    app.add_error_handler((NoSnapshot, NotReady, Lost), partial(_message, "unavailable"))


def malformed_request(kind: str, request_id: str, *, any_origin: bool) -> bytes:
    """The complete response to a request that never reaches the application. It closes the connection."""
    status = CASES[kind].status
    body = failure(status, kind, CASES[kind].scope, _MESSAGES[kind])
    head = [f"HTTP/1.1 {status.value} {reason_phrase(status)}", f"Content-Type: {falcon.MEDIA_JSON}"]
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
    assignment = "" if value is None else f"={shorten(value)}"
    _answer(resp, "query_parameter_invalid", f"Query parameter {error.parameter}{assignment}: {error}.")


def _message(kind: str, req: falcon.Request, resp: falcon.Response, error: Exception, params: object) -> None:
    _answer(resp, kind, str(error))


def _cause(error: Exception) -> str:
    # ClickHouse's messages may have several lines.
    return f" ({' '.join(str(error.__cause__).split())})" if error.__cause__ else ""


def _kind(error: Exception) -> str:
    """The part of a message that errors with the same cause share: all before the details in parentheses."""
    return str(error.__cause__ or error).partition(" (")[0]


def _unavailable(
    limited: RateLimited, req: falcon.Request, resp: falcon.Response, error: Exception, params: object
) -> None:
    # No client waits for requests that a worker sends to itself while it starts.
    level = logging.DEBUG if OWN_REQUEST in req.env else logging.WARNING
    more = "" if level == logging.DEBUG else limited.passes(_kind(error))
    if more is not None:
        log.log(level, "%s %s: %s%s%s", req.method, target_for_log(req), error, _cause(error), more)
    # Other errors reveal something of the service's insides.
    _answer(resp, "unavailable", str(error) if isinstance(error, Busy) else _UNAVAILABLE)
    if isinstance(error, BeingCorrected):
        resp.set_header("Retry-After", _RETRY_AFTER_CORRECTION)


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
