"""Writes the OpenAPI document into tests/unit/openapi.json, from which `git diff` shows what changed in the contract:
`python -m tests.golden`."""

import json
from pathlib import Path

import falcon.testing

from analytics_service.app import create_app
from analytics_service.config.settings import Settings

FILE = Path(__file__).parent / "unit" / "openapi.json"


def served() -> str:
    """The document as a service with default settings serves it, with sorted keys and a line for each value."""
    client = falcon.testing.TestClient(create_app(Settings()))
    document = client.simulate_get("/api/v1/openapi.json").json
    return json.dumps(document, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    FILE.write_text(served(), "utf-8")
