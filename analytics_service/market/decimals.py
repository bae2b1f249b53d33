"""USD values and fractions: exact decimal arithmetic, rounded once, half to even."""

from collections.abc import Iterable
from decimal import ROUND_HALF_EVEN, Context, Decimal

DECIMALS = 18
ZERO = Decimal(0)
ONE = Decimal(1)
# Prices, ratios and USD values are below this limit, so that with 18 decimals they have 38 digits.
LIMIT = Decimal(10) ** 20
_QUANTUM = ONE.scaleb(-DECIMALS)
# A 256-bit amount times a price has 116 digits. A quotient of two such values has enough digits to tell a tie from a
# near tie.
EXACT = Context(prec=300, rounding=ROUND_HALF_EVEN)
# Looked up once: sums over a portfolio call these thousands of times.
_add, _multiply, _divide, _scaleb = EXACT.add, EXACT.multiply, EXACT.divide, EXACT.scaleb
_quantize, _normalize = EXACT.quantize, EXACT.normalize


def quantize(value: Decimal) -> Decimal:
    """The value with exactly 18 decimals, rounded half to even."""
    return _quantize(value, _QUANTUM)


def quantize_below_limit(value: Decimal) -> Decimal | None:
    """The value with exactly 18 decimals; None unless its rounded magnitude is finite and below 10^20."""
    # A value just below the limit may round up to it; a value far above has too many digits to round. abs() would round
    # to the default context, copy_abs() does not.
    if not value.is_finite() or value.copy_abs() > LIMIT:
        return None
    result = quantize(value)
    return result if result.copy_abs() < LIMIT else None


def round_decimal(value: Decimal) -> Decimal:
    """The value with at most 18 decimals, rounded half to even, without trailing zeros."""
    return _normalize(quantize(value))


def subtract(value: Decimal, other: Decimal) -> str:
    """The exact difference of two values, as text."""
    return f"{round_decimal(EXACT.subtract(value, other)):f}"


def usd_value(amount: int, decimals: int, price: Decimal) -> Decimal:
    """USD value of an amount in denom units (rule 4.2, values in dollars). `price` is for 10^decimals denom units."""
    return round_decimal(exact_value(amount, decimals, price))


def exact_value(amount: int, decimals: int, price: Decimal) -> Decimal:
    """USD value of an amount in denom units, not rounded."""
    return _scaleb(_multiply(amount, price), -decimals)


def known_value(amount: int, decimals: int, price: Decimal | None) -> Decimal | None:
    """The `exact_value`; None if the price is unknown. An amount of 0 is worth 0 at any price."""
    if not amount:
        return ZERO
    return None if price is None else exact_value(amount, decimals, price)


def known_rounded(value: Decimal | None) -> Decimal | None:
    return None if value is None else round_decimal(value)


def as_fraction(part: int | Decimal, whole: int | Decimal) -> Decimal:
    """Part / whole with at most 18 decimals; 0 if the whole is 0."""
    return round_decimal(_divide(part, whole)) if whole else ZERO


def sum_decimals(values: Iterable[Decimal]) -> Decimal:
    """The exact sum; 0 if there are no values."""
    result = ZERO
    for value in values:
        result = _add(result, value)
    return result


def known_total(values: Iterable[Decimal | None]) -> Decimal | None:
    """The exact sum; None if a value is unknown."""
    listed = list(values)
    return None if None in listed else sum_decimals(value for value in listed if value is not None)
