"""JSON Schema (OpenAPI 3.1) of response objects, derived from their declarations."""

from collections.abc import Iterable, Iterator, Mapping

from analytics_service.present.kinds import PRICE, RATIO, USD
from analytics_service.present.shapes import Alternatives, Field, Kind, Many, Node, Shape

Schema = dict[str, object]


def schema_of(node: Node) -> Schema:
    """The schema of a declaration; objects are references into `components`."""
    if isinstance(node, Many):
        return {"type": "array", "items": schema_of(node.of)}
    if isinstance(node, Kind):
        return dict(node.schema) if isinstance(node.schema, Mapping) else schema_of(node.schema)
    return {"$ref": f"#/components/schemas/{node.name}"}


def components(nodes: Iterable[Node]) -> dict[str, Schema]:
    """The schemas of all objects in the declarations, by name. ValueError if two objects share a name."""
    objects: dict[str, Shape | Alternatives] = {}
    for node in _objects(nodes):
        if objects.setdefault(node.name, node) is not node:
            raise ValueError(f"two response objects are called {node.name}; rename one")
    return {name: _definition(objects[name]) for name in sorted(objects)}


def exactly(properties: Mapping[str, object]) -> Schema:
    """An object with all of these properties and no others."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": [*properties],
        "additionalProperties": False,
    }


def or_null(schema: Mapping[str, object]) -> Schema:
    """The schema of the same value or null."""
    if "$ref" in schema or "enum" in schema:
        return {"anyOf": [dict(schema), {"type": "null"}]}
    return {**schema, "type": [schema["type"], "null"]}


def _objects(nodes: Iterable[Node]) -> Iterator[Shape | Alternatives]:
    for node in nodes:
        if isinstance(node, Shape):
            yield node
            yield from _objects(field.of for field in node.fields)
        elif isinstance(node, Alternatives):
            yield node
            yield from _objects(node.choices.values())
        elif isinstance(node, Many):
            yield from _objects([node.of])
        elif not isinstance(node.schema, Mapping):
            yield from _objects([node.schema])


def _definition(node: Shape | Alternatives) -> Schema:
    if isinstance(node, Alternatives):
        return {"description": node.help, "oneOf": [schema_of(choice) for choice in node.choices.values()]}
    properties = {field.name: _property(field) for field in node.fields}
    if node.has_extra:
        properties["extra"] = {"description": "Variants; null unless asked for.", **_extra(node)}
    rare = {field.name for field in node.fields if field.sometimes}
    required = [name for name in properties if name not in rare]
    return {"description": node.help, **exactly(properties), "required": required}


def _property(field: Field) -> Schema:
    schema = schema_of(field.of)
    unit = f" {schema['description']}" if "description" in schema else ""
    schema = or_null(schema) if field.optional else schema
    return {**schema, "description": field.help + unit}


def _extra(shape: Shape) -> Schema:
    members: dict[str, object] = {"text": _texts(shape.texts, "with_text")}
    if shape.parts:
        fractions = {field.name: _described(RATIO, field, "as a fraction of amount") for field in shape.parts}
        members["percent"] = _variant(fractions, shape.parts, "with_percent")
    if shape.values:
        sums = {field.name: or_null(_described(USD, field, "in USD")) for field in shape.values}
        price = or_null({**schema_of(PRICE), "description": "USD for one standard unit, as used here."})
        members["value"] = _variant({**sums, "price": price}, shape.values, "with_value", "price")
    return exactly(members)


def _described(kind: Kind, field: Field, how: str) -> Schema:
    return {**schema_of(kind), "description": f"{field.name} {how}."}


def _variant(properties: Mapping[str, object], fields: Iterable[Field], flag: str, *names: str) -> Schema:
    extra = exactly({"text": _texts(fields, f"{flag} and with_text", *names)})
    return or_null({"description": f"Null unless {flag} is true.", **exactly({**properties, "extra": extra})})


def _texts(fields: Iterable[Field], flags: str, *names: str) -> Schema:
    """The schema of an object with texts of the fields, and of further `names`."""
    all_names = [*(field.name for field in fields), *names]
    texts = exactly({name: {"type": "string"} for name in all_names})
    return or_null({"description": f"Null unless {flags} {'are' if ' ' in flags else 'is'} true.", **texts})
