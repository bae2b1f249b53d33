"""How the OpenAPI document and its page are made from declarations. test_contract.py has what the service's own say."""

import re
from html import unescape
from typing import Any

import falcon
import jsonschema_rs
import pytest

from analytics_service.http import params
from analytics_service.http.declared_params import Param
from analytics_service.http.docs import render_docs
from analytics_service.http.openapi import openapi_document
from analytics_service.http.resource import Resource
from analytics_service.present.renderings import AMOUNT, RATIO, STRING, USD
from analytics_service.present.shapes import Field, Many, Shape

MARKET = Shape(
    "Market",
    "A market & <its> sums.",
    (
        Field("name", STRING, "Its `name`."),
        Field("sum", AMOUNT, "What it holds."),
        Field("cap", AMOUNT.bare, "What it may hold.", optional=True),
        Field("rate", RATIO, "What it pays."),
    ),
)
NEWEST = Shape(
    "Newest",
    "The newest market.",
    (Field("market", MARKET, "It.", optional=True), Field("usd", USD, "Sum.")),
)
ADDRESS = Param("address", str, "an address.", required=True, schema={"type": "string", "examples": ["0x1"]})


class DeclarationOnly(Resource):
    def respond(self, req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        raise AssertionError("these resources are never called")


class Markets(DeclarationOnly):
    summary = "Every market."
    query = (*params.ASSET, params.WITH_TEXT, *params.RANGE)
    shape = Many(MARKET)


class Newest(DeclarationOnly):
    summary = "The newest market of someone."
    path = (ADDRESS,)
    shape = NEWEST


class Hidden(DeclarationOnly):
    """Not in the document."""


ROUTES = [("/api/v1/markets", Markets()), ("/api/v1/users/{address}/newest", Newest()), ("/metrics", Hidden())]
DOCUMENT: dict[str, Any] = openapi_document(ROUTES)
MARKETS = DOCUMENT["paths"]["/api/v1/markets"]["get"]


PAGE = render_docs(DOCUMENT, ROUTES)


def body_schema(operation: dict[str, Any], status: str) -> dict[str, Any]:
    """The schema of an answer, with the components that it refers to."""
    response = operation["responses"][status]
    if "$ref" in response:
        response = DOCUMENT["components"]["responses"][response["$ref"].rpartition("/")[2]]
    schema: dict[str, Any] = response["content"]["application/json"]["schema"]
    return {**schema, "components": DOCUMENT["components"]}


def accepts(operation: dict[str, Any], status: str, body: object) -> bool:
    return jsonschema_rs.Draft202012Validator(body_schema(operation, status)).is_valid(body)


GUARDED_ROUTES = [("/api/v1/markets", Markets()), ("/healthz", Newest())]
GUARDED: dict[str, Any] = openapi_document(GUARDED_ROUTES, asks_for_keys=True)


def test_keys_are_described_where_requests_need_one() -> None:
    paths = GUARDED["paths"]
    assert GUARDED["components"]["securitySchemes"] == {"ApiKey": {"type": "http", "scheme": "bearer"}}
    assert paths["/api/v1/markets"]["get"]["security"] == [{"ApiKey": []}]
    assert "401" in paths["/api/v1/markets"]["get"]["responses"]
    assert "security" not in paths["/healthz"]["get"]
    assert "401" not in paths["/healthz"]["get"]["responses"]
    assert [*GUARDED["components"]["responses"]["Unauthorized"]["headers"]] == ["WWW-Authenticate"]
    assert "Authorization: Bearer KEY" in GUARDED["info"]["description"]
    page = render_docs(GUARDED, GUARDED_ROUTES)
    curls = [unescape(shown) for shown in re.findall(r"<pre>(.*?)</pre>", page)]
    assert [" -H 'Authorization: Bearer KEY' " in curl for curl in curls] == [True, False]


@pytest.mark.parametrize(
    "param",
    [*params.RANGE, *params.ASSET, params.ASSET_IDS, params.SYMBOLS, params.WITH_TEXT],
    ids=lambda param: param.name,
)
def test_every_value_that_a_parameter_accepts_matches_its_schema(param: Param) -> None:
    validator = jsonschema_rs.Draft202012Validator(dict(param.schema))
    numbers = {"integer", "boolean"} & {schema.get("type") for schema in (param.schema, *param.schema.get("anyOf", ()))}  # type: ignore[attr-defined]
    words = ("now", "now-7d", "2026-01-31", "2026-01-31T12:00 05:30", "auto", "min", "ETH,btc", "", "true", "d", "x")
    others = ("none", "previous", "native;uorb", "native;", "token;0x1,native;uorb", "utc", "Etc/GMT 1")
    spelled = ("2026-01-31T12:00:00.000Z",)
    for text in (*words, *others, *spelled, *map(str, (-1, 0, 1, 200, 10_000, 10_001, 2**32 - 1, 2**32))):
        try:
            parsed = param.parse(text)
        except ValueError:
            continue
        value = text
        if numbers:
            value = int(text) if text.lstrip("-").isdecimal() else parsed if isinstance(parsed, bool) else text
        assert validator.is_valid(value), text


def test_a_parameter_that_may_be_left_out_says_what_holds_then() -> None:
    optional = [
        param
        for param in (*params.RANGE, params.FORMAT, params.ASSET_IDS, params.MOMENT[-1])
        if not param.required and param.default is None
    ]
    assert [param.name for param in optional if not re.search("by default|when omitted", param.help)] == []


def test_one_of_two_alternative_parameters_has_an_example_and_neither_is_required() -> None:
    pool = Newest()
    pool.query = (params.POOL_INDEX, params.POOL_DURATION)
    routes = [("/api/v1/users/{address}/pool", pool)]
    described: dict[str, Any] = openapi_document(routes)
    _, index, duration = described["paths"]["/api/v1/users/{address}/pool"]["get"]["parameters"]
    assert (index["required"], duration["required"]) == (False, False)
    assert (index["example"], "example" in duration) == (0, False)
    assert "curl 'http://HOST/api/v1/users/0x1/pool?index=0'" in render_docs(described, routes)


def test_a_list_has_a_count_and_an_object_has_none() -> None:
    market = {"name": "a", "sum": "1", "cap": None, "rate": "0.5", "extra": {"text": None, "value": None}}
    envelope: dict[str, object] = {"data": [market], "error": None, "status": 200, "status_text": "OK"}
    assert accepts(MARKETS, "200", {**envelope, "count": 1})
    assert not accepts(MARKETS, "200", envelope)
    newest = DOCUMENT["paths"]["/api/v1/users/{address}/newest"]["get"]
    envelope["data"] = {"market": None, "usd": "1.5", "extra": {"text": {"usd": "$1.50"}}}
    assert accepts(newest, "200", envelope)
    assert not accepts(newest, "200", {**envelope, "count": 1})


def test_each_schema_is_valid() -> None:
    for schema in DOCUMENT["components"]["schemas"].values():
        jsonschema_rs.meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema})


def nested_objects(schema: Any) -> list[object]:
    """The objects within a schema that are spelled out in place."""
    inner = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    own = [schema] if isinstance(schema, dict) and isinstance(schema.get("properties"), dict) else []
    return own + [nested for part in inner for nested in nested_objects(part)]


def test_every_object_of_the_document_has_a_name() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    assert {"Market", "MarketExtra", "MarketText", "MarketValue", "MarketValueExtra", "MarketValueText"} <= {*schemas}
    assert {"MarketListResponse", "NewestResponse", "Failure", "Error", "Period"} <= {*schemas}
    elsewhere = {**DOCUMENT, "components": {**DOCUMENT["components"], "schemas": {}}}
    assert nested_objects(elsewhere) == []
    for name, schema in schemas.items():
        assert nested_objects(schema) == ([schema] if "properties" in schema else []), name


def test_the_page_escapes_texts() -> None:
    assert "A market &amp; &lt;its&gt; sums." in PAGE
    assert "Its <code>name</code>." in PAGE
