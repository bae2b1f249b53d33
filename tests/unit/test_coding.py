"""Negotiation of content codings, and encoding of bodies."""

import gzip

import pytest

from analytics_service.http.answer import Coding, negotiate

IDENTITY, GZIP = Coding


@pytest.mark.parametrize(
    ("accept", "coding"),
    [
        (None, IDENTITY),
        ("", IDENTITY),
        ("GZIP", GZIP),
        ("deflate, br, zstd", IDENTITY),
        ("gzip, deflate, br, zstd", GZIP),
        # A named coding is preferred to one that is merely not ruled out, whatever its q.
        ("gzip;q=0.001", GZIP),
        ("gzip;q=0.5, identity", IDENTITY),
        ("gzip;q=0.5 , identity;q=0.5", GZIP),
        ("gzip;q=0", IDENTITY),
        ("*", GZIP),
        ("gzip;q=0, *", IDENTITY),
        ("identity, *;q=0.5", IDENTITY),
        ("identity;q=0, *", GZIP),
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
    assert negotiate(accept) is coding


def test_bodies_of_at_least_a_kilobyte_are_compressed() -> None:
    long, short = b"a" * 1024, b"a" * 1023
    encoded = GZIP.encode(long)
    assert len(encoded) < len(long) / 5
    assert gzip.decompress(encoded) == long
    assert (GZIP.encode(short), IDENTITY.encode(long)) == (short, long)
