"""Renders the OpenAPI document as a page for people: one HTML file without external resources."""

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any
from urllib.parse import quote, urlencode

from analytics_service.http.answer import reason_phrase
from analytics_service.http.errors import CASES

Schema = Mapping[str, Any]
_MEDIA = "application/json"
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


def render_docs(document: Schema) -> str:
    """The page of an OpenAPI document. Its example requests use the document's examples of parameters."""
    info = document["info"]
    document, objects = _with_objects_only(document)
    schemas = {name: document["components"]["schemas"][name] for name in objects}
    tagged = {tag["name"]: _operations_of(document, tag["name"]) for tag in document["tags"]}
    tables = _tables(document["paths"])
    parts = [
        f"<!doctype html><html lang=en><head><meta charset=utf-8><title>{escape(info['title'])}</title>",
        '<meta name=viewport content="width=device-width, initial-scale=1">',
        f"<style>{_STYLE}</style></head><body>{_navigation(tagged, schemas, tables)}<main>",
        f"<h1>{escape(info['title'])}</h1>{_prose(info['description'])}",
        '<p>For programs, see <a href="api/v1/openapi.json">openapi.json</a>.</p>',
        tables,
    ]
    for tag, operations in tagged.items():
        parts.append(f"<h2>{escape(tag)}</h2>")
        for path, operation in operations:
            example = _BASE + _example(path, operation["parameters"])
            parts.append(_operation(path, operation, schemas, example))
    parts += ["<h2 id=errors>Errors</h2>", _errors(document["components"]["responses"])]
    parts += ["<h2>Objects</h2>", *(_object(name, schema) for name, schema in schemas.items())]
    return "".join([*parts, f"</main><script>{_SCRIPT}</script></body></html>"])


def _with_objects_only(document: Schema) -> tuple[Schema, list[str]]:
    """The document with references resolved, except references to declared objects; and the names of these objects."""
    schemas = document["components"]["schemas"]
    operations = [item["get"] for item in document["paths"].values()]
    bodies = [schemas[_name(operation["responses"]["200"]["content"][_MEDIA]["schema"])] for operation in operations]
    objects = {name for body in bodies for name in _objects(body["properties"]["data"], schemas)}
    others = {name: schema for name, schema in schemas.items() if name not in objects}
    return _resolved(document, others), sorted(objects)


def _objects(value: Any, schemas: Mapping[str, Schema]) -> Iterator[str]:
    """The names of the objects in a schema, without variants."""
    if isinstance(value, Mapping) and "$ref" in value:
        if "enum" not in schemas[_name(value)]:
            yield _name(value)
            yield from _objects(schemas[_name(value)], schemas)
    elif isinstance(value, Mapping):
        yield from _objects([item for key, item in value.items() if key != "extra"], schemas)
    elif isinstance(value, list):
        for item in value:
            yield from _objects(item, schemas)


def _resolved(value: Any, schemas: Mapping[str, Schema]) -> Any:
    """The value, with these schemas in place of references to them."""
    if isinstance(value, list):
        return [_resolved(item, schemas) for item in value]
    if not isinstance(value, Mapping):
        return value
    if "allOf" in value:
        return {**_resolved(value["allOf"][0], schemas), **{key: value[key] for key in value if key != "allOf"}}
    if "$ref" in value and _name(value) in schemas:
        return {**_resolved(schemas[_name(value)], schemas), **{key: value[key] for key in value if key != "$ref"}}
    return {key: _resolved(item, schemas) for key, item in value.items()}


def _name(reference: Schema) -> str:
    return str(reference["$ref"].rpartition("/")[2])


def _operations_of(document: Schema, tag: str) -> list[tuple[str, Schema]]:
    return [(path, item["get"]) for path, item in document["paths"].items() if tag in item["get"]["tags"]]


def _tables(paths: Mapping[str, Schema]) -> str:
    """Examples that load a history into other tools; empty without that history."""
    if _HISTORY not in paths:
        return ""
    operation = paths[_HISTORY]["get"]
    url = _BASE + _example(_HISTORY, operation["parameters"])
    steps = (f"{_prose(text)}<pre>{escape(lines)}</pre>" for text, lines in _tools(url, "security" in operation))
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


def _navigation(tagged: Mapping[str, list[tuple[str, Schema]]], schemas: Iterable[str], tables: str) -> str:
    lists = [_links("tools", [("tables", "Histories as tables")])] if tables else []
    lists += [
        _links(tag, [(operation["operationId"], path.removeprefix("/api/v1")) for path, operation in operations])
        for tag, operations in tagged.items()
    ]
    lists.append(_links("objects", [("errors", "Errors"), *((name, name) for name in schemas)]))
    # An element that scrolls must be reachable by keyboard.
    return f"<nav aria-label=Contents tabindex=0><details><summary>Contents</summary>{''.join(lists)}</details></nav>"


def _links(title: str, entries: Iterable[tuple[str, str]]) -> str:
    items = "".join(f'<li><a href="#{escape(anchor)}">{escape(label)}</a></li>' for anchor, label in entries)
    return f"<h2>{escape(title)}</h2><ul>{items}</ul>"


def _operation(path: str, operation: Schema, schemas: Mapping[str, Schema], example: str) -> str:
    content = operation["responses"]["200"]["content"]
    body = content[_MEDIA]["schema"]
    envelope = body["properties"]
    counted = ", with <code>count</code>" if "count" in envelope else ""
    counted += " if it is a list" if counted and "count" not in body["required"] else ""
    others = [f"<code>{escape(media)}</code>" for media in content if media != _MEDIA]
    also = f"; or {', '.join(others)}" if others else ""
    data = f"<p><code>data</code>: {_type(envelope['data'])}{counted}{also}</p>"
    name = _name(envelope["data"].get("items", envelope["data"]))
    fields = f"<details><summary>Fields of {escape(name)}</summary>{_body(schemas[name])}</details>"
    key = "-H 'Authorization: Bearer KEY' " if "security" in operation else ""
    return (
        f'<section><h3 id="{escape(operation["operationId"])}"><b>GET</b><code>{escape(path)}</code></h3>'
        f"{_prose(operation['summary'])}{_parameters(operation['parameters'])}"
        f"{data}{fields}<pre>curl {key}'{escape(example)}'</pre></section>"
    )


def _parameters(parameters: list[Schema]) -> str:
    rows = []
    for parameter in parameters:
        schema, name = parameter["schema"], f"<code>{escape(parameter['name'])}</code>"
        bounds = f" from {schema['minimum']:,} to {schema['maximum']:,}" if "maximum" in schema else ""
        default = f"<code>{escape(str(schema['default']).lower())}</code>" if "default" in schema else ""
        needed = "required" if parameter["required"] else default
        rows.append((name, _type(schema) + bounds, needed, _inline(parameter["description"])))
    return _table(("parameter", "type", "default", "meaning"), rows) if rows else ""


def _example(path: str, parameters: list[Schema]) -> str:
    """A request with examples of all required parameters, and with texts if the path has them.

    If exactly one of two parameters is required, only one of them has an example in the document.
    """
    needed = [parameter for parameter in parameters if parameter["required"] or "example" in parameter]
    query = {parameter["name"]: parameter["schema"].get("examples", ["..."])[0] for parameter in needed}
    for parameter in parameters:
        name = parameter["name"]
        if parameter["in"] == "path":
            path = path.replace(f"{{{name}}}", quote(str(query.pop(name))))
        elif name == "with_text":
            query["with_text"] = "true"
    return path + (f"?{urlencode(query, safe=';,')}" if query else "")


def _object(name: str, schema: Schema) -> str:
    head = f'<h3 id="{escape(name)}">{escape(name)}</h3>{_prose(schema["description"])}'
    return f"<section>{head}{_body(schema)}</section>"


def _body(schema: Schema) -> str:
    if choices := schema.get("oneOf") or schema.get("anyOf"):
        return f"<p>One of {', '.join(map(_type, choices))}.</p>"
    rows = [
        (f"<code>{escape(name)}</code>", _type(field), _inline(field.get("description", "")))
        for name, field in schema["properties"].items()
        if name != "extra"
    ]
    return _table(("field", "type", "meaning"), rows) + _extra(schema["properties"].get("extra"))


def _extra(schema: Schema | None) -> str:
    """The variants of an object, and the fields in each."""
    if schema is None:
        return ""
    rows = []
    for name, requested in schema["properties"].items():
        variant = requested["anyOf"][0]
        fields = [f"<code>{escape(field)}</code>" for field in variant["properties"] if field != "extra"]
        also = f"; <code>extra.{name}.extra.text</code> has their texts" if "extra" in variant["properties"] else ""
        rows.append((f"<code>extra.{name}</code>", ", ".join(fields) + also or "nothing", f"with_{name}"))
    return _table(("variant", "fields", "with"), rows)


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
    if "$ref" in schema:
        name = escape(_name(schema))
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
