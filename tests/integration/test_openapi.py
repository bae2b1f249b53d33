"""Every answer against the OpenAPI document, and its page for people."""

from collections.abc import Iterator
from typing import Any

import falcon.testing
import jsonschema_rs
import pytest

from analytics_service.sources.simulated import RICH_ADDRESS
from tests.integration.routes import ROUTES, Client, get

Json = dict[str, Any]
# What follows the mention of a count on the page.
COUNTED = {
    "/api/v1/markets": "",
    "/api/v1/markets/merged": "; or <code>text/",
    "/api/v1/markets/lend": " if it is a list",
}
FLAGS = ("with_text", "with_value", "with_percent")


def template(path: str) -> str:
    """A route as the document has it."""
    return path.replace(RICH_ADDRESS, "{address}").replace("/accounts/0", "/accounts/{index}")


@pytest.fixture(scope="module")
def document(protocol: Client) -> Json:
    loaded: Json = protocol.simulate_get("/api/v1/openapi.json").json
    return loaded


def queries(query: str, operation: Json) -> Iterator[str]:
    """The route's query in both shapes, without and with all flags that it takes; unit tests have all combinations."""
    names = {parameter["name"] for parameter in operation["parameters"]}
    others = [part for part in query.split("&") if part and not part.startswith("with_")]
    flags = [f"{flag}=true" for flag in FLAGS if flag in names]
    for shape in ("newer", "older") if "shape" in names else ("",):
        for chosen in ([], flags) if flags else ([],):
            yield "&".join([*others, *chosen, *([f"shape={shape}"] if shape else [])])


def check(document: Json, operation: Json, answer: falcon.testing.Result) -> None:
    """The body follows its schema; required headers are present, and present headers follow theirs."""
    response = operation["responses"][str(answer.status_code)]
    if "$ref" in response:
        response = document["components"]["responses"][response["$ref"].rpartition("/")[2]]
    schema = {**response["content"]["application/json"]["schema"], "components": document["components"]}
    jsonschema_rs.Draft202012Validator(schema, validate_formats=True).validate(answer.json)
    check_headers(document, response, answer)


def check_headers(document: Json, response: Json, answer: falcon.testing.Result) -> None:
    for name, reference in response.get("headers", {}).items():
        header = document["components"]["headers"][reference["$ref"].rpartition("/")[2]]
        if header.get("required") or name in answer.headers:
            jsonschema_rs.Draft202012Validator(header["schema"]).validate(answer.headers[name])


def test_every_answer_matches_its_schema(protocol: Client, document: Json) -> None:
    routes = {template(path): path for path in ROUTES}
    count = 0
    for path, item in document["paths"].items():
        for query in queries(ROUTES[routes[path]].query, item["get"]):
            answer = get(protocol, routes[path], query)
            assert answer.status_code == 200, (path, query, answer.text)
            check(document, item["get"], answer)
            count += 1
    assert count > 1.5 * len(document["paths"])


def test_a_304_has_the_described_headers(protocol: Client, document: Json) -> None:
    """tests/integration/test_validators.py has the 304 of each kind of route."""
    unchanged = get(protocol, "/api/v1/markets", If_None_Match="*")
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    check_headers(document, document["components"]["responses"]["NotModified"], unchanged)


def test_errors_match_their_schema(protocol: Client, document: Json) -> None:
    for path, query, status in (
        ("/api/v1/markets/lend/lookup", "", 400),
        ("/api/v1/markets/lend/lookup", "asset_id=native;nothing", 404),
        ("/api/v1/users/{address}/user", "", 400),
    ):
        answer = protocol.simulate_get(path, query_string=query)
        assert answer.status_code == status
        check(document, document["paths"][path]["get"], answer)


def test_the_page_says_when_an_answer_has_a_count(protocol: Client) -> None:
    page = protocol.simulate_get("/docs").text
    sections = {
        path: page.partition(f"<b>GET</b><code>{path}</code>")[2].partition("</section>")[0] for path in COUNTED
    }
    mentions = {path: section.partition(", with <code>count</code>")[2][:16] for path, section in sections.items()}
    assert mentions == COUNTED
