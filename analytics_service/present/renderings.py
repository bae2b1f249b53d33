"""Renderings of each kind of value: JSON, text and schema (rules 4.1 to 4.7)."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import orjson

from analytics_service.market import kinds
from analytics_service.market.assets import AssetGroup, asset_spec
from analytics_service.market.decimals import EXACT
from analytics_service.market.instants import format_instant
from analytics_service.market.kinds import kinds_of
from analytics_service.market.ptoken import MemberClass
from analytics_service.present import text
from analytics_service.present.shapes import Field, Node, Rendering, Scope, Shape

_NANOS = 10**9
_UNITS = r"^[0-9]+$"
_DECIMAL = r"^-?[0-9]+(\.[0-9]+)?$"


def _unscoped(write: Callable[[Any], object]) -> Callable[[Any, Scope], Any]:
    """Adapts a function that needs only the value."""
    return lambda value, _: write(value)


def _decimal(title: str, example: str) -> dict[str, object]:
    return {"title": title, "type": "string", "pattern": _DECIMAL, "examples": [example]}


def _standard(amount: int, scope: Scope) -> Decimal:
    return EXACT.scaleb(amount, -scope.current_asset.decimals_denom)


def _amount_text(amount: int, scope: Scope) -> str:
    asset = scope.current_asset
    return text.amount(_standard(amount, scope), asset.decimals_display, asset.symbol)


def word(*choices: str) -> Rendering:
    """A string from an enumeration, without a text."""
    # Generators make a class for each enumeration, even for a single word.
    allowed = {"const": choices[0]} if len(choices) == 1 else {"enum": [*choices]}
    return Rendering({"type": "string", **allowed}, _unscoped(str))


def variant(name: str) -> Field:
    """The field `kind`, which names one of several shapes."""
    return Field("kind", word(name), "Names the variant.", lambda record: name)


MEMBER_CLASS = Rendering({"type": "string", "enum": [*MemberClass]}, _unscoped(str), _unscoped(str.capitalize))
STRING = Rendering({"type": "string"}, _unscoped(str))
BOOLEAN = Rendering({"type": "boolean"}, _unscoped(bool))
# Generators assume 32 bits for an integer without a format.
_INT64 = {"type": "integer", "format": "int64"}
NUMBER = Rendering(_INT64, _unscoped(int))
# A number that may have more bits than orjson encodes.
LARGE_NUMBER = Rendering(
    {"type": "integer"}, _unscoped(lambda number: number if number < 2**63 else orjson.Fragment(str(number)))
)
# A number whose text is its digits.
INDEX = Rendering(_INT64, _unscoped(int), _unscoped(str))
TIME = Rendering(
    {"title": "time", "type": "string", "format": "date-time", "examples": ["2025-03-01T12:00:00Z"]},
    _unscoped(format_instant),
    _unscoped(text.time),
)
DURATION = Rendering({**_INT64, "description": "Seconds."}, _unscoped(int), _unscoped(text.duration))
NANOSECONDS = Rendering(
    _INT64,
    _unscoped(int),
    lambda value, _: text.duration(Decimal(value) / _NANOS),
)

# An amount in denom units of the scope's current asset.
AMOUNT = Rendering(
    {"title": "amount", "type": "string", "pattern": _UNITS, "examples": ["1234500000"]},
    _unscoped(str),
    _amount_text,
    value=True,
)
# An amount with a fraction of the object's `amount` in `extra.percent`.
PART = Rendering(AMOUNT.schema, AMOUNT.json, AMOUNT.text, value=True, part=True)
# An amount in standard units.
SCALED = Rendering(_decimal("decimal", "1234.5"), lambda value, scope: text.plain(_standard(value, scope)))

# A number without a unit and a text, such as weights and accumulators.
DECIMAL = Rendering(_decimal("decimal", "1.5"), _unscoped(text.plain))
RATIO = Rendering(_decimal("ratio", "0.1234"), _unscoped(text.plain), _unscoped(text.percent))
# A ratio that may be Infinity: health without debt.
HEALTH = Rendering(
    {
        "title": "ratio",
        "type": "string",
        "pattern": r"^(Infinity|[0-9]+(\.[0-9]+)?)$",
        "examples": ["1.5342"],
    },
    _unscoped(text.plain),
    _unscoped(text.percent),
)
USD = Rendering(_decimal("USD", "1234.56"), _unscoped(text.plain), _unscoped(text.usd))
PRICE = Rendering(_decimal("price", "1.0002"), _unscoped(text.plain), _unscoped(text.price))


def usd_on_request(of: Callable[[Any], Decimal | None]) -> Rendering:
    """A sum of USD values of a record, or None. It is calculated and shown with `with_value` only."""

    def shown_as(form: Callable[[Decimal], str], nothing: str | None) -> Callable[[Any, Scope], str | None]:
        def write(record: Any, scope: Scope) -> str | None:
            value = of(record) if scope.flags.value else None
            return nothing if value is None else form(value)

        return write

    return Rendering(USD.schema, shown_as(text.plain, None), shown_as(text.usd, text.NONE))


# For the schema only: `asset_spec` renders it.
ASSET_SPEC = Shape.of(
    "AssetSpec",
    "Identifies an asset.",
    Field("id", STRING, "Unique across asset domains: `<group>;<group_key>`."),
    Field("group", word(*AssetGroup), "Domain that the key is unique in."),
    Field("group_key", STRING, "Denom or contract identifier inside the group."),
)
# Renders an asset id as its AssetSpec.
SPEC = Rendering(ASSET_SPEC, _unscoped(asset_spec))

# Renderings of the kinds that records declare. `word` renders enumerations.
_DECLARED = {
    kinds.Address: STRING,
    kinds.Amount: AMOUNT,
    kinds.AssetId: SPEC,
    kinds.Count: NUMBER,
    kinds.Flag: BOOLEAN,
    kinds.Index: NUMBER,
    kinds.Number: DECIMAL,
    kinds.Places: NUMBER,
    kinds.PriceType: PRICE,
    kinds.Rate: RATIO,
    kinds.Ratio: RATIO,
    kinds.Text: STRING,
    kinds.Time: TIME,
    kinds.Usd: USD,
}


def declared(
    record: type, names: str = "", of: Node | None = None, *, bare: bool = False, **others: Node
) -> tuple[Field, ...]:
    """Fields that a record declares, with the record's help, rendered as their kind unless `of` or `others` differ.

    `names` lists fields, by default all that have a kind; `total=amount` names the record's `amount` `total`. With
    `bare`, fields have no text.
    """
    fields = []
    kinds_by_name = kinds_of(record)
    for name in names.split() or [name for name, kind in kinds_by_name.items() if isinstance(kind, kinds.ColumnType)]:
        shown_as, _, source = name.partition("=")
        kind = kinds_by_name[source or name]
        rendering = others.get(shown_as) or of or _DECLARED[type(kind)]
        plain = rendering.bare if bare and isinstance(rendering, Rendering) else rendering
        fields.append(Field(shown_as, plain, f"{kind.meaning}.", source or None, optional=kind.nullable))
    return tuple(fields)
