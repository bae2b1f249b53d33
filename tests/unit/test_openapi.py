"""The OpenAPI document and its page, from declarations made for these tests."""

import re
from html import unescape
from html.parser import HTMLParser
from http import HTTPStatus
from typing import Any

import falcon
import jsonschema_rs
import pytest

from analytics_service.config.values import Rate
from analytics_service.http import params
from analytics_service.http.components import published
from analytics_service.http.docs import page
from analytics_service.http.errors import CASES
from analytics_service.http.openapi import document
from analytics_service.http.param import Param
from analytics_service.http.resource import Resource
from analytics_service.present.kinds import AMOUNT, RATIO, STRING, USD, word
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
    """Every market.

    In the order of names.
    """

    query = (params.ASSET_ID, params.WITH_TEXT, *params.RANGE)
    shape = Many(MARKET)


class Newest(DeclarationOnly):
    """The newest market of someone."""

    path = (ADDRESS,)
    shape = NEWEST


class Hidden(DeclarationOnly):
    """Not in the document."""


DOCUMENT: dict[str, Any] = document(
    [("/api/v1/markets", Markets()), ("/api/v1/users/{address}/newest", Newest()), ("/metrics", Hidden())]
)
MARKETS = DOCUMENT["paths"]["/api/v1/markets"]["get"]
BASE = "http://127.0.0.1:8000"


def shown(described: Any) -> str:
    """The page, with the document's own examples."""
    return page(described, BASE, lambda path: {})


PAGE = shown(DOCUMENT)


def body_schema(operation: dict[str, Any], status: str) -> dict[str, Any]:
    """The schema of an answer, with the components that it refers to."""
    response = operation["responses"][status]
    if "$ref" in response:
        response = DOCUMENT["components"]["responses"][response["$ref"].rpartition("/")[2]]
    schema: dict[str, Any] = response["content"]["application/json"]["schema"]
    return {**schema, "components": DOCUMENT["components"]}


def accepts(operation: dict[str, Any], status: str, body: object) -> bool:
    return jsonschema_rs.Draft202012Validator(body_schema(operation, status)).is_valid(body)


def test_the_document_lists_resources_with_a_shape() -> None:
    assert DOCUMENT["openapi"] == "3.1.0"
    assert list(DOCUMENT["paths"]) == ["/api/v1/markets", "/api/v1/users/{address}/newest"]
    assert DOCUMENT["tags"] == [{"name": "markets"}, {"name": "users"}]


GUARDED: dict[str, Any] = document(
    [("/api/v1/markets", Markets()), ("/healthz", Newest())], asks_for_keys=True, rate=Rate(600, 60)
)


def test_keys_and_limits_are_described_where_requests_are_subject_to_them() -> None:
    paths = GUARDED["paths"]
    assert GUARDED["components"]["securitySchemes"] == {"ApiKey": {"type": "http", "scheme": "bearer"}}
    assert paths["/api/v1/markets"]["get"]["security"] == [{"ApiKey": []}]
    assert {"401", "429"} <= {*paths["/api/v1/markets"]["get"]["responses"]}
    assert "security" not in paths["/healthz"]["get"]
    assert not {"401", "429"} & {*paths["/healthz"]["get"]["responses"]}
    responses = GUARDED["components"]["responses"]
    limits = ["RateLimit-Policy", "RateLimit"]
    assert [*responses["Unauthorized"]["headers"]] == ["WWW-Authenticate", *limits]
    assert [*responses["TooManyRequests"]["headers"]] == ["Retry-After", *limits]
    assert [*responses["BadRequest"]["headers"]] == limits
    assert [*responses["NotModified"]["headers"]][-2:] == limits
    assert [*paths["/api/v1/markets"]["get"]["responses"]["200"]["headers"]][-2:] == limits
    assert not {*limits} & {*paths["/healthz"]["get"]["responses"]["200"]["headers"]}
    assert "Authorization: Bearer KEY" in GUARDED["info"]["description"]
    curls = [unescape(shown) for shown in re.findall(r"<pre>(.*?)</pre>", shown(GUARDED))]
    assert [" -H 'Authorization: Bearer KEY' " in curl for curl in curls] == [True, False]
    assert "600 requests in 60 s below" in GUARDED["info"]["description"]


def test_a_document_without_keys_and_limits_does_not_mention_them() -> None:
    assert "securitySchemes" not in DOCUMENT["components"]
    assert not {"Unauthorized", "TooManyRequests"} & {*DOCUMENT["components"]["responses"]}
    assert "Bearer" not in DOCUMENT["info"]["description"]
    assert "429" not in DOCUMENT["info"]["description"]
    assert not {"RateLimit", "RateLimit-Policy"} & {*DOCUMENT["components"]["headers"]}


def test_tags_for_operators_come_last() -> None:
    routes = [("/healthz", Markets()), ("/api/v1/status/health", Markets()), ("/api/v1/markets", Markets())]
    assert document(routes)["tags"] == [{"name": "markets"}, {"name": "operations"}, {"name": "status"}]


def test_an_operation_has_an_id_from_its_path_and_a_summary_from_its_docstring() -> None:
    assert (MARKETS["operationId"], MARKETS["summary"]) == ("get_markets", "Every market.")
    assert DOCUMENT["paths"]["/api/v1/users/{address}/newest"]["get"]["operationId"] == "get_users_address_newest"


def test_a_resource_may_set_its_own_summary() -> None:
    one = Markets()
    one.summary = "The markets of this one."
    assert document([("/m", one)])["paths"]["/m"]["get"]["summary"] == "The markets of this one."  # type: ignore[index]


def test_parameters() -> None:
    found = {one["name"]: one for one in MARKETS["parameters"]}
    assert list(found) == ["asset_id", "with_text", *(one.name for one in params.RANGE)]
    assert (found["asset_id"]["required"], found["asset_id"]["in"]) == (True, "query")
    assert found["with_text"]["schema"] == {"type": "boolean", "default": False}
    assert found["limit"]["schema"] == {"type": "integer", "minimum": 1, "maximum": 10_000}
    assert found["period"]["schema"]["enum"] == ["min", "h", "d", "w", "m", "y", "auto"]
    (address,) = DOCUMENT["paths"]["/api/v1/users/{address}/newest"]["get"]["parameters"]
    assert (address["in"], address["required"]) == ("path", True)


@pytest.mark.parametrize(
    "param",
    [*params.RANGE, params.ASSET_ID, params.ASSET_IDS, params.SYMBOLS, params.WITH_TEXT],
    ids=lambda param: param.name,
)
def test_every_value_that_a_parameter_accepts_matches_its_schema(param: Param) -> None:
    validator = jsonschema_rs.Draft202012Validator(dict(param.schema))
    numbers = {"integer", "boolean"} & {one.get("type") for one in (param.schema, *param.schema.get("anyOf", ()))}  # type: ignore[attr-defined]
    texts = (
        "now",
        "now-7d",
        "2026-01-31",
        "2026-01-31T12:00 05:30",
        "auto",
        "min",
        "ETH,btc",
        "",
        "0",
        "1",
        "-1",
        "200",
        "10000",
        "10001",
        "4294967295",
        "4294967296",
        "true",
        "d",
        "x",
    )
    for text in (*texts, "none", "previous", "native;uorb", "native;", "token;0x1,native;uorb", "UTC"):
        try:
            parsed = param.parse(text)
        except ValueError:
            continue
        value = text
        if numbers:
            value = int(text) if text.lstrip("-").isdecimal() else parsed if isinstance(parsed, bool) else text
        assert validator.is_valid(value), text


@pytest.mark.parametrize("param", [*params.RANGE, params.FORMAT, params.ASSET_IDS, params.MOMENT[-1]])
def test_a_parameter_that_may_be_left_out_says_what_holds_then(param: Param) -> None:
    has_default = param.required or param.default is not None
    assert has_default or re.search("by default|when omitted", param.help)


def test_one_of_two_alternative_parameters_has_an_example_and_neither_is_required() -> None:
    one = Newest()
    one.query = (params.POOL_INDEX, params.POOL_DURATION)
    described: dict[str, Any] = document([("/api/v1/users/{address}/pool", one)])
    _, index, duration = described["paths"]["/api/v1/users/{address}/pool"]["get"]["parameters"]
    assert (index["required"], duration["required"]) == (False, False)
    assert (index["example"], "example" in duration) == (0, False)
    assert "curl 'http://127.0.0.1:8000/api/v1/users/0x1/pool?index=0'" in shown(described)


def test_a_list_has_a_count_and_an_object_has_none() -> None:
    market = {"name": "a", "sum": "1", "cap": None, "rate": "0.5", "extra": {"text": None, "value": None}}
    envelope: dict[str, object] = {"data": [market], "error": None, "status": 200, "status_text": "OK"}
    assert accepts(MARKETS, "200", {**envelope, "count": 1})
    assert not accepts(MARKETS, "200", envelope)
    newest = DOCUMENT["paths"]["/api/v1/users/{address}/newest"]["get"]
    envelope["data"] = {"market": None, "usd": "1.5", "extra": {"text": {"usd": "$1.50"}}}
    assert accepts(newest, "200", envelope)
    assert not accepts(newest, "200", {**envelope, "count": 1})


@pytest.mark.parametrize(
    "change",
    [
        {"sum": 1},
        {"sum": None},
        {"sum": "1.5"},
        {"sum": "-1"},
        {"rate": "5e-1"},
        {"more": 1},
        {"extra": {"text": None}},
        {"extra": {"text": {"sum": "1"}, "value": None}},
    ],
    ids=str,
)
def test_the_schema_rejects_answers_that_are_not_as_declared(change: dict[str, object]) -> None:
    market = {"name": "a", "sum": "1", "cap": None, "rate": "0.5", "extra": {"text": None, "value": None}}
    envelope = {"error": None, "status": 200, "status_text": "OK", "count": 1}
    assert accepts(MARKETS, "200", {**envelope, "data": [market]})
    assert not accepts(MARKETS, "200", {**envelope, "data": [{**market, **change}]})


@pytest.mark.parametrize(
    ("status", "phrase", "kinds"),
    [
        (
            400,
            "Bad Request",
            {
                "path_parameter_invalid": "client",
                "query_parameter_missing": "client",
                "query_parameter_invalid": "client",
                "query_parameter_unknown": "client",
                "request_malformed": "client",
            },
        ),
        (404, "Not Found", {"path_unknown": "client", "entity_not_found": "user"}),
        (405, "Method Not Allowed", {"method_not_allowed": "client"}),
        (406, "Not Acceptable", {"content_type_unsupported": "client"}),
        (414, HTTPStatus(414).phrase, {"uri_too_long": "client"}),
        (431, "Request Header Fields Too Large", {"headers_too_large": "client"}),
        (500, "Internal Server Error", {"internal": "server"}),
        (503, "Service Unavailable", {"unavailable": "server"}),
    ],
)
def test_every_status_in_the_table_of_errors_is_described(status: int, phrase: str, kinds: dict[str, str]) -> None:
    assert set(MARKETS["responses"]) == {"200", "304", "400", "404", "405", "406", "414", "431", "500", "503"}
    for kind, scope in kinds.items():
        error = {"kind": kind, "scope": scope, "message": "why"}
        body = {"data": None, "error": error, "status": status, "status_text": phrase}
        assert accepts(MARKETS, str(status), body)
        assert not accepts(MARKETS, str(status), {**body, "error": {**error, "kind": "other"}})


def resolved(reference: dict[str, str]) -> dict[str, Any]:
    """The target of a reference into the document."""
    found: Any = DOCUMENT
    for step in reference["$ref"].removeprefix("#/").split("/"):
        found = found[step]
    assert isinstance(found, dict)
    return found


def test_every_operation_has_a_304_with_the_headers_of_a_200_and_no_body() -> None:
    for item in DOCUMENT["paths"].values():
        answered = item["get"]["responses"]
        known = resolved(answered["304"])
        assert known["headers"] == answered["200"]["headers"]
        assert "content" not in known
        headers = {name: resolved(one).get("required", False) for name, one in known["headers"].items()}
        always, sometimes = ("ETag", "Cache-Control", "Vary"), ("Last-Modified", "As-Of", "Link")
        assert headers == {**dict.fromkeys(always, True), **dict.fromkeys(sometimes, False)}


def test_every_path_accepts_if_none_match() -> None:
    for item in DOCUMENT["paths"].values():
        (parameter,) = map(resolved, item["parameters"])
        assert (parameter["name"], parameter["in"], parameter["required"]) == ("If-None-Match", "header", False)


class Files(DeclarationOnly):
    """Markets, also as files."""

    shape = Many(MARKET)
    media = ("application/json", "text/csv")


def test_paths_with_files_accept_ranges_and_name_their_files() -> None:
    item: Any = document([("/api/v1/files", Files())])["paths"]["/api/v1/files"]  # type: ignore[index]
    asked = {one["name"]: one["schema"] for one in map(resolved, item["parameters"])}
    assert [*asked] == ["If-None-Match", "Range", "If-Range"]
    for text, is_range in {"bytes=0-9": True, "bytes=5-": True, "bytes=-5": True, "bytes=0-1,4-5": False}.items():
        assert jsonschema_rs.Draft202012Validator(asked["Range"]).is_valid(text) is is_range
    answered = item["get"]["responses"]
    assert "Content-Disposition" in answered["200"]["headers"]
    assert {"Content-Disposition", "Content-Range"} <= {*answered["206"]["headers"]}
    assert "Content-Disposition" not in MARKETS["responses"]["200"]["headers"]


def test_each_schema_is_valid() -> None:
    for schema in DOCUMENT["components"]["schemas"].values():
        jsonschema_rs.meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema})


PUBLISHED: dict[str, Any] = published(DOCUMENT)


def nested_objects(schema: Any) -> list[object]:
    """The objects within a schema that are spelled out in place."""
    inner = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    own = [schema] if isinstance(schema, dict) and isinstance(schema.get("properties"), dict) else []
    return own + [found for one in inner for found in nested_objects(one)]


def test_every_object_of_the_published_document_has_a_name() -> None:
    schemas = PUBLISHED["components"]["schemas"]
    assert {"Market", "MarketExtra", "MarketText", "MarketValue", "MarketValueExtra", "MarketValueText"} <= {*schemas}
    assert {"MarketListResponse", "NewestResponse", "Failure", "Error", "Period"} <= {*schemas}
    elsewhere = {**PUBLISHED, "components": {**PUBLISHED["components"], "schemas": {}}}
    assert nested_objects(elsewhere) == []
    for name, schema in schemas.items():
        assert nested_objects(schema) == ([schema] if "properties" in schema else []), name


@pytest.mark.parametrize(
    "extra", [{"text": None, "value": None}, {"text": None}, {"text": {"sum": "1"}, "value": None}]
)
def test_the_published_document_accepts_what_the_declarations_do(extra: dict[str, object]) -> None:
    market = {"name": "a", "sum": "1", "cap": None, "rate": "0.5", "extra": extra}
    body = {"data": [market], "error": None, "status": 200, "status_text": "OK", "count": 1}
    schema = {"$ref": "#/components/schemas/MarketListResponse", "components": PUBLISHED["components"]}
    assert jsonschema_rs.Draft202012Validator(schema).is_valid(body) is accepts(MARKETS, "200", body)


def test_one_component_describes_all_errors() -> None:
    components = published(GUARDED)["components"]
    schema = {"$ref": "#/components/schemas/Failure", "components": components}
    validator = jsonschema_rs.Draft202012Validator(schema)
    for kind, case in CASES.items():
        error = {"kind": kind, "scope": case.scope, "message": "why"}
        body = {"data": None, "error": error, "status": case.status.value, "status_text": case.status.phrase}
        assert validator.is_valid(body)
        assert not validator.is_valid({**body, "error": {**error, "kind": "other"}})
    responses = {one["$ref"] for one in map(_schema_of, components["responses"].values()) if one}
    assert responses == {"#/components/schemas/Failure"}


def _schema_of(response: dict[str, Any]) -> dict[str, str] | None:
    return response["content"]["application/json"]["schema"] if "content" in response else None


def test_a_field_with_the_words_of_a_parameter_has_its_enumeration() -> None:
    class Bounds(Markets):
        """The bounds of shapes."""

        query = (params.SHAPE,)
        shape = Shape("Bound", "A bound.", (Field("of", word("newer", "older"), "The shape."),))

    schemas: Any = published(document([("/api/v1/bounds", Bounds())]))["components"]["schemas"]
    assert schemas["Bound"]["properties"]["of"] == {
        "description": "The shape.",
        "allOf": [{"$ref": "#/components/schemas/Shape"}],
    }
    assert schemas["Shape"] == {"type": "string", "enum": ["newer", "older"]}


def test_texts_of_the_same_fields_are_one_component() -> None:
    fields = (Field("sum", AMOUNT, "What is there."), Field("rate", RATIO, "What it pays."))

    class Lent(Markets):
        """What is lent."""

        shape = Shape("Lent", "What is lent.", fields)

    class Owed(Markets):
        """What is owed."""

        shape = Shape("Owed", "What is owed.", fields)

    schemas: Any = published(document([("/api/v1/lent", Lent()), ("/api/v1/owed", Owed())]))["components"]["schemas"]
    assert "LentText" not in schemas
    assert "OwedText" not in schemas
    assert [*schemas["SumRateText"]["properties"]] == ["sum", "rate"]
    for name in ("LentExtra", "OwedExtra"):
        text = schemas[name]["properties"]["text"]
        assert text["anyOf"] == [{"$ref": "#/components/schemas/SumRateText"}, {"type": "null"}]


def test_two_different_objects_of_one_name_are_refused() -> None:
    other = Shape("MarketText", "Something else.", (Field("name", STRING, "Its name."),))

    class Other(Markets):
        """Another one."""

        shape = other

    with pytest.raises(ValueError, match="MarketText"):
        published(document([("/api/v1/markets", Markets()), ("/api/v1/other", Other())]))


class Links(HTMLParser):
    """Collects the links, anchors and elements of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.hrefs: list[str] = []
        self.anchors: list[str] = []
        self.elements: set[str] = set()
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        assert not {"src", "onclick", "onload"} & set(given)
        self.elements.add(tag)
        self.hrefs += [given["href"] or ""] if "href" in given else []
        self.anchors += [given["id"] or ""] if "id" in given else []
        if tag not in ("meta", "!doctype"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_well_formed_and_needs_no_other_resources() -> None:
    links = Links(PAGE)
    assert links.open == []
    assert not links.elements & {"script", "link", "img", "iframe", "object"}
    assert "@import" not in PAGE
    assert "url(" not in PAGE
    assert {href for href in links.hrefs if not href.startswith("#")} == {"api/v1/openapi.json"}


def test_every_link_on_the_page_has_a_target() -> None:
    links = Links(PAGE)
    assert len(links.anchors) == len(set(links.anchors))
    assert {href[1:] for href in links.hrefs if href.startswith("#")} <= set(links.anchors)
    assert {"get_markets", "get_users_address_newest", "Market", "Newest", "errors"} <= set(links.anchors)


def test_the_page_prefers_examples_that_exist() -> None:
    known = {"/api/v1/markets": {"asset_id": "native;'<x>'", "start": "2026-01-01"}}
    found = page(DOCUMENT, "https://a.example", lambda path: known.get(path, {}))
    assert "curl 'https://a.example/api/v1/markets?asset_id=native;%27%3Cx%3E%27&amp;start=2026-01-01" in found


def test_the_page_escapes_texts() -> None:
    assert "A market &amp; &lt;its&gt; sums." in PAGE
    assert "Its <code>name</code>." in PAGE


def test_the_page_shows_a_request_with_all_required_parameters() -> None:
    curls = [unescape(shown) for shown in re.findall(r"<pre>(.*?)</pre>", PAGE)]
    assert curls == [
        "curl 'http://127.0.0.1:8000/api/v1/markets?asset_id=native;uorb&start=1764547200&end=1767225599&period=d"
        "&with_text=true'",
        "curl 'http://127.0.0.1:8000/api/v1/users/0x1/newest'",
    ]
