"""What a request says of itself: its id, its target, and its client."""

import random
import re
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import quote

import falcon

from analytics_service.config.values import Networks
from analytics_service.logs import REQUEST_ID

HEADER = "X-Request-ID"
Address = IPv4Address | IPv6Address
_PLAIN = re.compile(r"[A-Za-z0-9._-]{1,64}")
# The path within a request target: after the scheme and host, if given, and before the query.
_PATH = re.compile(r"(?:[^/?#]+://[^/?#]*)?([^?#]*)")
# No parameter of the service has such a name, but clients of other services send keys like this.
_SECRET = re.compile(r"((?:^|&)[^=&]*(?:key|token|secret|passw|auth)[^=&]*=)[^&]+", re.IGNORECASE)
# Providers assign each client a network of this size, so all its addresses count as one client.
_CLIENT_PREFIX_IPV6 = 64


def new_request_id() -> str:
    """An id for a request without one: 16 hex digits."""
    # It need not be secret. os.urandom lets other threads run meanwhile, for which a busy worker then waits: with it, a
    # cached answer took a tenth more processor time.
    return f"{random.getrandbits(64):016x}"


class RequestIds:
    """Keeps the id that a request brings, if it is plain; else makes an id (rule 7.3).

    It comes before other middleware, so that their log lines have the id.
    """

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        request_id = req.get_header(HEADER)
        if request_id is None or not _PLAIN.fullmatch(request_id):
            request_id = new_request_id()
        REQUEST_ID.set(request_id)
        resp.set_header(HEADER, request_id)

    def process_response(
        self, req: falcon.Request, resp: falcon.Response, resource: object, req_succeeded: bool
    ) -> None:
        """Clear the id: the thread goes on to another request."""
        REQUEST_ID.set("")


def path_as_sent(req: falcon.Request) -> str:
    """The path before percent-decoding, which turns %2F into a slash, and %0A into the end of a line of a log."""
    # Of the WSGI servers, gunicorn passes it on, and refuses what is no visible ASCII.
    match = _PATH.match(req.env.get("RAW_URI") or quote(req.path))
    return match[1] if match else ""


def target_for_log(req: falcon.Request) -> str:
    """The path with its query, without the values of parameters that look like secrets."""
    query = _SECRET.sub(r"\1***", req.query_string)
    return f"{path_as_sent(req)}?{query}" if query else path_as_sent(req)


def client_of(req: falcon.Request, trusted: Networks) -> str:
    """The client's IPv4 address, or its IPv6 network of 64 bits; empty if neither is known."""
    address = address_of(req, trusted)
    if isinstance(address, IPv6Address):
        return str(ip_network((address, _CLIENT_PREFIX_IPV6), strict=False))
    return str(address or "")


def address_of(req: falcon.Request, trusted: Networks) -> Address | None:
    """The client's address, if it is known.

    It is the last address in X-Forwarded-For that is not in a `trusted` network of proxies. Everything before that, and
    the whole header if the connection is not from a trusted proxy, is what the client claims. Whoever connects to a
    Unix socket is a trusted proxy.
    """
    remote = req.env.get("REMOTE_ADDR")
    claims = (req.get_header("X-Forwarded-For") or "").split(",")
    # gunicorn's clients at a Unix socket have an empty address.
    client = _address(claims.pop() if remote == "" else remote or "")
    while client is not None and claims and any(client in network for network in trusted):
        previous = _address(claims.pop())
        if previous is None:
            break
        client = previous
    return client


def _address(value: str) -> Address | None:
    """An address, with or without a port: `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]:80`."""
    value = value.strip()
    if value.startswith("["):
        value = value[1:].partition("]")[0]
    elif value.count(":") == 1:
        value = value.partition(":")[0]
    try:
        address = ip_address(value)
    except ValueError:
        return None
    # A dual-stack socket reports an IPv4 client as a mapped IPv6 address.
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
