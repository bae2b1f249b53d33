"""Methods, paths and media types that are refused, on each kind of route (rules 3.1 and 7.2)."""

import pytest

from analytics_service.sources.simulated import RICH_ADDRESS
from tests.integration.routes import ALL_KINDS, CONTRACT, KINDS, Client, expect_error, get

METHODS = "GET, HEAD, OPTIONS"


@pytest.mark.parametrize("path", ALL_KINDS.values(), ids=ALL_KINDS)
def test_only_get_head_and_options_are_allowed(protocol: Client, path: str) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH", "TRACE"):
        refused = protocol.simulate_request(method, path)
        expect_error(refused, 405, "method_not_allowed", "client")
        assert refused.headers["allow"] == METHODS
    asked = {"Origin": "https://dash.example", "Access-Control-Request-Method": "GET"}
    for headers in ({}, asked):
        options = protocol.simulate_options(path, headers=headers)
        assert (options.status_code, options.headers["allow"]) == (200, METHODS)
    assert options.headers["access-control-allow-origin"] == "*"
    assert options.headers["access-control-allow-methods"] == METHODS


@pytest.mark.filterwarnings("ignore:Unknown REQUEST_METHOD")
@pytest.mark.parametrize("method", ["BREW", "WEBSOCKET"])
def test_an_unknown_method_is_not_allowed(two_assets: Client, method: str) -> None:
    """Falcon has a method of its own that is called WEBSOCKET."""
    answer = two_assets.simulate_request(method, "/api/v1/assets")
    expect_error(answer, 405, "method_not_allowed", "client")
    assert answer.headers["allow"] == METHODS


@pytest.mark.parametrize(
    "path",
    [
        "/nowhere",
        "/api/v1",
        "/api/v1/assets/",
        "//api/v1/assets",
        "/api/v1/users//user",
        "/api%2Fv1/assets",
        f"/api/v1/users/{RICH_ADDRESS}%2F/user",
        "/api/v1/markets/lend%2flookup",
    ],
)
def test_an_unknown_path_is_a_404_that_names_it(protocol: Client, path: str) -> None:
    """Also one with double or percent-encoded slashes."""
    for method in ("GET", "POST"):
        answer = protocol.simulate_request(method, path)
        assert path in expect_error(answer, 404, "path_unknown", "client")
    assert protocol.simulate_head(path).status_code == 404


def test_slashes_of_a_query_and_of_a_scheme_are_not_those_of_the_path(protocol: Client) -> None:
    """A proxy may send the whole URL as the target; a denom may have slashes."""
    for prefix in ("", "http://localhost:8080"):
        extras = {"RAW_URI": f"{prefix}/api/v1/swap/routes?source_denom=ibc//%2Fa"}
        query = f"{CONTRACT}&source_denom=ibc//%2Fa"
        answer = protocol.simulate_get("/api/v1/swap/routes", query_string=query, extras=extras)
        expect_error(answer, 404, "entity_not_found", "user")
    doubled = {"RAW_URI": "http://localhost:8080/api//v1/assets"}
    expect_error(protocol.simulate_get("/api/v1/assets", extras=doubled), 404, "path_unknown", "client")


@pytest.mark.parametrize("accept", ["text/xml", "text/html, image/*", "application/json;q=0"])
def test_an_accept_header_that_rules_out_json_is_refused(protocol: Client, accept: str) -> None:
    for path in KINDS.values():
        if path != "/docs":
            assert accept in expect_error(get(protocol, path, Accept=accept), 406, "content_type_unsupported", "client")


def test_pages_for_people_are_html_and_refused_where_that_is_ruled_out(protocol: Client) -> None:
    for path in ("/", "/docs"):
        answer = get(protocol, path, Accept="text/html")
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
        expect_error(get(protocol, path, Accept="application/json"), 406, "content_type_unsupported", "client")


ACCEPTED = ("*/*", "text/html, */*;q=0.1", "APPLICATION/*;Q=0.5", ", application/json ,", "", " , ,")


@pytest.mark.parametrize("accept", ACCEPTED)
def test_an_accept_header_that_includes_json_is_accepted(two_assets: Client, accept: str) -> None:
    assert get(two_assets, "/api/v1/assets", Accept=accept).status_code == 200
