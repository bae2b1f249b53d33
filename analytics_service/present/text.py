"""Values as text for people (rule 4.3, texts)."""

from collections.abc import Iterator
from datetime import datetime
from decimal import ROUND_HALF_EVEN, Context, Decimal
from functools import cache

from analytics_service.market.decimals import EXACT
from analytics_service.market.instants import DAY, HOUR, MINUTE

NONE = "N/A"
_CENT = Decimal("0.01")
# Fits any sum of amounts: an amount has up to 78 digits, an asset up to 255 display decimals.
_SHOWN = Context(prec=400, rounding=ROUND_HALF_EVEN)
_FOUR_DIGITS = Context(prec=4, rounding=ROUND_HALF_EVEN)
# Without months, whose length varies. A year has 365 days, as for interest rates.
_DURATIONS = (("year", 365 * DAY), ("day", DAY), ("hour", HOUR), ("minute", MINUTE))


def plain(value: Decimal) -> str:
    """A decimal without exponent and trailing zeros."""
    decimal = format(value, "f")
    decimal = decimal.rstrip("0").rstrip(".") if "." in decimal else decimal
    return "0" if decimal == "-0" else decimal


def amount(standard: Decimal, decimals: int, symbol: str) -> str:
    """An amount in standard units with the asset's display decimals, such as 1,234.50 USDT.

    A positive amount that these decimals would show as zero reads <0.01 USDT.
    """
    least = _quantum(decimals)
    shown = f"<{least:f}" if 0 < standard < least else _rounded(standard, decimals)
    return f"{shown} {symbol}"


def percent(fraction: Decimal) -> str:
    """A fraction as a percentage with two decimals, such as 12.34%; or Infinity."""
    if not fraction.is_finite():
        return str(fraction)
    return f"{_rounded(fraction.scaleb(2, context=EXACT), 2)}%"


def usd(dollars: Decimal) -> str:
    """A sum in dollars, such as $1,234.56 or -$1,234.56; <$0.01 or >-$0.01 for less than a cent."""
    if dollars and -_CENT < dollars < _CENT:
        return "<$0.01" if dollars > 0 else ">-$0.01"
    return f"{'-' if dollars < 0 else ''}${_rounded(dollars.copy_abs(), 2)}"


def price(usd: Decimal) -> str:
    """A price in dollars: two decimals from $1 on, four significant digits below."""
    if usd == 0:
        return "$0.00"
    # Rounded first, so that 0.99996 becomes 1.00 and 0.099996 becomes 0.1000.
    short = _FOUR_DIGITS.plus(usd)
    if abs(short) >= 1:
        return f"${_rounded(usd, 2)}"
    return f"${short.quantize(Decimal(1).scaleb(short.adjusted() - 3)):f}"


def duration(seconds: Decimal | int) -> str:
    """A length of time in words, without zero units: 14 days, 1 day 2 hours, 0.5 seconds."""
    return " ".join(_parts(Decimal(seconds)))


def time(at: datetime) -> str:
    """An instant for people, such as 2025-03-01 12:00:00 UTC."""
    return f"{at.replace(tzinfo=None).isoformat(' ', 'seconds')} UTC"


def _rounded(value: Decimal, decimals: int) -> str:
    short = _SHOWN.quantize(value, _quantum(decimals))
    return f"{short if short else short.copy_abs():,f}"


@cache
def _quantum(decimals: int) -> Decimal:
    return Decimal(1).scaleb(-decimals)


def _parts(seconds: Decimal) -> Iterator[str]:
    left = seconds
    for unit, length in _DURATIONS:
        count, left = divmod(left, length)
        if count:
            yield _counted(count, unit)
    if left or not seconds:
        yield _counted(left, "second")


def _counted(count: Decimal, unit: str) -> str:
    return f"{plain(count)} {unit}{'' if count == 1 else 's'}"
