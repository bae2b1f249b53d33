"""Values as people read them, worked out by hand from decisions section 4."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from analytics_service.present import text


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0", "$0.00"),
        ("1", "$1.00"),
        ("1234567.891", "$1,234,567.89"),
        # Half to even at the second decimal.
        ("2.345", "$2.34"),
        ("2.355", "$2.36"),
        ("0.5", "$0.5000"),
        ("0.123456", "$0.1235"),
        ("0.000000000000000001", "$0.000000000000000001000"),
        ("0.00001234567", "$0.00001235"),
        # Four digits would read 1.000: from one dollar on there are two decimals.
        ("0.99996", "$1.00"),
        ("0.99994", "$0.9999"),
        ("0.099996", "$0.1000"),
        ("99999999999999999999.999999999999999999", "$100,000,000,000,000,000,000.00"),
    ],
)
def test_prices(value: str, expected: str) -> None:
    assert text.price(Decimal(value)) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1E+3", "1000"),
        ("1.5725E+3", "1572.5"),
        ("0E-18", "0"),
        ("-0.0", "0"),
        ("100", "100"),
        ("1E-18", "0.000000000000000001"),
    ],
)
def test_plain_notation(value: str, expected: str) -> None:
    assert text.plain(Decimal(value)) == expected


def test_times() -> None:
    at = datetime(2025, 3, 1, 12, 0, 0, tzinfo=UTC)
    assert text.time(at) == "2025-03-01 12:00:00 UTC"
    assert text.rfc3339(at) == "2025-03-01T12:00:00Z"
