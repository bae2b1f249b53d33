"""Writes the OpenAPI document into tests/unit/openapi.json, and the statements of clusters into tests/unit/layouts.sql.
`git diff` then shows what changed in the contract and in the tables: `python -m tests.golden`."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import falcon.testing

from analytics_service.app import create_app
from analytics_service.config.settings import Settings
from analytics_service.store.layout import Layout
from analytics_service.store.migrations import SCHEMA_MIGRATION
from analytics_service.store.researcher import researcher_script
from analytics_service.store.schema import shipped, view_statements
from analytics_service.store.sql import named_query

FILE = Path(__file__).parent / "unit" / "openapi.json"
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
    """The document as a service with default settings serves it, with sorted keys and a line for each value."""
    client = falcon.testing.TestClient(create_app(Settings()))
    document = client.simulate_get("/api/v1/openapi.json").json
    return json.dumps(document, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


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
