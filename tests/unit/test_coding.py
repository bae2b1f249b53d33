"""Negotiation of content codings, and encoding of bodies."""

import gzip
import sys

import pytest

from analytics_service.http.coding import IDENTITY, Coding, negotiate

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

DECODERS = {"gzip": gzip.decompress, "zstd": zstd.decompress}
ZSTD, GZIP = Coding("zstd"), Coding("gzip")


@pytest.mark.parametrize(
    ("accept", "coding"),
    [
        (None, IDENTITY),
        ("", IDENTITY),
        ("GZIP", GZIP),
        ("zstd", ZSTD),
        ("gzip, deflate, br, zstd", ZSTD),
        ("zstd;q=0.9, gzip", GZIP),
        ("gzip;q=0.8,zstd ; q=0.8", ZSTD),
        # A named coding is preferred to one that is merely not ruled out, whatever its q.
        ("gzip;q=0.001", GZIP),
        ("gzip;q=0.5, identity", IDENTITY),
        ("gzip;q=0.5, identity;q=0.5", GZIP),
        ("zstd;q=0, gzip;q=0", IDENTITY),
        ("*", ZSTD),
        ("zstd;q=0, *", GZIP),
        ("identity, *;q=0.5", IDENTITY),
        ("identity;q=0, gzip", Coding("gzip", only=True)),
        ("*;q=0, gzip", Coding("gzip", only=True)),
        ("identity;q=0, *", Coding("zstd", only=True)),
        # Every coding is ruled out; an uncoded body is better than an error.
        ("identity;q=0", IDENTITY),
        # A malformed q counts as 0.
        ("gzip;q=x", IDENTITY),
        ("gzip;q=2", IDENTITY),
        ("gzip;level=1", IDENTITY),
        (",,gzip,", GZIP),
    ],
)
def test_the_coding_of_an_accept_encoding_header(accept: str | None, coding: Coding) -> None:
    assert negotiate(accept) == coding


@pytest.mark.parametrize("name", DECODERS)
def test_bodies_of_at_least_a_kilobyte_are_compressed_and_others_where_uncoded_ones_are_ruled_out(name: str) -> None:
    long, short = b"a" * 1024, b"a" * 1023
    encoded = Coding(name).encode(long)
    assert len(encoded) < len(long) / 5
    assert DECODERS[name](encoded) == long
    assert (Coding(name).encode(short), IDENTITY.encode(long)) == (short, long)
    assert DECODERS[name](Coding(name, only=True).encode(short)) == short


def test_each_coding_has_its_own_suffix() -> None:
    codings = [IDENTITY, GZIP, ZSTD, Coding("gzip", only=True), Coding("zstd", only=True)]
    assert IDENTITY.suffix == ""
    assert len({coding.suffix for coding in codings}) == len(codings)
