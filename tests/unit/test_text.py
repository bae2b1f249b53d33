"""Values as text for people, worked out by hand (rules 4.3 and 4.7)."""

from collections.abc import Callable
from decimal import Decimal

import pytest

from analytics_service.present import text


@pytest.mark.parametrize(
    ("written", "value", "expected"),
    [
        (text.price, "0", "$0.00"),
        (text.price, "1", "$1.00"),
        (text.price, "1234567.891", "$1,234,567.89"),
        # Rounded half to even at the second decimal.
        (text.price, "2.345", "$2.34"),
        (text.price, "2.355", "$2.36"),
        (text.price, "0.000000000000000001", "$0.000000000000000001000"),
        (text.price, "0.00001234567", "$0.00001235"),
        (text.price, "0.0012345", "$0.001234"),
        # Four digits would be 1.000, and from one dollar on there are two decimals.
        (text.price, "0.99996", "$1.00"),
        (text.price, "0.99994", "$0.9999"),
        (text.price, "0.099996", "$0.1000"),
        (text.price, "99999999999999999999.999999999999999999", "$100,000,000,000,000,000,000.00"),
        (text.plain, "1E+3", "1000"),
        (text.plain, "0E-18", "0"),
        (text.plain, "-0.0", "0"),
        (text.plain, "1E-18", "0.000000000000000001"),
        (text.percent, "0E-18", "0.00%"),
        (text.percent, "0.123450", "12.34%"),
        (text.percent, "0.123550", "12.36%"),
        (text.percent, "12.5", "1,250.00%"),
        (text.percent, "-0.05", "-5.00%"),
        (text.percent, "-0.000001", "0.00%"),
        (text.percent, "Infinity", "Infinity"),
        (text.usd, "1234.56", "$1,234.56"),
        (text.usd, "0E-18", "$0.00"),
        (text.usd, "0.01", "$0.01"),
        (text.usd, "0.009999999999999999", "<$0.01"),
        (text.usd, "-0.005", ">-$0.01"),
        (text.usd, "-0.01", "-$0.01"),
        (text.usd, "-1234.565", "-$1,234.56"),
        # More digits than the default decimal context keeps.
        (text.usd, "-123456789012345678901234567890.12", "-$123,456,789,012,345,678,901,234,567,890.12"),
        (text.duration, "31536000", "1 year"),
        (text.duration, "126230400", "4 years 1 day"),
        (text.duration, "93600", "1 day 2 hours"),
        (text.duration, "3661", "1 hour 1 minute 1 second"),
        (text.duration, "0", "0 seconds"),
        (text.duration, "90.25", "1 minute 30.25 seconds"),
    ],
)
def test_numbers(written: Callable[[Decimal], str], value: str, expected: str) -> None:
    assert written(Decimal(value)) == expected


@pytest.mark.parametrize(
    ("standard", "decimals", "expected"),
    [
        ("1234.5", 2, "1,234.50 USDT"),
        ("0", 2, "0.00 USDT"),
        # Rounded half to even at the last shown decimal.
        ("0.125", 2, "0.12 USDT"),
        ("0.135", 2, "0.14 USDT"),
        # Less than one unit of the last shown decimal, but not zero.
        ("0.000099999999999999", 4, "<0.0001 USDT"),
        ("0.0001", 4, "0.0001 USDT"),
        ("0.5", 0, "<1 USDT"),
        ("1E-18", 18, "0.000000000000000001 USDT"),
        ("1E-18", 8, "<0.00000001 USDT"),
        ("1234567.5", 0, "1,234,568 USDT"),
        # The greatest 256-bit amount with 6 decimals.
        (
            "115792089237316195423570985008687907853269984665640564039457584007913129.639935",
            2,
            "115,792,089,237,316,195,423,570,985,008,687,907,853,269,984,665,640,564,039,457,584,007,913,129.64 USDT",
        ),
    ],
)
def test_amounts(standard: str, decimals: int, expected: str) -> None:
    assert text.amount(Decimal(standard), decimals, "USDT") == expected
