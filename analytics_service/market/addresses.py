"""Addresses of users and contracts: bech32, or 0x and 40 hex digits."""

import re

from bech32 import bech32_decode, bech32_encode, convertbits

# BIP 173; the library does not hold to it.
_LONGEST = 90


def parse_address(text: str) -> str:
    """The address in lower case, as it is stored and compared (decisions 6). ValueError says what is wrong with it.

    In bech32 the checksum must hold and case must not be mixed; any prefix is taken. Hex digits may be of any case.
    """
    if re.fullmatch(r"0x[0-9a-fA-F]{40}", text):
        return text.lower()
    prefix, _ = bech32_decode(text) if len(text) <= _LONGEST else (None, None)
    if prefix is None:
        raise ValueError("must be bech32 with a valid checksum, or 0x and 40 hex digits")
    return text.lower()


def bech32_address(prefix: str, payload: bytes) -> str:
    """The payload (20 bytes for a user, 32 for a contract) as a bech32 address. ValueError when it gets too long."""
    groups = convertbits(payload, 8, 5) or []
    address = bech32_encode(prefix, groups)
    if len(address) > _LONGEST:
        raise ValueError(f"{len(payload)} bytes do not fit into an address")
    return address
