"""Content codings: which one a caller wants, and bodies in it."""

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
# Acceptable as it is not ruled out, but less so than anything that is named.
_UNNAMED = 0.0001
# Below this many bytes compressing saves less than the header that tells of it and the caller's work cost.
_SMALL = 1024
_GZIP_FORMAT = 31
# A new history page of 300 KB takes 0.6 ms either way, to a third; higher levels take longer and save no more.
_ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "zstd": lambda body: zstd.compress(body, 1),
    "gzip": lambda body: isal_zlib.compress(body, 1, _GZIP_FORMAT),
}


class Coding(NamedTuple):
    """A coding that a caller takes; `only` when bodies as they are have been ruled out."""

    name: str
    only: bool = False

    @property
    def suffix(self) -> str:
        """What tells the tags of a body's forms apart."""
        return "" if self == IDENTITY else f"-{self.name}{'-only' if self.only else ''}"

    def encode(self, body: bytes) -> bytes:
        """The body in this coding, or the very same one where that is of no use."""
        worth = self.only or len(body) >= _SMALL
        return _ENCODERS[self.name](body) if worth and self.name in _ENCODERS else body


IDENTITY = Coding("identity")


@lru_cache(maxsize=256)
def chosen(accept: str | None) -> Coding:
    """The best coding for an Accept-Encoding header: the highest q, and of equals zstd before gzip before none.

    A caller that rules out all there is gets bodies as they are.
    """
    given = dict(_weighed(part) for part in (accept or "").lower().split(","))
    rest = given.get("*")
    weights = {name: given.get(name, rest or 0) for name in _ENCODERS}
    weights[IDENTITY.name] = given.get(IDENTITY.name, _UNNAMED if rest is None else rest)
    best = max(weights, key=weights.__getitem__)
    return Coding(best, only=not weights[IDENTITY.name]) if weights[best] and best in _ENCODERS else IDENTITY


def _weighed(part: str) -> tuple[str, float]:
    """A coding and its q; one whose q cannot be read is not wanted."""
    name, _, parameter = part.partition(";")
    quality = _QUALITY.fullmatch(parameter)
    return name.strip(), float(quality[1]) if quality else float(not parameter)
