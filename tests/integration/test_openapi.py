"""The OpenAPI document of all routes, and every answer against it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import product
from typing import Any
from urllib.parse import urlencode

import falcon.testing
import jsonschema_rs
import pytest
from falcon.inspect import inspect_routes

from analytics_service.app import create_app
from analytics_service.config.settings import Settings
from analytics_service.market.assets import Asset
from analytics_service.market.positions import SwapContract
from analytics_service.market.prices import Price
from analytics_service.store.connection import Store
from jobs.registry import JOBS
from jobs.runner import run_once
from tests.doubles import FirstHeads
from tests.integration.databases import database
from tests.integration.handmade import HandMade
from tests.unit.small_protocol import ASSETS, AT, CONFIG, MARKETS, ORB, POSITION, PRICES, PTOKEN, USDT, arrangement

CONTRACT = "0x" + "d" * 40
# They describe the API and have no envelope.
DOCUMENTS = {"/api/v1/openapi.json", "/docs", "/", "/static/{version}/{name}"}
NOW = int(AT.timestamp())
GIVEN = {
    "start": str(NOW - 5 * 3600),
    "end": str(NOW),
    "period": "h",
    "contract_address": CONTRACT,
    "source_denom": "uusdt",
}
# Asset ids for lookups, by the next to last segment of the path.
LOOKUPS = {"lend": USDT, "debts": USDT, "collaterals": ORB, "merged": ORB}
# The same for lookups of an address, by the last two segments.
USER_LOOKUPS = {"lookup/collateral": ORB, "lookup/debt": USDT, "wallet/balance": USDT}

# What follows the mention of a count on the page.
COUNTED = {
    "/api/v1/markets": "",
    "/api/v1/markets/merged": "</p><details><su",
    "/api/v1/markets/lend": " if it is a list",
}

Client = falcon.testing.TestClient


class SmallProtocol(HandMade):
    """The small protocol of the unit tests as a source."""

    def assets(self, at: datetime) -> Sequence[Asset]:
        return list(ASSETS.values())

    def prices(self, at: datetime) -> Sequence[Price]:
        return [Price(asset_id, at, usd) for asset_id, usd in PRICES.items()]


@pytest.fixture(scope="module")
def written(server: Settings) -> Iterator[tuple[Settings, Store]]:
    """A database with one snapshot of everything, which no test changes."""
    source = SmallProtocol(
        markets_=list(MARKETS.values()),
        config_=CONFIG,
        ptoken_=PTOKEN,
        arrangements_=[arrangement()],
        positions_=[POSITION],
        swaps_=[SwapContract(CONTRACT, {"uusdt": ("uorb", "uptk")})],
    )
    settings = replace(server, clickhouse_database="test_openapi")
    with database(settings) as store:
        for job in JOBS.values():
            run_once(job, source, store, AT)
        yield settings, store


@pytest.fixture
def client(written: tuple[Settings, Store]) -> Client:
    """A service that has just started, with that database."""
    settings, store = written
    return falcon.testing.TestClient(create_app(settings, store, lambda: AT, FirstHeads(store)))


@pytest.fixture
def document(client: Client) -> dict[str, Any]:
    found: dict[str, Any] = client.simulate_get("/api/v1/openapi.json").json
    return found


def queries(path: str, operation: dict[str, Any]) -> Iterator[str]:
    """Queries with all required parameters, in every combination of flags."""
    names = {one["name"]: one["required"] for one in operation["parameters"] if one["in"] == "query"}
    *_, before, last = path.split("/")
    lookup = {"asset_id": USER_LOOKUPS.get(f"{before}/{last}") or LOOKUPS[before]} if "asset_id" in names else {}
    required = {name: {**GIVEN, **lookup}[name] for name, needed in names.items() if needed}
    # One pool is named by its index or by its duration.
    required |= {"index": "1"} if "duration" in names else {}
    flags = [name for name in names if name.startswith("with_")]
    shapes = ["newer", "older"] if "shape" in names else [None]
    for shape, *values in product(shapes, *(("true", "false") for _ in flags)):
        chosen = dict(zip(flags, values, strict=True)) | ({"shape": shape} if shape else {})
        yield urlencode({**required, **chosen})


def located(path: str) -> str:
    """A path with the parameters that are in it."""
    return path.replace("{address}", POSITION.address).replace("{index}", "2")


def validator(document: dict[str, Any], operation: dict[str, Any], status: int) -> jsonschema_rs.Draft202012Validator:
    response = operation["responses"][str(status)]
    if "$ref" in response:
        response = document["components"]["responses"][response["$ref"].rpartition("/")[2]]
    schema = response["content"]["application/json"]["schema"]
    return jsonschema_rs.Draft202012Validator({**schema, "components": document["components"]}, validate_formats=True)


def test_every_route_is_described(client: Client, document: dict[str, Any]) -> None:
    routes = {route.path for route in inspect_routes(client.app)}
    assert set(document["paths"]) == routes - DOCUMENTS
    assert all(item["get"]["summary"] for item in document["paths"].values())


def test_every_answer_matches_its_schema(client: Client, document: dict[str, Any]) -> None:
    count = 0
    for path, item in document["paths"].items():
        operation = item["get"]
        checker = validator(document, operation, 200)
        for query in queries(path, operation):
            answer = client.simulate_get(located(path), query_string=query)
            assert answer.status_code == 200, (path, query, answer.text)
            checker.validate(answer.json)
            check_headers(document, operation["responses"]["200"], answer)
            count += 1
    assert count > 2 * len(document["paths"])


def check_headers(document: dict[str, Any], response: dict[str, Any], answer: falcon.testing.Result) -> None:
    """Required headers are present, and present headers match their schema."""
    for name, reference in response["headers"].items():
        header = document["components"]["headers"][reference["$ref"].rpartition("/")[2]]
        if header.get("required") or name in answer.headers:
            jsonschema_rs.Draft202012Validator(header["schema"]).validate(answer.headers[name])


def test_every_304_has_the_described_headers(client: Client, document: dict[str, Any]) -> None:
    response = document["components"]["responses"]["NotModified"]
    for path, item in document["paths"].items():
        query = next(queries(path, item["get"]))
        answer = client.simulate_get(located(path), query_string=query, headers={"If-None-Match": "*"})
        assert (answer.status_code, answer.content) == (304, b"")
        check_headers(document, response, answer)


def test_every_part_of_a_file_has_the_described_headers(client: Client, document: dict[str, Any]) -> None:
    operations = {path: item["get"] for path, item in document["paths"].items()}
    files = {path: one for path, one in operations.items() if "206" in one["responses"]}
    # A path has files if it takes a format.
    assert files.keys() == {
        path for path, one in operations.items() if any(each["name"] == "format" for each in one["parameters"])
    }
    for path, operation in files.items():
        query = f"{next(queries(path, operation))}&format=csv"
        answer = client.simulate_get(path, query_string=query, headers={"Range": "bytes=0-9"})
        assert (answer.status_code, len(answer.content)) == (206, 10)
        check_headers(document, operation["responses"]["206"], answer)
        assert answer.headers["content-type"].partition(";")[0] in operation["responses"]["206"]["content"]


@pytest.mark.parametrize(
    ("path", "query", "status"),
    [
        ("/api/v1/markets/lend/lookup", "", 400),
        ("/api/v1/markets/lend/lookup", "asset_id=native;nothing", 404),
        ("/api/v1/users/{address}/user", "", 400),
    ],
)
def test_errors_match_their_schema(
    client: Client, document: dict[str, Any], path: str, query: str, status: int
) -> None:
    answer = client.simulate_get(path, query_string=query)
    assert answer.status_code == status
    validator(document, document["paths"][path]["get"], status).validate(answer.json)


def test_the_page_shows_every_path(client: Client, document: dict[str, Any]) -> None:
    page = client.simulate_get("/docs", headers={"Accept": "text/html"})
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
    assert page.headers["content-security-policy"] == policy
    assert all(f"<code>{path}</code>" in page.text for path in document["paths"])


def test_the_page_says_when_an_answer_has_a_count(client: Client) -> None:
    page = client.simulate_get("/docs").text
    sections = {
        path: page.partition(f"<b>GET</b><code>{path}</code>")[2].partition("</section>")[0] for path in COUNTED
    }
    told = {path: section.partition(", with <code>count</code>")[2][:16] for path, section in sections.items()}
    assert told == COUNTED


def test_the_page_is_refused_if_html_is_not_acceptable(client: Client) -> None:
    answer = client.simulate_get("/docs", headers={"Accept": "application/json"})
    assert (answer.status_code, answer.json["error"]["kind"]) == (406, "content_type_unsupported")
