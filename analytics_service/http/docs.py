"""Renders the declarations of routes as a page for people: one HTML file without external resources."""

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any
from urllib.parse import quote, urlencode

import falcon

from analytics_service.http.answer import reason_phrase
from analytics_service.http.declared_params import Param
from analytics_service.http.errors import CASES
from analytics_service.http.resource import Resource
from analytics_service.present.assets import ACTION_SCHEMA
from analytics_service.present.json_schema import describe_field, objects_of, property_schema, schema_of
from analytics_service.present.shapes import Alternatives, ByShape, Many, Shape

Schema = Mapping[str, Any]
# The history in the examples for other tools.
_HISTORY = "/api/v1/assets/price-history"
# Else Polars guesses the type from the first rows, which may have no values, or only whole numbers.
_FLOATS = 'schema_overrides={"v": pl.Float64}'
_TABLES = (
    "Every history also comes as files, in the formats that `format` names. Most programs read CSV as binary floats by "
    "default; in Arrow and Parquet values stay exact."
)
# Placeholder for the service's URL in examples. The page is the same for all browsers, and only they know the URL.
_BASE = "http://HOST"
_SCRIPT = f"""
for (const lines of document.querySelectorAll("pre"))
  lines.textContent = lines.textContent.replaceAll("{_BASE}", new URL(".", location).href.slice(0, -1));
"""
POLICY = "; ".join(
    (
        "default-src 'none'",
        f"script-src 'sha256-{b64encode(sha256(_SCRIPT.encode()).digest()).decode()}'",
        "style-src 'unsafe-inline'",
        "frame-ancestors 'none'",
    )
)
"""The Content-Security-Policy of the page. It allows only the page's own script."""
_STYLE = files("analytics_service").joinpath("http/docs.css").read_text("utf-8")


def render_docs(document: Schema, routes: Iterable[tuple[str, Resource]]) -> str:
    """The page of an OpenAPI document and of the routes that it describes."""
    info, resources = document["info"], {path: resource for path, resource in routes if resource.shape is not None}
    objects = {node.name: node for node in objects_of(resource.shape for resource in resources.values())}
    tagged = {tag["name"]: _operations_of(document, tag["name"]) for tag in document["tags"]}
    asks_for_keys = "securitySchemes" in document["components"]
    tables = _tables(resources[_HISTORY], asks_for_keys) if _HISTORY in resources else ""
    parts = [
        f"<!doctype html><html lang=en><head><meta charset=utf-8><title>{escape(info['title'])}</title>",
        '<meta name=viewport content="width=device-width, initial-scale=1">',
        f"<style>{_STYLE}</style></head><body>{_navigation(tagged, sorted(objects), tables)}<main>",
        f"<h1>{escape(info['title'])}</h1>{_prose(info['description'])}",
        '<p>For programs, see <a href="api/v1/openapi.json">openapi.json</a>.</p>',
        tables,
    ]
    for tag, operations in tagged.items():
        parts.append(f"<h2>{escape(tag)}</h2>")
        parts += [_operation(path, operation, resources[path]) for path, operation in operations]
    parts += ["<h2 id=errors>Errors</h2>", _errors(document["components"]["responses"])]
    parts += ["<h2>Objects</h2>", *(_object(objects[name]) for name in sorted(objects))]
    return "".join([*parts, f"</main><script>{_SCRIPT}</script></body></html>"])


def _operations_of(document: Schema, tag: str) -> list[tuple[str, Schema]]:
    return [(path, item["get"]) for path, item in document["paths"].items() if tag in item["get"]["tags"]]


def _tables(history: Resource, asks_for_keys: bool) -> str:
    """Examples that load a history into other tools."""
    url = _BASE + _example(_HISTORY, history)
    steps = (f"{_prose(text)}<pre>{escape(lines)}</pre>" for text, lines in _tools(url, asks_for_keys))
    return f"<section><h2 id=tables>Histories as tables</h2>{_prose(_TABLES)}{''.join(steps)}</section>"


def _tools(url: str, asks_for_keys: bool) -> list[tuple[str, str]]:
    options = ', storage_options={"Authorization": "Bearer KEY"}' if asks_for_keys else ""
    headers = ', headers={"Authorization": "Bearer KEY"}' if asks_for_keys else ""
    return [
        (
            "In Polars (behind nginx, which serves byte ranges, `pl.read_csv` also reads the address directly):",
            "import polars as pl\nfrom urllib.request import Request, urlopen\n"
            f'page = urlopen(Request("{url}&format=csv"{headers}))\nprices = pl.read_csv(page.read(), {_FLOATS})',
        ),
        (
            "In pandas, with `pyarrow`:",
            f'import pandas as pd\nprices = pd.read_parquet("{url}&format=parquet"{options})',
        ),
        (
            "In Grafana with the Infinity data source, type CSV: `time` is a Timestamp, `symbol` a String, and `v` a "
            'Number. The transformation "Prepare time series" then draws a line for each symbol:',
            f"{_BASE}{_HISTORY}?start=${{__from:date:seconds}}&end=${{__to:date:seconds}}&tz=$__timezone&period=auto"
            "&format=csv",
        ),
        (
            "In Google Sheets, if the internet reaches the service. Excel (Data, From Web) and LibreOffice (Sheet, "
            "External Links) need only the address:",
            f'=IMPORTDATA("{url}&digits=6&format=csv")',
        ),
    ]


def _navigation(tagged: Mapping[str, list[tuple[str, Schema]]], objects: Iterable[str], tables: str) -> str:
    lists = [_links("tools", [("tables", "Histories as tables")])] if tables else []
    lists += [
        _links(tag, [(operation["operationId"], path.removeprefix("/api/v1")) for path, operation in operations])
        for tag, operations in tagged.items()
    ]
    lists.append(_links("objects", [("errors", "Errors"), *((name, name) for name in objects)]))
    # An element that scrolls must be reachable by keyboard.
    return f"<nav aria-label=Contents tabindex=0><details><summary>Contents</summary>{''.join(lists)}</details></nav>"


def _links(title: str, entries: Iterable[tuple[str, str]]) -> str:
    items = "".join(f'<li><a href="#{escape(anchor)}">{escape(label)}</a></li>' for anchor, label in entries)
    return f"<h2>{escape(title)}</h2><ul>{items}</ul>"


def _operation(path: str, operation: Schema, resource: Resource) -> str:
    shape: Any = resource.shape
    choices = shape.choices.values() if isinstance(shape, ByShape) else [shape]
    lists = [isinstance(choice, Many) for choice in choices]
    shown: Any = shape.of if isinstance(shape, Many) else shape
    counted = ", with <code>count</code>" if any(lists) else ""
    counted += " if it is a list" if counted and not all(lists) else ""
    others = [f"<code>{escape(media)}</code>" for media in resource.media if media != falcon.MEDIA_JSON]
    also = f"; or {', '.join(others)}" if others else ""
    data = f"<p><code>data</code>: {_type(schema_of(shape))}{counted}{also}</p>"
    fields = f"<details><summary>Fields of {escape(shown.name)}</summary>{_body(shown)}</details>"
    key = "-H 'Authorization: Bearer KEY' " if "security" in operation else ""
    return (
        f'<section><h3 id="{escape(operation["operationId"])}"><b>GET</b><code>{escape(path)}</code></h3>'
        f"{_prose(resource.summary)}{_parameters(resource)}"
        f"{data}{fields}<pre>curl {key}'{escape(_BASE + _example(path, resource))}'</pre></section>"
    )


def _parameters(resource: Resource) -> str:
    rows = []
    for param in (*resource.path, *resource.query):
        schema: Any = param.schema
        bounds = f" from {schema['minimum']:,} to {schema['maximum']:,}" if "maximum" in schema else ""
        default = "" if param.default is None else f"<code>{escape(str(param.default).lower())}</code>"
        needed = "required" if param.required or param in resource.path else default
        name = f"<code>{escape(param.name)}</code>"
        rows.append((name, _type(schema) + bounds, needed, _inline(param.help)))
    return _table(("parameter", "type", "default", "meaning"), rows) if rows else ""


def _example(path: str, resource: Resource) -> str:
    """A request with examples of all required parameters, and with texts if the path has them.

    If exactly one of two parameters is required, only one of them names the other.
    """
    for param in resource.path:
        path = path.replace(f"{{{param.name}}}", quote(_example_of(param)))
    query = {param.name: _example_of(param) for param in resource.query if param.required or param.alternative}
    if any(param.name == "with_text" for param in resource.query):
        query["with_text"] = "true"
    return path + (f"?{urlencode(query, safe=';,')}" if query else "")


def _example_of(param: Param) -> str:
    examples: Any = param.schema.get("examples", ["..."])
    return str(examples[0])


def _object(node: Shape | Alternatives) -> str:
    name = escape(node.name)
    return f'<section><h3 id="{name}">{name}</h3>{_prose(node.help)}{_body(node)}</section>'


def _body(node: Shape | Alternatives) -> str:
    if isinstance(node, Alternatives):
        return f"<p>One of {', '.join(_type(schema_of(choice)) for choice in node.choices.values())}.</p>"
    rows = [
        (f"<code>{escape(field.name)}</code>", _type(property_schema(field)), _inline(describe_field(field)))
        for field in node.fields
    ]
    return _table(("field", "type", "meaning"), rows) + _variants(node)


def _variants(shape: Shape) -> str:
    """The variants of an object, and the fields in each."""
    rows = []
    for name, fields in shape.variants.items():
        names = [*(field.name for field in fields), *(["price"] if name == "value" else [])]
        shown = ", ".join(f"<code>{escape(field)}</code>" for field in names) or "nothing"
        also = "" if name == "text" else f"; <code>extra.{name}.extra.text</code> has their texts"
        rows.append((f"<code>extra.{name}</code>", shown + also, f"with_{name}"))
    return _table(("variant", "fields", "with"), rows) if rows else ""


def _errors(responses: Mapping[str, Schema]) -> str:
    rows = []
    for status in sorted({case.status for case in CASES.values()}):
        cases = {kind: case for kind, case in CASES.items() if case.status is status}
        if reason_phrase(status).replace(" ", "") in responses:
            kinds = ", ".join(f"<code>{escape(kind)}</code>" for kind in cases)
            scopes = ", ".join(sorted({escape(case.scope) for case in cases.values()}))
            rows.append((f"{status.value} {escape(reason_phrase(status))}", kinds, scopes))
    return _table(("status", "error.kind", "error.scope"), rows)


def _type(schema: Schema) -> str:
    if "allOf" in schema:
        # The only component that declarations refer to.
        return _type(ACTION_SCHEMA)
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    if "const" in schema:
        return f"<code>{escape(str(schema['const']))}</code>"
    if "anyOf" in schema:
        return " or ".join(map(_type, schema["anyOf"]))
    if "enum" in schema:
        return " | ".join(f"<code>{escape(str(choice))}</code>" for choice in schema["enum"])
    if schema["type"] == "array":
        return f"array of {_type(schema['items'])}"
    names = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    return " or ".join([escape(schema.get("title", names[0])), *names[1:]])


def _table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<div class=wide><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def _prose(text: str) -> str:
    return "".join(f"<p>{_inline(part)}</p>" for part in text.strip().split("\n\n"))


def _inline(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
