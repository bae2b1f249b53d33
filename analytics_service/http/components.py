"""The published OpenAPI document. Every object in it has a name, so generated clients have a class for each object."""

from collections.abc import Mapping
from typing import Any

Schema = dict[str, Any]
_COMPONENT = "#/components/schemas/"


def published(document: Mapping[str, Any]) -> Schema:
    """The document with all objects and enumerations as components, which it refers to. Texts of the same fields share
    a component. ValueError if two different components get the same name."""
    components = document["components"]
    schemas = _Schemas(_enumerations(document["paths"]))
    for name, schema in components["schemas"].items():
        schemas.add(name, schema)
    failure = schemas.failure(components["responses"])
    return {
        **document,
        "paths": {path: _item(item, schemas) for path, item in document["paths"].items()},
        "components": {
            **components,
            "responses": {name: _failed(response, failure) for name, response in components["responses"].items()},
            "schemas": dict(sorted(_with_shared_texts(schemas.components).items())),
        },
    }


class _Schemas:
    """Components by name. Fields with the same words as a parameter share the parameter's enumeration."""

    def __init__(self, enumerations: Mapping[tuple[str, ...], str]) -> None:
        self.components: dict[str, Schema] = {}
        self._enumerations = enumerations

    def add(self, name: str, schema: Schema) -> Schema:
        """A reference to a schema that becomes a component; the objects in it become components, too."""
        if "properties" in schema:
            properties = {
                field: self._named(_name(name, field), value) for field, value in schema["properties"].items()
            }
            schema = {**schema, "type": "object", "properties": properties}
        if self.components.setdefault(name, schema) != schema:
            raise ValueError(f"two different objects are called {name}; rename one")
        return {"$ref": _COMPONENT + name}

    def failure(self, responses: Mapping[str, Any]) -> Schema:
        """The component for the envelopes of all errors."""
        contents = [response["content"] for response in responses.values() if "content" in response]
        envelopes = [content["application/json"]["schema"] for content in contents]
        errors = [envelope["properties"]["error"]["properties"] for envelope in envelopes]
        first = envelopes[0]["properties"]
        joined = {
            name: {**schema, "enum": sorted({choice for error in errors for choice in error[name]["enum"]})}
            for name, schema in errors[0].items()
            if "enum" in schema
        }
        error = {**first["error"], "properties": {**errors[0], **joined}}
        properties = {**first, "error": error, "status": {"type": "integer"}, "status_text": {"type": "string"}}
        self.add("Error", error)
        return self.add(
            "Failure", {**envelopes[0], "properties": {**properties, "error": {"$ref": f"{_COMPONENT}Error"}}}
        )

    def _named(self, name: str, schema: Schema) -> Schema:
        """The schema, or a reference to it if it is an object."""
        if "properties" in schema:
            reference = self.add(name, schema)
            if "null" not in schema["type"]:
                return reference
            return {"description": schema["description"], "anyOf": [reference, {"type": "null"}]}
        if "items" in schema:
            return {**schema, "items": self._named(name, schema["items"])}
        if len(schema.get("enum", ())) == 1:
            # Generators make a class for each enumeration, even for a single word.
            return {**_without(schema, "enum"), "const": schema["enum"][0]}
        if shared := self._enumerations.get(tuple(schema.get("enum", ()))):
            described = {key: value for key, value in schema.items() if key == "description"}
            return {**described, "allOf": [{"$ref": _COMPONENT + shared}]}
        return schema


def _with_shared_texts(components: Mapping[str, Schema]) -> dict[str, Schema]:
    """The components. Texts of the same fields share a component, which is named after them: PrincipalSharesText."""
    named: dict[tuple[str, ...], list[str]] = {}
    for name, schema in components.items():
        if name.endswith("Text"):
            named.setdefault(tuple(schema["properties"]), []).append(name)
    shared = {
        name: "".join(map(_camel, fields)) + "Text"
        for fields, names in named.items()
        if len(names) > 1
        for name in names
    }
    # The field that refers to a text says when it is null.
    renamed = {
        shared.get(name, name): _without(schema, "description") if name in shared else _renamed(schema, shared)
        for name, schema in components.items()
    }
    if len(renamed) != len(components) - len(shared) + len({*shared.values()}):
        raise ValueError("a shared text has the name of another object; rename that one")
    return renamed


def _renamed(schema: Any, names: Mapping[str, str]) -> Any:
    """The schema with references to the new names of components."""
    if isinstance(schema, list):
        return [_renamed(item, names) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        old = schema["$ref"].removeprefix(_COMPONENT)
        return {"$ref": _COMPONENT + names.get(old, old)}
    return {key: _renamed(value, names) for key, value in schema.items()}


def _without(schema: Schema, key: str) -> Schema:
    return {name: value for name, value in schema.items() if name != key}


def _enumerations(paths: Mapping[str, Any]) -> dict[tuple[str, ...], str]:
    """The names of the enumerations that parameters have, by their words."""
    parameters = [parameter for item in paths.values() for parameter in item["get"]["parameters"]]
    return {
        tuple(parameter["schema"]["enum"]): _camel(parameter["name"])
        for parameter in parameters
        if "enum" in parameter["schema"]
    }


def _name(parent: str, field: str) -> str:
    """The name of an object in a field. Variants are named after the object that has them: MarketText, MarketValue."""
    return parent.removesuffix("Extra") + _camel(field)


def _item(item: Mapping[str, Any], schemas: _Schemas) -> Schema:
    operation = item["get"]
    success = operation["responses"]["200"]
    envelope = success["content"]["application/json"]["schema"]
    data = envelope["properties"]["data"]
    name = data.get("items", data)["$ref"].removeprefix(_COMPONENT) + ("List" if "items" in data else "")
    content = {**success["content"], "application/json": {"schema": schemas.add(f"{name}Response", envelope)}}
    parameters = [_parameter(parameter, schemas) for parameter in operation["parameters"]]
    responses = {**operation["responses"], "200": {**success, "content": content}}
    return {**item, "get": {**operation, "parameters": parameters, "responses": responses}}


def _parameter(parameter: Schema, schemas: _Schemas) -> Schema:
    schema = parameter["schema"]
    if "enum" not in schema:
        return parameter
    reference = schemas.add(_camel(parameter["name"]), _without(schema, "default"))
    default = {"default": schema["default"]} if "default" in schema else {}
    return {**parameter, "schema": {"allOf": [reference], **default} if default else reference}


def _failed(response: Schema, failure: Schema) -> Schema:
    return {**response, "content": {"application/json": {"schema": failure}}} if "content" in response else response


def _camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))
