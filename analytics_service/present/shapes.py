"""Declarations of response objects. JSON, variants and schema are derived from them.

The function that renders an object is built once for each combination of variants.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from decimal import Decimal
from functools import cache, cached_property
from operator import attrgetter
from typing import Any, Literal

from analytics_service.market.assets import Asset, unknown_asset
from analytics_service.market.decimals import as_fraction, usd_value
from analytics_service.market.prices import Prices
from analytics_service.present import text

Generation = Literal["newer", "older"]


@dataclass(frozen=True, slots=True)
class Flags:
    """The requested variants (rule 1.2, variants) and generation of names (rule 5.1, older names)."""

    text: bool = False
    value: bool = False
    percent: bool = False
    shape: Generation = "newer"


@dataclass(frozen=True)
class Scope:
    """The context of rendering: requested variants, assets and USD prices by asset id, and the current asset.

    Amounts are in units of the current asset. A shape that names an asset makes it current for everything inside.
    Scopes of assets are cached within a scope.
    """

    flags: Flags = Flags()
    assets: Mapping[str, Asset] = dataclass_field(default_factory=dict)
    prices: Prices = dataclass_field(default_factory=dict)
    asset: Asset | None = None
    price: Decimal | None = None
    _scopes: "dict[str, Scope]" = dataclass_field(default_factory=dict, init=False, repr=False, compare=False)

    def of(self, asset_id: str) -> "Scope":
        """This scope with another current asset, which may lack a price, or a definition (rule 4.1, amounts)."""
        if (scope := self._scopes.get(asset_id)) is not None:
            return scope
        asset, price = self.assets.get(asset_id) or unknown_asset(asset_id), self.prices.get(asset_id)
        return self._scopes.setdefault(asset_id, Scope(self.flags, self.assets, self.prices, asset, price))

    @cached_property
    def receipt(self) -> "Scope":
        """This scope with the current asset's receipt token. If the token is unknown, amounts have no price."""
        receipt = self.current_asset.receipt_asset
        return self.of(receipt) if receipt and receipt in self.assets else replace(self, price=None)

    @cached_property
    def current_asset(self) -> Asset:
        """The current asset. Raises LookupError if no enclosing shape names one."""
        if self.asset is None:
            raise LookupError("no enclosing shape names the asset of this amount")
        return self.asset

    @cached_property
    def price_and_text(self) -> tuple[str | None, str]:
        """The current asset's price, as a decimal and as text."""
        return (None, text.NONE) if self.price is None else (text.plain(self.price), text.price(self.price))


Get = Callable[[Any], Any]
# Renders a value or record, never None, in a scope.
Write = Callable[[Any, Scope], Any]


def _itself(record: Any) -> Any:
    return record


class Renderable(ABC):
    """A declaration that renders records."""

    @abstractmethod
    def writer(self, flags: Flags) -> Write:
        """The function that renders records with these variants."""

    def render(self, record: Any, scope: Scope) -> Any:
        """The record as values for JSON, which the caller must not change; None stays None."""
        return None if record is None else self._writer(scope.flags)(record, scope)

    @cached_property
    def _writer(self) -> Callable[[Flags], Write]:
        return cache(self.writer)


@dataclass(frozen=True)
class Rendering(Renderable):
    """The rendering of a field's value: JSON, schema, and optionally text.

    `value` adds a USD value to `extra.value`, `part` a fraction of the object's `amount` to `extra.percent`.
    `text_schema` is the schema of the text, if it is not a string.
    """

    schema: "Mapping[str, object] | Node"
    json: Write
    text: Write | None = None
    value: bool = False
    part: bool = False
    text_schema: Mapping[str, object] = dataclass_field(default_factory=lambda: {"type": "string"})

    @property
    def bare(self) -> "Rendering":
        return replace(self, text=None, value=False, part=False)

    @property
    def text_only(self) -> "Rendering":
        """This rendering with its text as the only variant."""
        return replace(self, value=False, part=False)

    def writer(self, flags: Flags) -> Write:
        return self.json


@dataclass(frozen=True)
class Field:
    """A field of a response object.

    `source` gives the value: an attribute of the record (dotted for nested records; None means the field's own name),
    an empty string for the record itself, or a function of the record. Amounts in a `receipt` field are in units of
    the receipt token. An `optional` field may be null. A `sometimes` field is missing if it has no value.
    """

    name: str
    of: "Node"
    help: str
    source: str | Get | None = None
    optional: bool = False
    receipt: bool = False
    sometimes: bool = False

    @cached_property
    def get(self) -> Get:
        if callable(self.source):
            return self.source
        return _itself if self.source == "" else attrgetter(self.source or self.name)

    def scoped(self, write: Write) -> Write:
        return (lambda value, scope: write(value, scope.receipt)) if self.receipt else write

    def within(self, source: str) -> "Field":
        """This field for a record that holds the field's record in the attribute `source`."""
        if callable(self.source):
            outer, inner = attrgetter(source), self.source
            return replace(self, source=lambda record: inner(outer(record)))
        return replace(self, source=source if self.source == "" else f"{source}.{self.source or self.name}")


@dataclass(frozen=True)
class Shape(Renderable):
    """A response object. It has an `extra` if a field has variants, or if `extra` is set.

    `asset` names the record's attribute with the id of the asset that amounts are in; None means the asset of the
    enclosing object.
    """

    name: str
    help: str
    fields: tuple[Field, ...]
    asset: str | None = None
    extra: bool = False

    @classmethod
    def of(cls, name: str, help: str, *fields: Field, asset: str | None = None, extra: bool = False) -> "Shape":
        return cls(name, help, fields, asset, extra)

    @cached_property
    def variants(self) -> Mapping[str, tuple[Field, ...]]:
        """The fields in each variant; empty without an `extra`. Every field with variants has a text."""
        rendered = [(field, field.of) for field in self.fields if isinstance(field.of, Rendering)]
        fields = {
            "text": tuple(field for field, of in rendered if of.text),
            "percent": tuple(field for field, of in rendered if of.part),
            "value": tuple(field for field, of in rendered if of.value),
        }
        return {name: fields[name] for name in fields if fields[name] or (name == "text" and self.extra)}

    @property
    def _rare(self) -> frozenset[str]:
        return frozenset(field.name for field in self.fields if field.sometimes)

    def derive(self, name: str, **changes: "str | Node") -> "Shape":
        """This object under another name. Each change gives a field another name (a string) or shape."""
        return replace(self, name=name, fields=tuple(_changed(field, changes.get(field.name)) for field in self.fields))

    def writer(self, flags: Flags) -> Write:
        fields = [(field.name, field.get, field.scoped(field.of.writer(flags))) for field in self.fields]
        if self.variants:
            makers = {"text": self._texts, "percent": self._percent, "value": self._value}
            extra = [(name, _itself, makers[name](flags) if getattr(flags, name) else _null) for name in self.variants]
            fields.append(("extra", _itself, _object(extra)))
        body = _object(fields, rare=self._rare)
        if self.asset is None:
            return body
        asset_of = attrgetter(self.asset)
        return lambda record, scope: body(record, scope.of(asset_of(record)))

    def _texts(self, flags: Flags) -> Write:
        kinds = ((field, field.of.text) for field in self.variants["text"] if isinstance(field.of, Rendering))
        texts = [(field.name, field.get, field.scoped(write)) for field, write in kinds if write]
        return _object(texts, text.NONE, self._rare)

    def _percent(self, flags: Flags) -> Write:
        parts = [(field.name, field.get) for field in self.variants["percent"]]
        (amount_of,) = (field.get for field in self.fields if field.name == "amount")

        def write(record: Any, scope: Scope) -> dict[str, object]:
            amount = amount_of(record)
            fractions = {name: as_fraction(get(record), amount) for name, get in parts}
            texts = {name: text.percent(part) for name, part in fractions.items()} if flags.text else None
            return {**{name: text.plain(part) for name, part in fractions.items()}, "extra": {"text": texts}}

        return write

    def _value(self, flags: Flags) -> Write:
        amounts = [(field.name, field.get) for field in self.variants["value"]]

        def write(record: Any, scope: Scope) -> dict[str, object]:
            body: dict[str, object] = {}
            texts: dict[str, str] = {}
            for name, get in amounts:
                body[name], texts[name] = _usd(get(record), scope)
            body["price"], texts["price"] = scope.price_and_text
            body["extra"] = {"text": texts if flags.text else None}
            return body

        return write


@dataclass(frozen=True)
class Many(Renderable):
    """A list of values or objects of one declaration. `items` gets them from the record, by default the list itself."""

    of: "Node"
    items: Get = _itself

    def writer(self, flags: Flags) -> Write:
        write, items = self.of.writer(flags), self.items
        return lambda record, scope: [None if item is None else write(item, scope) for item in items(record)]


@dataclass(frozen=True)
class OneOf(Renderable):
    """A response object with one of several shapes. `key` selects the shape for a record in a scope."""

    name: str
    help: str
    key: Callable[[Any, Scope], str]
    choices: Mapping[str, Shape]

    def writer(self, flags: Flags) -> Write:
        writers = {key: shape.writer(flags) for key, shape in self.choices.items()}
        return lambda record, scope: writers[self.key(record, scope)](record, scope)


@dataclass(frozen=True)
class ByShape(Renderable):
    """An answer with two generations of names (rule 5.1). The request selects one."""

    name: str
    help: str
    choices: "Mapping[Generation, Shape | Many]"

    def writer(self, flags: Flags) -> Write:
        return self.choices[flags.shape].writer(flags)


Alternatives = OneOf | ByShape
Node = Rendering | Shape | Many | Alternatives


def nested(source: str, fields: Iterable[Field]) -> tuple[Field, ...]:
    """Fields of an object, for a record that holds the object's record in the attribute `source`."""
    return tuple(field.within(source) for field in fields)


def _object(fields: Iterable[tuple[str, Get, Write]], absent: str | None = None, rare: Collection[str] = ()) -> Write:
    """A function that renders an object. A missing value becomes `absent`; in `rare` fields it is omitted."""
    plan = tuple(fields)

    def write(record: Any, scope: Scope) -> dict[str, object]:
        body = {}
        for name, get, put in plan:
            value = get(record)
            if value is not None:
                body[name] = put(value, scope)
            elif name not in rare:
                body[name] = absent
        return body

    return write


def _null(record: Any, scope: Scope) -> None:
    """Render a variant that was not requested."""


def _changed(field: Field, change: "str | Node | None") -> Field:
    if change is None:
        return field
    return replace(field, name=change, source=field.get) if isinstance(change, str) else replace(field, of=change)


def _usd(amount: int | None, scope: Scope) -> tuple[str | None, str]:
    """The USD value of an amount, as a decimal and as text."""
    if amount is None or scope.price is None:
        return None, text.NONE
    dollars = usd_value(amount, scope.current_asset.decimals_denom, scope.price)
    return text.plain(dollars), text.usd(dollars)
