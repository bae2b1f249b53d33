"""What fields hold: every kind of value that responses have, its JSON, text and schema (decisions section 4)."""

from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any

from analytics_service.market.assets import asset_spec
from analytics_service.market.values import EXACT
from analytics_service.present import text
from analytics_service.present.shapes import Field, Kind, Scope, Shape

_NANOS = 10**9
_UNITS = r"^[0-9]+$"
_DECIMAL = r"^-?[0-9]+(\.[0-9]+)?$"


def _alone(write: Callable[[Any], object]) -> Callable[[Any, Scope], Any]:
    """A way of writing that needs nothing but the value."""
    return lambda value, _: write(value)


def _decimal(title: str, example: str) -> dict[str, object]:
    return {"title": title, "type": "string", "pattern": _DECIMAL, "examples": [example]}


def _standard(amount: int, scope: Scope) -> Decimal:
    return EXACT.scaleb(amount, -scope.own.decimals_denom)


def _amount_text(amount: int, scope: Scope) -> str:
    return text.amount(_standard(amount, scope), scope.own.decimals_display, scope.own.symbol)


def word(*choices: str) -> Kind:
    """One of some words, with no text."""
    return Kind({"type": "string", "enum": [*choices]}, _alone(str))


MEMBER_CLASS = Kind({"type": "string", "enum": ["team", "advisor", "investor"]}, _alone(str), _alone(str.capitalize))
STRING = Kind({"type": "string"}, _alone(str))
BOOLEAN = Kind({"type": "boolean"}, lambda value, _: bool(value))
NUMBER = Kind({"type": "integer"}, lambda value, _: int(value))
# An ordered position: a number whose text is its digits.
INDEX = Kind({"type": "integer"}, lambda value, _: int(value), _alone(str))
TIME = Kind(
    {"title": "time", "type": "string", "format": "date-time", "examples": ["2025-03-01T12:00:00Z"]},
    _alone(text.rfc3339),
    _alone(text.time),
)
DURATION = Kind({"type": "integer", "description": "Seconds."}, lambda value, _: int(value), _alone(text.duration))
NANOSECONDS = Kind(
    {"type": "integer", "description": "Nanoseconds."},
    lambda value, _: int(value),
    lambda value, _: text.duration(Decimal(value) / _NANOS),
)

# Whole denom units of the asset in scope.
AMOUNT = Kind(
    {"title": "amount", "type": "string", "pattern": _UNITS, "examples": ["1234500000"]},
    _alone(str),
    _amount_text,
    value=True,
)
# An amount that is also a fraction of the object's `amount`.
PART = Kind(AMOUNT.schema, AMOUNT.json, AMOUNT.text, value=True, part=True)
# An amount in standard units.
SCALED = Kind(_decimal("decimal", "1234.5"), lambda value, scope: text.plain(_standard(value, scope)))

# A number without a unit and without a text: weights and accumulators.
DECIMAL = Kind(_decimal("decimal", "1.5"), _alone(text.plain))
RATIO = Kind(_decimal("ratio", "0.1234"), _alone(text.plain), _alone(text.percent))
# A ratio that has no bound: without debt, health is Infinity.
HEALTH = Kind(
    {
        "title": "ratio",
        "type": "string",
        "pattern": r"^(Infinity|[0-9]+(\.[0-9]+)?)$",
        "examples": ["1.5342"],
    },
    _alone(text.plain),
    _alone(text.percent),
)
USD = Kind(_decimal("USD", "1234.56"), _alone(text.plain), _alone(text.usd))
# A sum of values, which like all values is calculated for those who ask for them.
USD_IF_VALUED = Kind(
    USD.schema,
    lambda value, scope: text.plain(value) if scope.flags.value else None,
    lambda value, scope: text.usd(value) if scope.flags.value else text.NONE,
)
PRICE = Kind(_decimal("price", "1.0002"), _alone(text.plain), _alone(text.price))

ASSET_SPEC = Shape(
    "AssetSpec",
    "What identifies an asset.",
    (
        Field("id", STRING, "Unique across asset domains: `<group>;<group_key>`."),
        Field("group", word("native", "token"), "Domain that the key is unique in."),
        Field("group_key", STRING, "Denom or contract identifier inside the group."),
    ),
)


# The AssetSpec of a field that holds an asset id.
SPEC = Kind(ASSET_SPEC, _alone(lru_cache(maxsize=10_000)(asset_spec)))
