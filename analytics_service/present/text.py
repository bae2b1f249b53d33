"""Values as people read them (decisions 4.3, 4.7)."""

from datetime import datetime
from decimal import ROUND_HALF_EVEN, Context, Decimal

NONE = "N/A"
_CENT = Decimal("0.01")
_EXACT = Context(prec=120, rounding=ROUND_HALF_EVEN)
_FOUR_DIGITS = Context(prec=4, rounding=ROUND_HALF_EVEN)


def plain(value: Decimal) -> str:
    """A decimal in plain notation: no exponent, no trailing zeros."""
    text = format(value, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def price(usd: Decimal) -> str:
    """A price in dollars: from 1 on with two decimals, below with four significant digits."""
    if usd == 0:
        return "$0.00"
    # Rounded first: 0.99996 reads 1.00, and 0.099996 reads 0.1000.
    short = _FOUR_DIGITS.plus(usd)
    if abs(short) >= 1:
        return f"${usd.quantize(_CENT, context=_EXACT):,f}"
    return f"${short.quantize(Decimal(1).scaleb(short.adjusted() - 3)):f}"


def time(at: datetime) -> str:
    """An instant, such as 2025-03-01 12:00:00 UTC."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def rfc3339(at: datetime) -> str:
    """An instant in RFC 3339, UTC, such as 2025-03-01T12:00:00Z."""
    return f"{at:%Y-%m-%dT%H:%M:%S}Z"
