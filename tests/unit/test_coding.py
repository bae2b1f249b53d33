"""Which Accept-Encoding headers allow gzip (RFC 9110, 12.5.3)."""

import pytest

from analytics_service.http.answer import accepts_gzip


@pytest.mark.parametrize(
    ("accept", "allowed"),
    [
        (None, False),
        ("", False),
        ("deflate, br, zstd", False),
        ("identity;q=0", False),
        ("gzip;q=0", False),
        ("gzip; q=0.000, *", False),
        ("*;Q=0", False),
        ("GZIP", True),
        ("deflate, gzip;q=0.001", True),
        ("identity;q=0.5, *", True),
        ("*;q=0, gzip ; q=1.0", True),
        (",,gzip,", True),
    ],
)
def test_gzip_is_allowed_by_its_name_or_a_star_without_a_q_of_0(accept: str | None, allowed: bool) -> None:
    assert accepts_gzip(accept) is allowed
