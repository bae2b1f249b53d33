"""Writes an outline of the OpenAPI document into tests/unit/openapi.txt: `python -m tests.golden`. `git diff` then
shows what changed in the contract."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import falcon.testing

from analytics_service.app import create_app
from analytics_service.config.settings import Settings

FILE = Path(__file__).parent / "unit" / "openapi.txt"


def served() -> str:
    """The outline of the document that a service with default settings serves. A line for each operation: parameters,
    `*` after a required one, then status codes, and what is answered. A line for each component: its fields, `?`
    after an optional one, and their types."""
    client = falcon.testing.TestClient(create_app(Settings()))
    document = client.simulate_get("/api/v1/openapi.json").json
    lines = [
        f"GET {path}: {_parameters([*item['parameters'], *item['get']['parameters']])} -> {_answers(item['get'])}"
        for path, item in document["paths"].items()
    ]
    lines += [f"{name}: {_type(schema)}" for name, schema in document["components"]["schemas"].items()]
    return "\n".join([*lines, ""])


def _parameters(parameters: list[Mapping[str, Any]]) -> str:
    return ", ".join(_name(each["$ref"]) if "$ref" in each else _parameter(each) for each in parameters)


def _parameter(parameter: Mapping[str, Any]) -> str:
    return f"{parameter['name']}{'*' * parameter['required']} {_type(parameter['schema'])}"


def _answers(operation: Mapping[str, Any]) -> str:
    return ", ".join(f"{status} {_answer(answer)}".rstrip() for status, answer in operation["responses"].items())


def _answer(answer: Mapping[str, Any]) -> str:
    """What is answered, if all operations do not share it."""
    contents = answer.get("content", {}).items()
    return " | ".join(f"{_type(content['schema'])} as {media}" for media, content in contents)


def _type(schema: Mapping[str, Any]) -> str:
    """A schema in short: a name, alternatives, values, fields of an object, or a type."""
    if "$ref" in schema:
        return _name(schema["$ref"])
    if alternatives := schema.get("oneOf", schema.get("anyOf")):
        return " | ".join(map(_type, alternatives))
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    if "items" in schema:
        return f"[{_type(schema['items'])}]"
    if fields := schema.get("properties"):
        optional = fields.keys() - schema.get("required", ())
        return "{" + ", ".join(f"{name}{'?' * (name in optional)} {_type(of)}" for name, of in fields.items()) + "}"
    types = schema.get("type", "any")
    return types if isinstance(types, str) else " | ".join(types)


def _name(reference: str) -> str:
    return reference.rpartition("/")[2]


if __name__ == "__main__":
    FILE.write_text(served(), "utf-8")
