"""Addresses of users and contracts: bech32, or 0x and 40 hex digits."""

import re

from bech32 import bech32_decode, bech32_encode, convertbits

# BIP 173's limit, which the library does not check.
_MAX_LENGTH = 90


def parse_address(address: str) -> str:
    """The address in lower case, as it is stored and compared (rule 6.1). ValueError, with the reason, if malformed.

    A bech32 address needs a valid checksum and must not mix upper and lower case; any prefix is accepted. Hex digits
    may be in either case.
    """
    if re.fullmatch(r"0x[0-9a-fA-F]{40}", address):
        return address.lower()
    prefix, _ = bech32_decode(address) if len(address) <= _MAX_LENGTH else (None, None)
    if prefix is None:
        raise ValueError("must be bech32 with a valid checksum, or 0x and 40 hex digits")
    return address.lower()


def bech32_address(prefix: str, payload: bytes) -> str:
    """The payload (20 bytes for a user, 32 for a contract) as a bech32 address. ValueError if it is too long."""
    groups = convertbits(payload, 8, 5) or []
    address = bech32_encode(prefix, groups)
    if len(address) > _MAX_LENGTH:
        raise ValueError(f"{len(payload)} bytes do not fit into an address")
    return address
