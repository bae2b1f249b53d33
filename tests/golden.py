"""Writes an outline of the OpenAPI document into tests/unit/openapi.txt, and the statements of clusters into
tests/unit/layouts.sql: `python -m tests.golden`. `git diff` then shows what changed in contract and tables."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import falcon.testing

from analytics_service.app import create_app
from analytics_service.config.settings import Settings
from analytics_service.store.layout import Layout
from analytics_service.store.migrations import SCHEMA_MIGRATION
from analytics_service.store.researcher import researcher_script
from analytics_service.store.schema import shipped, view_statements
from analytics_service.store.sql import named_query

FILE = Path(__file__).parent / "unit" / "openapi.txt"
LAYOUTS_FILE = FILE.with_name("layouts.sql")
LAYOUTS = {
    "A cluster of one shard": Layout("Atomic", "main", 1),
    "A cluster of several shards": Layout("Atomic", "main", 3),
    "A database of engine Replicated": Layout("Replicated"),
    "ClickHouse Cloud": Layout("Shared"),
}
# What the code composes, as examples, and what a migration may do.
COMPOSED = (
    "EXCHANGE TABLES `analytics`.snapshot AND `analytics_restore_1`.snapshot{on_cluster}",
    "CREATE TABLE IF NOT EXISTS snapshot_staging_1{on_cluster} AS snapshot",
    "CREATE TABLE IF NOT EXISTS observation_staging_1{local}{on_cluster} AS observation{local}",
    "DROP TABLE IF EXISTS snapshot_staging_1, observation_staging_1{local}{on_cluster} SYNC",
    "ALTER TABLE observation{local}{on_cluster} ADD COLUMN IF NOT EXISTS note String COMMENT 'As a migration may'",
    named_query("take_out_observations", {"removed": "observation_staging_1_removed", "version": "1"}),
    named_query("take_out_events", {"staged": "snapshot_staging_1", "version": "1"}),
    named_query(
        "drop_empty_cells",
        {"removed": "observation_staging_1_removed", "cells": named_query("cells_of_observation", ())},
    ),
)


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


def written() -> Iterator[str]:
    yield SCHEMA_MIGRATION
    for migration in shipped():
        yield from migration.statements
    yield from view_statements(timedelta(days=1))
    yield from COMPOSED
    placeholders = {"hash": "00", "database": "`analytics`", "threads": "1", "readable": "*.*"}
    fixed = "priority = 2 READONLY, distributed_product_mode = 'global'"
    yield from researcher_script(user="`ann-b`", fixed=fixed, **placeholders)


def layouts() -> str:
    """Settings of all statements in each layout, and what becomes of each statement: its first line, and those of a
    table's engine and settings."""
    return "\n".join(f"-- {name}\n{_settings(layout)}\n{_shown(layout)}" for name, layout in LAYOUTS.items())


def _settings(layout: Layout) -> str:
    return "".join(f"--   {name} = {value}\n" for name, value in sorted(layout.settings.items()))


def _shown(layout: Layout) -> str:
    shown = []
    for statement in written():
        for rendered in layout.rendered(statement, "analytics"):
            first, *rest = rendered.splitlines()
            changes = [line for line in rest if line.startswith(("ENGINE", "SETTINGS")) and " VIEW " not in first]
            shown.append("\n".join([first, *changes]) + ";\n")
    return "".join(shown)


if __name__ == "__main__":
    FILE.write_text(served(), "utf-8")
    LAYOUTS_FILE.write_text(layouts(), "utf-8")
