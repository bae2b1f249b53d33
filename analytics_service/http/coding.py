"""Content codings: negotiation and encoding of bodies."""

import re
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from isal import isal_zlib

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_QUALITY = re.compile(r"\s*q\s*=\s*(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)\s*")
# A header that does not name identity still allows it, but prefers every coding that it names.
_UNNAMED_IDENTITY = 0.0001
# Below this size, compression saves less than the extra header and the caller's decompression cost.
_MIN_SIZE = 1024
_GZIP_FORMAT = 31
# Level 1 compresses a 300 KB history page to a third in 0.6 ms; higher levels take longer and save no more.
_ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "zstd": lambda body: zstd.compress(body, 1),
    "gzip": lambda body: isal_zlib.compress(body, 1, _GZIP_FORMAT),
}


class Coding(NamedTuple):
    """The coding of a body. `only`: the caller rules out uncoded bodies."""

    name: str
    only: bool = False

    @property
    def suffix(self) -> str:
        """Distinguishes the ETags of the same body in different codings."""
        return "" if self == IDENTITY else f"-{self.name}{'-only' if self.only else ''}"

    def encode(self, body: bytes) -> bytes:
        """The body in this coding, or the same object if encoding would not help."""
        worthwhile = self.only or len(body) >= _MIN_SIZE
        return _ENCODERS[self.name](body) if worthwhile and self.name in _ENCODERS else body


IDENTITY = Coding("identity")


@lru_cache(maxsize=256)
def negotiate(accept_encoding: str | None) -> Coding:
    """The best coding for an Accept-Encoding header: the highest q; at equal q zstd, then gzip, then identity.

    A caller that rules out every coding gets the body uncoded.
    """
    qualities = dict(_quality(part) for part in (accept_encoding or "").lower().split(","))
    wildcard = qualities.get("*")
    weights = {name: qualities.get(name, wildcard or 0) for name in _ENCODERS}
    weights[IDENTITY.name] = qualities.get(IDENTITY.name, _UNNAMED_IDENTITY if wildcard is None else wildcard)
    best = max(weights, key=weights.__getitem__)
    return Coding(best, only=not weights[IDENTITY.name]) if weights[best] and best in _ENCODERS else IDENTITY


def _quality(part: str) -> tuple[str, float]:
    """A coding and its q, which is 0 if it is malformed."""
    name, _, parameter = part.partition(";")
    match = _QUALITY.fullmatch(parameter)
    return name.strip(), float(match[1]) if match else float(not parameter)
