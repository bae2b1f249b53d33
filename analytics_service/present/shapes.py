"""Response objects, each declared once: from fields and their kinds come the JSON, its variants and the schema."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
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


@dataclass(frozen=True, slots=True)
class Scope:
    """What an object is rendered in: the variants asked for, assets and USD prices by asset id, and one asset.

    That one is the asset which amounts are of; an object whose shape names an asset sets it for all within.
    """

    flags: Flags = Flags()
    assets: Mapping[str, Asset] = field(default_factory=dict)
    prices: Mapping[str, Decimal] = field(default_factory=dict)
    asset: Asset | None = None
    price: Decimal | None = None

    def of(self, asset_id: str) -> "Scope":
        """The same where amounts are of another asset, which may have no price. KeyError when it is unknown."""
        return Scope(self.flags, self.assets, self.prices, self.assets[asset_id], self.prices.get(asset_id))

    @property
    def receipt(self) -> "Scope":
        """The same where amounts are of the asset's receipt token; where that is unknown, they have no price."""
        receipt = self.own.receipt_asset
        return self.of(receipt) if receipt and receipt in self.assets else replace(self, price=None)

    @property
    def own(self) -> Asset:
        """The asset that amounts are of. LookupError where no shape around has named one."""
        if self.asset is None:
            raise LookupError("no shape around this amount names the asset it is of")
        return self.asset


@dataclass(frozen=True)
class Kind:
    """What a field holds: how it is written in JSON, its schema and, where it has one, how it reads as text.

    Kinds with `value` have their USD in `extra.value`; those that are a `part` have, in `extra.percent`, the fraction
    they make of the object's `amount`.
    """

    schema: "Mapping[str, object] | Node"
    json: Callable[[Any, Scope], object]
    text: Callable[[Any, Scope], str] | None = None
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

    def render(self, value: Any, scope: Scope) -> object:
        """The value in JSON; null for one that is not there."""
        return None if value is None else self.json(value, scope)


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
    source: str | Callable[[Any], Any] | None = None
    optional: bool = False
    receipt: bool = False

    @cached_property
    def get(self) -> Callable[[Any], Any]:
        """The field's value in a record."""
        if callable(self.source):
            return self.source
        return _itself if self.source == "" else attrgetter(self.source or self.name)

    def render(self, record: Any, scope: Scope) -> object:
        """The field in JSON."""
        return self.of.render(self.get(record), scope.receipt if self.receipt else scope)

    def words(self, record: Any, scope: Scope) -> str:
        """The field as text; only for kinds that have one."""
        value = self.get(record)
        write = self.of.text if isinstance(self.of, Kind) else None
        if value is None or write is None:
            return text.NONE
        return write(value, scope.receipt if self.receipt else scope)


@dataclass(frozen=True)
class Shape:
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
        return replace(
            self, name=name, fields=tuple(_changed(one, changes.get(one.name)) for one in self.fields)
        )

    def render(self, record: Any, scope: Scope) -> dict[str, object] | None:
        """The object as JSON-ready values; null for a record that is not there."""
        if record is None:
            return None
        if self.asset is not None:
            scope = scope.of(getattr(record, self.asset))
        body = {one.name: one.render(record, scope) for one in self.fields}
        if self.has_extra:
            body["extra"] = self._variants(record, scope)
        return body

    def _variants(self, record: Any, scope: Scope) -> dict[str, object]:
        flags = scope.flags
        texts = {one.name: one.words(record, scope) for one in self.texts} if flags.text else None
        variants: dict[str, object] = {"text": texts}
        if self.parts:
            variants["percent"] = self._percent(record, flags) if flags.percent else None
        if self.values:
            variants["value"] = self._value(record, scope) if flags.value else None
        return variants

    def _percent(self, record: Any, flags: Flags) -> dict[str, object]:
        shares = {one.name: fraction(one.get(record), record.amount) for one in self.parts}
        texts = {name: text.percent(share) for name, share in shares.items()} if flags.text else None
        return {**{name: text.plain(share) for name, share in shares.items()}, "extra": {"text": texts}}

    def _value(self, record: Any, scope: Scope) -> dict[str, object]:
        sums = {one.name: _usd(one.get(record), scope) for one in self.values}
        body: dict[str, object] = {name: _plain(dollars) for name, dollars in sums.items()}
        body["price"] = _plain(scope.price)
        texts = None
        if scope.flags.text:
            texts = {
                name: text.NONE if dollars is None else text.usd(dollars) for name, dollars in sums.items()
            }
            texts["price"] = text.NONE if scope.price is None else text.price(scope.price)
        return {**body, "extra": {"text": texts}}


@dataclass(frozen=True)
class Many:
    """A list of objects of one shape."""

    of: "Node"

    def render(self, records: Iterable[Any], scope: Scope) -> list[object]:
        """The list as JSON-ready values."""
        return [self.of.render(record, scope) for record in records]


@dataclass(frozen=True)
class OneOf:
    """A response object of one of several shapes; the record's attribute `key` says which."""

    name: str
    help: str
    key: str
    choices: Mapping[str, Shape]

    def render(self, record: Any, scope: Scope) -> dict[str, object] | None:
        """The object in the shape that the record names."""
        return self.choices[getattr(record, self.key)].render(record, scope)


Node = Kind | Shape | Many | OneOf


def within(source: str, fields: Iterable[Field]) -> tuple[Field, ...]:
    """The fields of an object, for a record that has the object's own record in an attribute."""
    outer = attrgetter(source)
    return tuple(replace(one, source=_chain(outer, one.get)) for one in fields)


def _chain(outer: Callable[[Any], Any], inner: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda record: inner(outer(record))


def _itself(record: Any) -> Any:
    return record


def _changed(one: Field, change: "str | Node | None") -> Field:
    if change is None:
        return one
    return replace(one, name=change, source=one.get) if isinstance(change, str) else replace(one, of=change)


def _usd(amount: int | None, scope: Scope) -> Decimal | None:
    if amount is None or scope.price is None:
        return None
    return usd_value(amount, scope.own.decimals_denom, scope.price)


def _plain(dollars: Decimal | None) -> str | None:
    return None if dollars is None else text.plain(dollars)
