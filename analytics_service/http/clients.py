"""Whose request it is, by address: that of the connection, or what trusted proxies say about it."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import falcon

from analytics_service.config.values import Networks

Address = IPv4Address | IPv6Address
# A client is normally given a whole network of this size, so all its addresses count as one client.
_ONE_CLIENT_IPV6 = 64


def client_of(req: falcon.Request, trusted: Networks) -> str:
    """An IPv4 address, or the IPv6 network of 64 bits that the client is in; empty if neither is known.

    It is the last address in X-Forwarded-For that is not in a `trusted` network of proxies. Everything before that, and
    the whole header if the connection is not from a trusted proxy, is what the client claims.
    """
    client = _address(req.env.get("REMOTE_ADDR", ""))
    claims = (req.get_header("X-Forwarded-For") or "").split(",")
    while client is not None and claims and any(client in network for network in trusted):
        before = _address(claims.pop())
        if before is None:
            break
        client = before
    return "" if client is None else _shared(client)


def _shared(address: Address) -> str:
    if isinstance(address, IPv4Address):
        return str(address)
    return str(ip_network((address, _ONE_CLIENT_IPV6), strict=False))


def _address(text: str) -> Address | None:
    """An address, with or without a port: `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]:80`."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text)
    except ValueError:
        return None
    # A socket that listens for both families shows IPv4 clients like this.
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
