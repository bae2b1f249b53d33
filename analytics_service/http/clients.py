"""The client of a request, by address: the connection's, or the one that proxies report."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import falcon

from analytics_service.config.values import Networks

Address = IPv4Address | IPv6Address
# Providers assign each client a network of this size, so all its addresses count as one client.
_CLIENT_PREFIX_IPV6 = 64


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
