"""Response objects, each declared once: from its fields and their kinds come its JSON and its text variant."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from analytics_service.present import text


@dataclass(frozen=True, slots=True)
class Kind:
    """What a field holds: how its value is written in JSON and, where it has one, in `extra.text`."""

    json: Callable[[Any], object]
    text: Callable[[Any], str] | None = None


@dataclass(frozen=True, slots=True)
class Flags:
    """Which variants a request asked for (interface section 1)."""

    text: bool = False


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a response object: its name in JSON, its kind or shape, and where in the record it comes from.

    `source` is an attribute of the record; None means the field's own name, empty the record itself.
    """

    name: str
    of: "Kind | Shape"
    source: str | None = None

    def value(self, record: Any) -> Any:
        """The field's value in a record."""
        if self.source == "":
            return record
        return getattr(record, self.source or self.name)


@dataclass(frozen=True, slots=True)
class Shape:
    """A response object. Fields whose kind has a text give the object an `extra` with its text variant."""

    name: str
    fields: tuple[Field, ...]

    def render(self, record: Any, flags: Flags) -> dict[str, object]:
        """The object as JSON-ready values."""
        body: dict[str, object] = {}
        texts: dict[str, str] = {}
        for field in self.fields:
            value = field.value(record)
            if isinstance(field.of, Shape):
                body[field.name] = field.of.render(value, flags)
                continue
            body[field.name] = None if value is None else field.of.json(value)
            if field.of.text is not None:
                texts[field.name] = text.NONE if value is None else field.of.text(value)
        if texts:
            body["extra"] = {"text": texts if flags.text else None}
        return body


@dataclass(frozen=True, slots=True)
class Variants(Shape):
    """A response object of one of several shapes, told apart by an attribute of the record."""

    key: str
    choices: Mapping[str, Shape]

    def render(self, record: Any, flags: Flags) -> dict[str, object]:
        """The object in the shape that the record's key attribute names."""
        return self.choices[getattr(record, self.key)].render(record, flags)


STRING = Kind(str)
NUMBER = Kind(int)
PRICE = Kind(text.plain, text.price)
TIME = Kind(text.rfc3339, text.time)
