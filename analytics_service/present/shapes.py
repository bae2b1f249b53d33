"""Response objects, each declared once: from fields and their kinds come the JSON, its variants and the schema.

How an object is written is put together once for each combination of variants; then it only runs.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cache, cached_property
from operator import attrgetter
from typing import Any

from analytics_service.market.assets import Asset
from analytics_service.market.values import fraction, usd_value
from analytics_service.present import text


@dataclass(frozen=True, slots=True)
class Flags:
    """Which variants a request asked for (interface section 1)."""

    text: bool = False
    value: bool = False
    percent: bool = False


@dataclass(frozen=True)
class Scope:
    """What an object is rendered in: the variants asked for, assets and USD prices by asset id, and one asset.

    That one is the asset which amounts are of; an object whose shape names an asset sets it for all within. Scopes of
    assets are kept, so one scope may well serve many answers.
    """

    flags: Flags = Flags()
    assets: Mapping[str, Asset] = field(default_factory=dict)
    prices: Mapping[str, Decimal] = field(default_factory=dict)
    asset: Asset | None = None
    price: Decimal | None = None
    _others: "dict[str, Scope]" = field(default_factory=dict, init=False, repr=False, compare=False)

    def of(self, asset_id: str) -> "Scope":
        """The same where amounts are of another asset, which may have no price. KeyError when it is unknown."""
        if (known := self._others.get(asset_id)) is not None:
            return known
        asset, price = self.assets[asset_id], self.prices.get(asset_id)
        return self._others.setdefault(asset_id, Scope(self.flags, self.assets, self.prices, asset, price))

    @cached_property
    def receipt(self) -> "Scope":
        """The same where amounts are of the asset's receipt token; where that is unknown, they have no price."""
        receipt = self.own.receipt_asset
        return self.of(receipt) if receipt and receipt in self.assets else replace(self, price=None)

    @cached_property
    def own(self) -> Asset:
        """The asset that amounts are of. LookupError where no shape around has named one."""
        if self.asset is None:
            raise LookupError("no shape around this amount names the asset it is of")
        return self.asset

    @cached_property
    def shown_price(self) -> tuple[str | None, str]:
        """The price, as a decimal and as text."""
        return (None, text.NONE) if self.price is None else (text.plain(self.price), text.price(self.price))


Get = Callable[[Any], Any]
# Writes what is there, a value or a record, in a scope.
Write = Callable[[Any, Scope], Any]


class Written(ABC):
    """What a declaration has in common with others: it writes records."""

    @abstractmethod
    def writer(self, flags: Flags) -> Write:
        """How records that are there are written when these variants are asked for."""

    def render(self, record: Any, scope: Scope) -> Any:
        """The record as JSON-ready values, which are not to be changed; null for one that is not there."""
        return None if record is None else self._writer(scope.flags)(record, scope)

    @cached_property
    def _writer(self) -> Callable[[Flags], Write]:
        return cache(self.writer)


@dataclass(frozen=True)
class Kind(Written):
    """What a field holds: how it is written in JSON, its schema and, where it has one, how it reads as text.

    Kinds with `value` have their USD in `extra.value`; those that are a `part` have, in `extra.percent`, the fraction
    they make of the object's `amount`.
    """

    schema: "Mapping[str, object] | Node"
    json: Write
    text: Write | None = None
    value: bool = False
    part: bool = False

    @property
    def bare(self) -> "Kind":
        """The same without variants."""
        return replace(self, text=None, value=False, part=False)

    @property
    def unvalued(self) -> "Kind":
        """The same with a text only."""
        return replace(self, value=False, part=False)

    def writer(self, flags: Flags) -> Write:
        """Kinds are always written alike."""
        return self.json


@dataclass(frozen=True)
class Field:
    """A field of a response object.

    `source` is where in the record its value comes from: an attribute (the field's own name when None, dots lead
    further in), the record itself when empty, or a function of the record. Amounts of a `receipt` field are of the
    receipt token. An `optional` field may be null.
    """

    name: str
    of: "Node"
    help: str
    source: str | Get | None = None
    optional: bool = False
    receipt: bool = False

    @cached_property
    def get(self) -> Get:
        """The field's value in a record."""
        if callable(self.source):
            return self.source
        return _itself if self.source == "" else attrgetter(self.source or self.name)

    def scoped(self, write: Write) -> Write:
        """The same way of writing, in the scope of this field."""
        return (lambda value, scope: write(value, scope.receipt)) if self.receipt else write

    def within(self, source: str) -> "Field":
        """The same for a record that has this field's own record in an attribute."""
        if callable(self.source):
            outer, inner = attrgetter(source), self.source
            return replace(self, source=lambda record: inner(outer(record)))
        return replace(self, source=source if self.source == "" else f"{source}.{self.source or self.name}")


@dataclass(frozen=True)
class Shape(Written):
    """A response object. It has an `extra` where a field's kind has variants, or where `extra` says so.

    `asset` is the record's attribute with the id of the asset that amounts in it are of; those of the object around
    it when None.
    """

    name: str
    help: str
    fields: tuple[Field, ...]
    asset: str | None = None
    extra: bool = False

    @cached_property
    def texts(self) -> tuple[Field, ...]:
        """Fields in `extra.text`."""
        return tuple(one for one in self.fields if isinstance(one.of, Kind) and one.of.text)

    @cached_property
    def values(self) -> tuple[Field, ...]:
        """Fields in `extra.value`."""
        return tuple(one for one in self.fields if isinstance(one.of, Kind) and one.of.value)

    @cached_property
    def parts(self) -> tuple[Field, ...]:
        """Fields in `extra.percent`."""
        return tuple(one for one in self.fields if isinstance(one.of, Kind) and one.of.part)

    @cached_property
    def has_extra(self) -> bool:
        """Whether the object has an `extra`; all kinds with variants have a text."""
        return self.extra or bool(self.texts)

    def but(self, name: str, **changes: "str | Node") -> "Shape":
        """The same object under another name, some fields renamed (text) or of another shape."""
        return replace(self, name=name, fields=tuple(_changed(one, changes.get(one.name)) for one in self.fields))

    def writer(self, flags: Flags) -> Write:
        """Field by field, and then the variants."""
        fields = [(one.name, one.get, one.scoped(one.of.writer(flags))) for one in self.fields]
        if self.has_extra:
            fields.append(("extra", _itself, self._variants(flags)))
        body = _object(fields)
        if self.asset is None:
            return body
        asset_of = attrgetter(self.asset)
        return lambda record, scope: body(record, scope.of(asset_of(record)))

    def _variants(self, flags: Flags) -> Write:
        variants = {"text": self._texts() if flags.text else _null}
        if self.parts:
            variants["percent"] = self._percent(flags) if flags.percent else _null
        if self.values:
            variants["value"] = self._value(flags) if flags.value else _null
        return _object([(name, _itself, write) for name, write in variants.items()])

    def _texts(self) -> Write:
        kinds = ((one, one.of.text) for one in self.texts if isinstance(one.of, Kind))
        return _object([(one.name, one.get, one.scoped(write)) for one, write in kinds if write], text.NONE)

    def _percent(self, flags: Flags) -> Write:
        parts = [(one.name, one.get) for one in self.parts]

        def write(record: Any, scope: Scope) -> dict[str, object]:
            shares = {name: fraction(get(record), record.amount) for name, get in parts}
            texts = {name: text.percent(share) for name, share in shares.items()} if flags.text else None
            return {**{name: text.plain(share) for name, share in shares.items()}, "extra": {"text": texts}}

        return write

    def _value(self, flags: Flags) -> Write:
        amounts = [(one.name, one.get) for one in self.values]

        def write(record: Any, scope: Scope) -> dict[str, object]:
            body: dict[str, object] = {}
            texts: dict[str, str] = {}
            for name, get in amounts:
                body[name], texts[name] = _usd(get(record), scope)
            body["price"], texts["price"] = scope.shown_price
            body["extra"] = {"text": texts if flags.text else None}
            return body

        return write


@dataclass(frozen=True)
class Many(Written):
    """A list of objects of one shape."""

    of: "Node"

    def writer(self, flags: Flags) -> Write:
        """One by one."""
        write = self.of.writer(flags)
        return lambda records, scope: [None if one is None else write(one, scope) for one in records]


@dataclass(frozen=True)
class OneOf(Written):
    """A response object of one of several shapes; the record's attribute `key` says which."""

    name: str
    help: str
    key: str
    choices: Mapping[str, Shape]

    def writer(self, flags: Flags) -> Write:
        """In the shape that the record names."""
        key_of = attrgetter(self.key)
        writers = {key: shape.writer(flags) for key, shape in self.choices.items()}
        return lambda record, scope: writers[key_of(record)](record, scope)


Node = Kind | Shape | Many | OneOf


def within(source: str, fields: Iterable[Field]) -> tuple[Field, ...]:
    """The fields of an object, for a record that has the object's own record in an attribute."""
    return tuple(one.within(source) for one in fields)


def _object(fields: Iterable[tuple[str, Get, Write]], absent: str | None = None) -> Write:
    """An object of named values; those that are not there read `absent`."""
    plan = tuple(fields)

    def write(record: Any, scope: Scope) -> dict[str, object]:
        body = {}
        for name, get, put in plan:
            value = get(record)
            body[name] = absent if value is None else put(value, scope)
        return body

    return write


def _itself(record: Any) -> Any:
    return record


def _null(record: Any, scope: Scope) -> None:
    """A variant that was not asked for."""


def _changed(one: Field, change: "str | Node | None") -> Field:
    if change is None:
        return one
    return replace(one, name=change, source=one.get) if isinstance(change, str) else replace(one, of=change)


def _usd(amount: int | None, scope: Scope) -> tuple[str | None, str]:
    """USD of an amount, as a decimal and as text."""
    if amount is None or scope.price is None:
        return None, text.NONE
    dollars = usd_value(amount, scope.own.decimals_denom, scope.price)
    return text.plain(dollars), text.usd(dollars)
