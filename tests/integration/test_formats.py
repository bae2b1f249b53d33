"""Formats of history pages over a real ClickHouse: each has what the JSON of the page has. How one is chosen."""

import csv
import io
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

import falcon.testing
import polars as pl
import pytest

from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.history.formats import FORMATS
from analytics_service.sources.simulated.universe import ASSETS
from tests.integration.routes import HISTORY, LOANS, NOON, PRICES, Client, at, client_of, expect_error
from tests.integration.test_rates import imported

CSV, ARROW, PARQUET = "text/csv", "application/vnd.apache.arrow.stream", "application/vnd.apache.parquet"
MEDIA = {"csv": CSV, "arrow": ARROW, "parquet": PARQUET}
CONTENT_TYPES = {"csv": "text/csv; charset=utf-8", "arrow": ARROW, "parquet": PARQUET}
SUFFIXES = {"csv": "csv", "arrow": "arrows", "parquet": "parquet"}
JSON = "application/json"
SYMBOLS = {asset.id: asset.symbol for asset in ASSETS}
Row = tuple[Any, ...]
Result = falcon.testing.Result


def decimal(text: str | None) -> Decimal | None:
    return Decimal(text) if text else None


def rows_of_json(answer: Result) -> list[Row]:
    """The points of a page of JSON as rows: t, id, symbol and value."""
    data = answer.json["data"]
    if "points" in data:
        return [(point["t"], None, None, decimal(point["v"])) for point in data["points"]]
    assert all(series["symbol"] == SYMBOLS[series["asset"]["id"]] for series in data["series"])
    return [
        (point["t"], series["asset"]["id"], series["symbol"], decimal(point["v"]))
        for series in data["series"]
        for point in series["points"]
    ]


def rows_of_columns(answer: Result) -> list[Row]:
    data = answer.json["data"]
    return [
        (t, series.get("asset"), series.get("symbol"), decimal(value))
        for series in data["series"]
        for t, value in zip(data["t"], series["v"], strict=True)
    ]


def rows_of_csv(answer: Result) -> list[Row]:
    header, *rows = csv.reader(io.StringIO(answer.text, newline=""))
    assert header == ["t", "time", "asset_id", "symbol", "v"]
    assert all(datetime.fromisoformat(time).timestamp() == int(t) for t, time, *_ in rows)
    return [(int(t), asset_id or None, symbol or None, decimal(v)) for t, _, asset_id, symbol, v in rows]


def rows_of_frame(frame: pl.DataFrame) -> list[Row]:
    assert frame.schema["v"] == pl.Decimal(38, 18)
    return [(int(t.timestamp()), *rest) for t, *rest in frame.rows()]


READERS: dict[str, Callable[[Result], list[Row]]] = {
    "columns": rows_of_columns,
    "csv": rows_of_csv,
    "arrow": lambda answer: rows_of_frame(pl.read_ipc_stream(answer.content)),
    "parquet": lambda answer: rows_of_frame(pl.read_parquet(io.BytesIO(answer.content))),
}


def get(client: Client, path: str = PRICES, query: str = HISTORY, **headers: str) -> Result:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.simulate_get(path, query_string=query, headers=named)


def range_query(**changes: object) -> str:
    return urlencode({"start": NOON - 40 * 86_400, "end": NOON, "period": "d", **changes})


QUERIES: dict[str, str] = {
    "hours": HISTORY,
    "days of a zone": range_query(tz="America/St_Johns", fill="none"),
    "a page in the middle": f"{HISTORY}&offset=18&limit=5",
    "beyond the end": f"{HISTORY}&offset=1000",
}


@pytest.mark.parametrize(
    ("path", "query"),
    [*((PRICES, query) for query in QUERIES), (LOANS, "hours"), (LOANS, "a page in the middle")],
)
def test_every_format_has_the_points_of_the_json(protocol: Client, path: str, query: str) -> None:
    expected = get(protocol, path, QUERIES[query])
    assert expected.status_code == 200
    for name, rows in READERS.items():
        answer = get(protocol, path, f"{QUERIES[query]}&format={name}")
        assert answer.status_code == 200, answer.text
        assert rows(answer) == rows_of_json(expected)
        assert answer.headers["as-of"] == expected.headers["as-of"]
    assert get(protocol, path, f"{QUERIES[query]}&format=json").content == expected.content


@pytest.mark.parametrize("name", MEDIA)
def test_a_file_has_the_whole_range_unless_a_page_of_it_is_asked_for(protocol: Client, name: str) -> None:
    query = f"start={NOON - 299 * 3600}&end={NOON}&period=h&asset_ids=native;uorb"
    whole = get(protocol, query=f"{query}&limit=300")
    assert len(rows_of_json(get(protocol, query=query))) == 200
    answer = get(protocol, query=f"{query}&format={name}")
    assert READERS[name](answer) == rows_of_json(whole)
    assert "link" not in answer.headers
    page = get(protocol, query=f"{query}&format={name}&limit=10&offset=295")
    assert READERS[name](page) == rows_of_json(whole)[295:]
    assert "&limit=10&" in get(protocol, query=f"{query}&format={name}&limit=10").headers["link"]


@pytest.mark.parametrize("name", MEDIA)
def test_accept_asks_for_the_same_as_the_parameter(protocol: Client, name: str) -> None:
    for path, stem in ((PRICES, "assets-price-history"), (LOANS, "analytics-market-history-loans-originated")):
        by_name = get(protocol, path, f"{HISTORY}&format={name}")
        by_type = get(protocol, path, Accept=MEDIA[name])
        assert by_type.content == by_name.content
        assert dict(by_type.headers) == dict(by_name.headers)
        assert by_type.headers["content-type"] == CONTENT_TYPES[name]
        assert by_type.headers["vary"] == "Accept, Accept-Encoding"
        file = f"{stem}-{NOON - 86_400}-{NOON}.{SUFFIXES[name]}"
        assert by_type.headers["content-disposition"] == f'attachment; filename="{file}"'


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("*/*", JSON),
        ("text/*", CSV),
        ("application/*", JSON),
        ("TEXT/CSV;q=0.5, application/json;q=0.4", CSV),
        ("application/json;q=0, */*", CSV),
        (f"{ARROW}, text/csv;q=0.9", ARROW),
        (f"{PARQUET};q=0.2, text/csv;q=0", PARQUET),
        ("", JSON),
    ],
)
def test_the_preferred_type_is_answered(protocol: Client, accept: str, expected: str) -> None:
    answer = get(protocol, Accept=accept)
    assert answer.status_code == 200
    assert answer.headers["content-type"].partition(";")[0] == expected


def test_the_parameter_wins_over_accept(protocol: Client) -> None:
    for accept, name, expected in ((CSV, "columns", JSON), ("text/html", "csv", CSV)):
        answer = get(protocol, query=f"format={name}&{HISTORY}", Accept=accept)
        assert answer.headers["content-type"].partition(";")[0] == expected
        assert answer.content == get(protocol, query=f"{HISTORY}&format={name}").content


def test_a_caller_that_rules_out_every_format_is_refused(protocol: Client) -> None:
    message = expect_error(get(protocol, Accept="text/html"), 406, "content_type_unsupported", "client")
    assert all(media in message for media in (JSON, *MEDIA.values()))


def test_every_format_of_files_is_tested_here() -> None:
    assert {name: table.media for name, table in FORMATS.items() if table.suffix} == MEDIA
    assert MEDIA.keys() == CONTENT_TYPES.keys() == SUFFIXES.keys()
    assert {"json", *READERS} == FORMATS.keys()


def test_an_unknown_format_is_refused(protocol: Client) -> None:
    for name, accept in (("", "*/*"), ("CSV", "*/*"), ("xml", "text/html")):
        answer = get(protocol, query=f"{HISTORY}&format={name}", Accept=accept)
        message = expect_error(answer, 400, "query_parameter_invalid", "client")
        assert "json, columns, csv, arrow, parquet" in message


def test_errors_are_json_in_every_format(protocol: Client) -> None:
    for name, media in MEDIA.items():
        for query in (f"{HISTORY}&limit=0&format={name}", f"{HISTORY}&limit=0"):
            expect_error(get(protocol, query=query, Accept=media), 400, "query_parameter_invalid", "client")
        missing = get(protocol, query=f"{HISTORY}&asset_ids=native;nothing&format={name}")
        expect_error(missing, 404, "entity_not_found", "user")
        assert "content-disposition" not in missing.headers


def test_assets_without_prices_have_the_symbols_of_their_definitions(
    settings: Settings, store: Store, tmp_path: Any
) -> None:
    """Definitions are shown with prices; a store of imported rates has none."""
    imported(store, tmp_path, f"{NOON},0xa,0.1")
    answer = get(
        client_of(settings, store), "/api/v1/markets/lend/rate-history", f"{HISTORY}&format=csv&limit=1&offset=24"
    )
    assert answer.text.splitlines()[1:] == [f"{NOON},{at(NOON).isoformat()},token;0xa,AAA,0.1"]
