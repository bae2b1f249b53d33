"""What a request says of itself: its id, its target and its host."""

import random
import re
import socket
from collections.abc import Callable
from functools import cache
from ipaddress import ip_address
from urllib.parse import quote

import falcon

HEADER = "X-Request-ID"
# Set in the environment of requests that a worker sends to itself, which do not count. No header can have this name.
OWN_REQUEST = "analytics_service.own_request"
# The path within a request target: after the scheme and host, if given, and before the query.
_PATH = re.compile(r"(?:[^/?#]+://[^/?#]*)?([^?#]*)")
# No parameter of the service has such a name, but clients of other services send keys like this.
_SECRET = re.compile(r"((?:^|&)[^=&]*(?:key|token|secret|passw|auth)[^=&]*=)[^&]+", re.IGNORECASE)


def new_request_id() -> str:
    """An id for a request without one: 16 hex digits."""
    # It need not be secret. os.urandom lets other threads run meanwhile, for which a busy worker then waits: with it, a
    # cached answer took a tenth more processor time.
    return f"{random.getrandbits(64):016x}"


def path_as_sent(req: falcon.Request) -> str:
    """The path before percent-decoding, which turns %2F into a slash, and %0A into the end of a line of a log."""
    # Of the WSGI servers, gunicorn passes it on, and refuses what is no visible ASCII.
    match = _PATH.match(req.env.get("RAW_URI") or quote(req.path))
    return match[1] if match else ""


def target_for_log(req: falcon.Request) -> str:
    """The path with its query, without the values of parameters that look like secrets."""
    query = _SECRET.sub(r"\1***", req.query_string)
    return f"{path_as_sent(req)}?{query}" if query else path_as_sent(req)


def own_host(bind: str) -> Callable[[str], bool]:
    """Whether a name in a request is this machine's, or the bind's (rule 1.4).

    A web page can make its own name lead here, and then read answers in its visitors' browsers (DNS rebinding). No
    name leads to a Unix socket.
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
    """Its host name, and that with its domain, which may be asked of the network."""
    return socket.gethostname().lower(), socket.getfqdn().lower()
