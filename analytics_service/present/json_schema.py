"""Derives JSON Schema (OpenAPI 3.1) from the declarations of response objects."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from analytics_service.present.renderings import PRICE, RATIO, USD
from analytics_service.present.shapes import Alternatives, Field, Many, Node, OneOf, Rendering, Shape

Schema = dict[str, object]
_TEXT: Schema = {"type": "string"}


def schema_of(node: Node) -> Schema:
    """The schema of a declaration; objects are references to components."""
    if isinstance(node, Many):
        return {"type": "array", "items": schema_of(node.of)}
    if isinstance(node, Rendering):
        return dict(node.schema) if isinstance(node.schema, Mapping) else schema_of(node.schema)
    return _reference(node.name)


class Components:
    """The schemas of all objects in declarations, by name. Raises ValueError if two share a name.

    Variants also have names, so that generated clients have a class for each: MarketExtra, MarketValue, MarketText.
    Texts with equal fields share a component that is named after the fields: PrincipalSharesText.
    """

    def __init__(self, nodes: Iterable[Node]) -> None:
        objects: dict[str, Shape | Alternatives] = {}
        for node in objects_of(nodes):
            if objects.setdefault(node.name, node) is not node:
                raise ValueError(f"two response objects are called {node.name}; rename one")
        self.schemas: dict[str, Schema] = {}
        self._uses = Counter(tuple(texts) for node in objects.values() for texts in _texts(node).values())
        for name, node in objects.items():
            self.add(name, self._definition(node))

    def add(self, name: str, schema: Schema) -> Schema:
        """Make a schema a component, and return a reference to it."""
        if self.schemas.setdefault(name, schema) != schema:
            raise ValueError(f"two different objects are called {name}; rename one")
        return _reference(name)

    def _definition(self, node: Shape | Alternatives) -> Schema:
        if isinstance(node, Alternatives):
            # Choices may have equal names of fields. They differ in constants, which linters and generators ignore, so
            # to them more than one choice would match.
            one_of = "oneOf" if isinstance(node, OneOf) and not _names_kinds(node) else "anyOf"
            return {"description": node.help, one_of: [schema_of(choice) for choice in node.choices.values()]}
        properties = {field.name: property_schema(field) for field in node.fields}
        if node.variants:
            members = {variant: self._variant(node, variant) for variant in _texts(node)}
            extra = {"description": "Variants; null unless requested.", **exact_schema(members)}
            properties["extra"] = self.add(f"{node.name}Extra", extra)
        return {"description": node.help, **exact_schema(properties, _rare(node))}

    def _variant(self, shape: Shape, variant: str) -> Schema:
        """A variant of an object, with its texts."""
        name, texts, rare = f"{shape.name}{camel_case(variant)}", _texts(shape)[variant], _rare(shape)
        if variant == "text":
            return self._text(name, texts, "with_text is", rare)
        if variant == "percent":
            properties = {
                field.name: _described(RATIO, field, "as a fraction of amount") for field in shape.variants[variant]
            }
        else:
            properties = {field.name: or_null(_described(USD, field, "in USD")) for field in shape.variants[variant]}
            price = {**schema_of(PRICE), "description": "USD for one standard unit, as used for the values."}
            properties["price"] = or_null(price)
        text = self._text(f"{name}Text", texts, f"with_{variant} and with_text are")
        extra = self.add(f"{name}Extra", exact_schema({"text": text}))
        help: Schema = {"description": f"Null unless with_{variant} is true."}
        return help | or_null(self.add(name, help | exact_schema({**properties, "extra": extra})))

    def _text(self, name: str, texts: Mapping[str, object], flags: str, rare: Collection[str] = ()) -> Schema:
        help: Schema = {"description": f"Null unless {flags} true."}
        if self._uses[tuple(texts)] > 1:
            return help | or_null(self.add("".join(map(camel_case, texts)) + "Text", exact_schema(texts, rare)))
        return help | or_null(self.add(name, help | exact_schema(texts, rare)))


def camel_case(name: str) -> str:
    """The name of a component for a field or a parameter."""
    return "".join(word.capitalize() for word in name.split("_"))


def exact_schema(properties: Mapping[str, object], rare: Collection[str] = ()) -> Schema:
    """An object with exactly these properties; those in `rare` may be missing."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": [name for name in properties if name not in rare],
        "additionalProperties": False,
    }


def or_null(schema: Mapping[str, object]) -> Schema:
    """A schema that also allows null."""
    if "$ref" in schema or "enum" in schema:
        return {"anyOf": [dict(schema), {"type": "null"}]}
    return {**schema, "type": [schema["type"], "null"]}


def _reference(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def objects_of(nodes: Iterable[Node | None]) -> Iterator[Shape | Alternatives]:
    """All objects in declarations, with repeats."""
    for node in nodes:
        if isinstance(node, Shape):
            yield node
            yield from objects_of(field.of for field in node.fields)
        elif isinstance(node, Alternatives):
            yield node
            yield from objects_of(node.choices.values())
        elif isinstance(node, Many):
            yield from objects_of([node.of])
        elif node is not None and not isinstance(node.schema, Mapping):
            yield from objects_of([node.schema])


def _names_kinds(node: OneOf) -> bool:
    return all(field.name == "kind" for shape in node.choices.values() for field in shape.fields[:1])


def describe_field(field: Field) -> str:
    """The help of a field, with the unit of its values."""
    schema = schema_of(field.of)
    return f"{field.help} {schema['description']}" if "description" in schema else field.help


def property_schema(field: Field) -> Schema:
    """The schema of a field. References have no description, because generators reject siblings of references."""
    schema = or_null(schema_of(field.of)) if field.optional else schema_of(field.of)
    return schema if "$ref" in schema else {**schema, "description": describe_field(field)}


def _texts(node: Shape | Alternatives) -> dict[str, dict[str, object]]:
    """By variant of an object: the schemas of its texts, by name of the field."""
    if isinstance(node, Alternatives):
        return {}
    prices = {"value": {"price": _TEXT}}
    return {
        variant: {**{field.name: _text_schema(field.of) for field in fields}, **prices.get(variant, {})}
        for variant, fields in node.variants.items()
    }


def _text_schema(node: Node) -> Mapping[str, object]:
    return node.text_schema if isinstance(node, Rendering) else _TEXT


def _rare(shape: Shape) -> set[str]:
    return {field.name for field in shape.fields if field.sometimes}


def _described(kind: Rendering, field: Field, how: str) -> Schema:
    return {**schema_of(kind), "description": f"{field.name} {how}."}
