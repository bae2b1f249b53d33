"""Derives the OpenAPI 3.1 document from the declarations of routes, parameters and response objects."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from analytics_service.config.settings import service_version
from analytics_service.http.answer import envelope, reason_phrase
from analytics_service.http.declared_params import Param
from analytics_service.http.errors import CASES, NGINX_KINDS
from analytics_service.http.middleware import is_guarded
from analytics_service.http.resource import Resource
from analytics_service.market.events import Action
from analytics_service.present.assets import ACTION_SCHEMA
from analytics_service.present.json_schema import Components, camel_case, exact_schema, schema_of
from analytics_service.present.shapes import ByShape, Many

Routes = Sequence[tuple[str, Resource]]
Object = dict[str, object]

_ABOUT = """\
Assets and prices, markets, the protocol token, positions and their history of a lending-and-borrowing protocol. \
All operations only read.

Every JSON answer has the same envelope: `data`, `error`, `status` and `status_text`; lists add `count`. Pages of \
history also come as files; their parameter `format` lists the formats.

Exact numbers are strings. Amounts are in whole denom units of their asset, ratios and rates are fractions (0.05 is \
5%), USD values and prices have at most 18 decimals. Times are RFC 3339 in UTC; times in histories are unix seconds.

Objects with an `extra` carry more on request: `with_text` adds texts for people, `with_value` adds USD values, and \
`with_percent` adds fractions of an amount. Texts of values need both `with_value` and `with_text`, texts of fractions \
both `with_percent` and `with_text`. Values of an asset without a price are null.

Every 200 has an `ETag`, a digest of its body. A request with that tag in `If-None-Match` gets a 304 without a body \
while the answer stays the same. `Cache-Control` says how long to cache an answer. `As-Of` has the instant of the \
snapshot of each dataset that the answer uses. `Link` leads to the next page of a history. Bodies are compressed with \
gzip if `Accept-Encoding` allows it.
"""
_ABOUT_KEYS = """
Requests below `/api/v1` need an API key, in a header `Authorization: Bearer KEY`. Without a valid one they get a 401.
"""
_MEDIA = "application/json"
# Always null. Generators have no type for null alone.
_NULL: Object = {"description": "Always null.", "type": ["object", "null"], "const": None}
_TAGS = {
    "analytics": "Risk, borrowers, loans and liquidations of the whole protocol.",
    "assets": "Assets, their prices, and price history.",
    "markets": "Lend and borrow markets, their rules, sums and histories.",
    "ptoken": "The protocol token: its state, staking and unlocks.",
    "swap": "Swap routes.",
    "users": "Positions, history and events of an address.",
    "status": "Age and origin of the data.",
    "operations": "Probes.",
}
_KEY = "ApiKey"


def _header(help: str, *, required: bool = False, **schema: str) -> Object:
    return {"description": help, **({"required": True} if required else {}), "schema": {"type": "string", **schema}}


# Headers for caches and pages, in a 200 and a 304 alike.
_HEADERS: Mapping[str, Object] = {
    "ETag": _header("Identifies the answer in its content coding.", required=True, pattern='^"[^"]+"$'),
    "Cache-Control": _header(
        "How long to cache the answer: until the next snapshot, a day for closed ranges, or no-store.", required=True
    ),
    "Vary": _header("Request headers that the answer depends on.", required=True),
    "Last-Modified": _header("Instant of the newest snapshot or correction in the answer, if it shows snapshots."),
    "As-Of": _header(
        "Instant of the snapshot of each dataset that the answer uses: a dictionary of dates (RFC 9651) such as "
        "`positions=@1764547200, prices=@1764547380`."
    ),
    "Link": _header('Query of the next page, relative to this one, with rel="next" (RFC 8288), if there is one.'),
    "History-Begins": _header(
        "First instant of the series in a page of history, even if before the page: `@1764547200`."
    ),
}
_FILE_HEADERS: Mapping[str, Object] = {"Content-Disposition": _header("The name of a file.")}
# Headers of requests.
_REQUEST_HEADERS: Mapping[str, Object] = {
    "If-None-Match": _header("ETags of answers that the client has, separated by commas, or *."),
}
_EXTRA_HEADERS: Mapping[HTTPStatus, Object] = {
    HTTPStatus.SERVICE_UNAVAILABLE: {"Retry-After": _header("Seconds.", type="integer")},
    HTTPStatus.METHOD_NOT_ALLOWED: {"Allow": _header("Methods.")},
    HTTPStatus.UNAUTHORIZED: {"WWW-Authenticate": _header("Bearer.")},
}


def openapi_document(routes: Routes, *, asks_for_keys: bool = False) -> Object:
    """The document of all routes whose resource has a shape. It describes API keys if requests need them."""
    described = [(path, resource) for path, resource in routes if resource.shape is not None]
    tags = sorted(dict.fromkeys(_tag(path) for path, _ in described), key=("operations", "status").__contains__)
    components = Components(resource.shape for _, resource in described if resource.shape is not None)
    # Parameters and events share this component.
    components.add(Action.__name__, ACTION_SCHEMA)
    paths = {
        path: _item(path, resource, components, needs_key=asks_for_keys and is_guarded(path))
        for path, resource in described
    }
    _distinguish_words(components)
    unchanged = HTTPStatus.NOT_MODIFIED
    responses = {
        _name(unchanged): {"description": unchanged.phrase, "headers": _headers()},
        **_failures(components, needs_key=asks_for_keys),
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Lending market data",
            "version": service_version(),
            "description": _ABOUT + _ABOUT_KEYS * asks_for_keys,
            "license": {"name": "Apache 2.0", "identifier": "Apache-2.0"},
        },
        # Relative to the document, so that it works below any path of a proxy.
        "servers": [{"url": "../.."}],
        # The default of operations.
        "security": [],
        "tags": [{"name": tag, "description": _TAGS[tag]} for tag in tags],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(components.schemas.items())),
            "headers": {**_HEADERS, **_FILE_HEADERS},
            "parameters": {
                name: {"name": name, "in": "header", "required": False, **header}
                for name, header in _REQUEST_HEADERS.items()
            },
            "responses": responses,
            **({"securitySchemes": {_KEY: {"type": "http", "scheme": "bearer"}}} if asks_for_keys else {}),
        },
    }


def _distinguish_words(components: Components) -> None:
    """Name the words of enumerations that share a word: in Go all of them are constants of one package."""
    listed: dict[str, Any] = {name: schema for name, schema in components.schemas.items() if "enum" in schema}
    uses = Counter(word for schema in listed.values() for word in schema["enum"])
    for name, schema in listed.items():
        if any(uses[word] > 1 for word in schema["enum"]):
            schema["x-enum-varnames"] = [f"{name}_{word}".upper().replace("-", "_") for word in schema["enum"]]


def _item(path: str, resource: Resource, components: Components, *, needs_key: bool) -> Object:
    return {
        "parameters": [_reference("parameters", name) for name in _REQUEST_HEADERS],
        "get": _operation(path, resource, components, needs_key=needs_key),
    }


def _operation(path: str, resource: Resource, components: Components, *, needs_key: bool) -> Object:
    words = path.removeprefix("/api/v1").replace("{", "").replace("}", "").replace("-", "_").split("/")
    parameters = [_parameter(param, "path", components) for param in resource.path]
    parameters += [_parameter(param, "query", components) for param in resource.query]
    statuses = [HTTPStatus.NOT_MODIFIED, *_statuses(needs_key=needs_key)]
    return {
        "operationId": "_".join(["get", *filter(None, words)]),
        "summary": resource.summary,
        "tags": [_tag(path)],
        "parameters": parameters,
        **({"security": [{_KEY: []}]} if needs_key else {}),
        "responses": {
            "200": _success(resource, components),
            **{str(int(status)): _reference("responses", _name(status)) for status in statuses},
        },
    }


def _tag(path: str) -> str:
    """The tag of a path: the segment after the version."""
    return path.removeprefix("/api/v1/").split("/")[0] if path.startswith("/api/v1/") else "operations"


def _parameter(param: Param, location: str, components: Components) -> Object:
    default = {} if param.default is None else {"default": param.default}
    schema = {**param.schema, **default}
    if "enum" in param.schema:
        reference = components.add(str(param.schema.get("title", camel_case(param.name))), dict(param.schema))
        schema = {"allOf": [reference], **default} if default else reference
    examples = param.schema.get("examples")
    # Neither of two alternatives is required. Example requests use the one with an example.
    example = {"example": examples[0]} if param.alternative and isinstance(examples, list) else {}
    return {
        "name": param.name,
        "in": location,
        "required": param.required or location == "path",
        "description": param.help,
        "schema": schema,
        **example,
    }


def _success(resource: Resource, components: Components) -> Object:
    if resource.shape is None:
        raise ValueError(f"{type(resource).__name__} has no shape")
    choices = resource.shape.choices.values() if isinstance(resource.shape, ByShape) else [resource.shape]
    lists = [isinstance(choice, Many) for choice in choices]
    data: Any = schema_of(resource.shape)
    null = components.add("Nothing", _NULL)
    fields = envelope(data, null, {"type": "integer", "const": 200}, {"type": "string", "const": "OK"})
    count = {"count": {"type": "integer", "minimum": 0}} if any(lists) else {}
    schema = {**exact_schema(fields | count), "required": [*fields, *(count if all(lists) else ())]}
    name = data.get("items", data)["$ref"].rpartition("/")[2] + ("List" if "items" in data else "")
    return {
        "description": HTTPStatus.OK.phrase,
        "headers": _headers(_FILE_HEADERS if len(resource.media) > 1 else ()),
        "content": {_MEDIA: {"schema": components.add(f"{name}Response", schema)}} | _files(resource),
    }


def _files(resource: Resource) -> Object:
    """The schemas of bodies that are not JSON."""
    text, binary = {"type": "string"}, {"type": "string", "format": "binary"}
    others = (media for media in resource.media if media != _MEDIA)
    return {media: {"schema": text if media.startswith("text/") else binary} for media in others}


def _headers(further: Iterable[str] = ()) -> Object:
    return {name: _reference("headers", name) for name in (*_HEADERS, *further)}


def _statuses(*, needs_key: bool) -> list[HTTPStatus]:
    """The statuses in the table of errors."""
    return sorted({case.status for case in CASES.values()} - (set() if needs_key else {HTTPStatus.UNAUTHORIZED}))


def _reference(kind: str, name: str) -> Object:
    return {"$ref": f"#/components/{kind}/{name}"}


def _name(status: HTTPStatus) -> str:
    return reason_phrase(status).replace(" ", "")


def _failures(components: Components, *, needs_key: bool) -> Object:
    """A response for each status. One component describes all their bodies, including nginx's."""
    statuses = _statuses(needs_key=needs_key)
    cases = {kind: case for kind, case in CASES.items() if case.status in statuses}
    error = {
        "kind": {"type": "string", "enum": sorted({*cases, *NGINX_KINDS})},
        "scope": {"type": "string", "enum": sorted({case.scope for case in cases.values()})},
        "message": {"type": "string", "description": "What is wrong, and what is allowed."},
    }
    null, error = components.add("Nothing", _NULL), components.add("Error", exact_schema(error))
    body = exact_schema(envelope(null, error, {"type": "integer"}, {"type": "string"}))
    schema = components.add("Failure", body)
    failures: Object = {}
    for status in statuses:
        headers = _EXTRA_HEADERS.get(status)
        failures[_name(status)] = {
            "description": reason_phrase(status),
            **({"headers": headers} if headers else {}),
            "content": {_MEDIA: {"schema": schema}},
        }
    return failures
