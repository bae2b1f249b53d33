"""The running service against its own OpenAPI document: a bounded, seeded choice of all requests that it allows."""

import json
import urllib.request
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.acceptance.conftest import Service

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.mark.slow
def test_any_request_the_document_allows_is_answered_as_it_says(service: Service) -> None:
    with urllib.request.urlopen(f"http://{service.bind}/api/v1/openapi.json") as answer:
        document = json.load(answer)
    schema = schemathesis.openapi.from_dict(document)
    asked: set[str] = set()
    for result in schema.get_all_operations():
        operation = result.ok()

        @seed(1)
        @settings(
            max_examples=8,
            deadline=None,
            database=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def ask(case: Any) -> None:
            asked.add(case.operation.path)
            # A part of a coded answer cannot be decoded.
            coding = {"Accept-Encoding": "identity"}
            case.call_and_validate(base_url=f"http://{service.bind}", checks=CHECKS, headers=coding, timeout=60)

        ask()
    assert asked == set(document["paths"])
