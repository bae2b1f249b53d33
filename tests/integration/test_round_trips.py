"""Every file that the service writes can be imported into another store, which then answers the same."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from analytics_service.admin.export import export, find_view
from analytics_service.clickhouse.connection import Store
from analytics_service.importing.column_mapping import ColumnChoice
from analytics_service.importing.events import EventRequest, load_events
from analytics_service.importing.history import load_history
from analytics_service.importing.publication import publish
from analytics_service.importing.rows import HistoryRequest
from analytics_service.market.kinds import FOREVER
from analytics_service.store.datasets.assets import read_assets
from analytics_service.store.datasets.histories import HISTORIES, History
from analytics_service.store.ledger import new_version
from tests.integration.conftest import Simulated
from tests.integration.databases import database
from tests.integration.imports import Progress
from tests.integration.routes import NOON, Client, client_of
from tests.stored import write_assets

SUFFIXES = {"csv": "csv", "arrow": "arrows", "parquet": "parquet"}
PAGE = f"start={NOON - 2 * 3600}&end={NOON + 3599}&period=h&limit=3"
# A history of each kind: of values of assets, and of sums of assets and in total.
KINDS = [history for history in HISTORIES if history.name in ("price", "loans_originated")]
_SUFFIXES = ("csv", "parquet", "arrow")
LATER = datetime.fromtimestamp(NOON + 3600, UTC)


def page(client: Client, path: str, name: str, query: str = PAGE) -> bytes:
    answer = client.simulate_get(f"/api/v1{path}", query_string=f"{query}&format={name}")
    assert answer.status_code == 200, answer.text
    return bytes(answer.content)


def bring_out(store: Store, view: str, path: Path) -> None:
    """Export a view in the format of the file's suffix."""
    export(store, find_view(store, view), path, (0, FOREVER), Progress())


def bring(store: Store, history: History, *files: Path) -> None:
    request = HistoryRequest(history, files, new_assets=True)
    publish(store, load_history(store, request, LATER, Progress()), Progress())


@pytest.mark.parametrize(
    ("name", "histories"),
    [
        pytest.param("csv", KINDS, id="csv"),
        *(pytest.param(name, HISTORIES, id=f"all as {name}", marks=pytest.mark.slow) for name in SUFFIXES),
    ],
)
def test_a_page_of_any_history_answers_the_same_elsewhere(
    protocol: Client, simulated: Simulated, tmp_path: Path, name: str, histories: Sequence[History]
) -> None:
    """Of several histories at once: values of one must not disturb another."""
    paths = [(history, path.path) for history in histories for path in history.paths]
    with database(replace(simulated.settings, clickhouse_database=f"test_trip_{name}")) as store:
        for number, (history, path) in enumerate(paths):
            file = tmp_path / f"{number}.{SUFFIXES[name]}"
            file.write_bytes(page(protocol, path, name))
            bring(store, history, file)
        other = client_of(replace(simulated.settings, clickhouse_database=f"test_trip_{name}"), store)
        for _, path in paths:
            assert page(other, path, "json") == page(protocol, path, "json"), path


@pytest.mark.parametrize("histories", [KINDS, pytest.param(HISTORIES, marks=pytest.mark.slow)], ids=["kinds", "all"])
def test_an_export_of_any_history_has_the_same_rows_elsewhere(
    simulated: Simulated, tmp_path: Path, histories: Sequence[History]
) -> None:
    """Of assets and totals. Files are read as they are, one for each history, and one for all totals; what is read does
    not depend on the format, so the rows of one are written."""
    for view in (*(history.name for history in histories), "totals"):
        for suffix in _SUFFIXES if view == "totals" else _SUFFIXES[:1]:
            bring_out(simulated.store, view, tmp_path / f"{view}.{suffix}")
    settings = replace(simulated.settings, clickhouse_database="test_export_trip")
    with database(settings) as store:
        both = [(history, history.name) for history in histories]
        both += [(history, "totals") for history in histories if history.by_asset and history.total]
        for history, view in both:
            paths = sorted(tmp_path.glob(f"{view}.*"))
            requests = [HistoryRequest(history, [path], new_assets=True) for path in paths]
            read = [load_history(None, request, LATER, Progress()) for request in requests]
            assert len({tuple(content.rows.iter_rows()) for content in read}) == 1, history
            bring(store, history, tmp_path / f"{view}.{_SUFFIXES[0]}")
            where = f"WHERE history = '{history.name}'" if view == "totals" else ""
            query = f"SELECT * FROM {view} {where} ORDER BY ALL"
            expected = simulated.rows(query)
            assert expected, history
            assert Simulated(settings, store).rows(query) == expected


def test_an_export_of_events_has_the_same_rows_elsewhere(simulated: Simulated, tmp_path: Path) -> None:
    """Read as it is, in each format: ids, exact amounts, prices and values, contracts and destinations."""
    paths = [tmp_path / f"events.{suffix}" for suffix in _SUFFIXES]
    for path in paths:
        bring_out(simulated.store, "events", path)
    settings = replace(simulated.settings, clickhouse_database="test_events_trip")
    with database(settings, views=True) as store:
        write_assets(store, read_assets(simulated.store).values(), new_version(store))
        requests = [EventRequest([path]) for path in paths]
        read = [load_events(store, request, LATER, Progress()) for request in requests]
        assert all(content.events == read[0].events for content in read)
        read[0].write(store)
        query = "SELECT * FROM events ORDER BY ALL"
        expected = simulated.rows(query)
        assert {row["action"] for row in expected} >= {"borrow", "liquidate", "send", "borrow_flash_loan"}
        assert Simulated(settings, store).rows(query) == expected


def test_days_of_a_zone_answer_the_same_elsewhere(protocol: Client, simulated: Simulated, tmp_path: Path) -> None:
    midnight = NOON + 12 * 3600 + 3600 * 7 // 2
    query = f"start={NOON - 5 * 86400}&end={midnight - 1}&period=d&tz=America/St_Johns&limit=100"
    (tmp_path / "days.csv").write_bytes(page(protocol, "/assets/price-history", "csv", query))
    settings = replace(simulated.settings, clickhouse_database="test_trip_days")
    with database(settings) as store:
        bring(store, HISTORIES[0], tmp_path / "days.csv")
        expected = page(protocol, "/assets/price-history", "csv", query)
        assert page(client_of(settings, store), "/assets/price-history", "csv", query) == expected


def test_candles_are_the_same_elsewhere(protocol: Client, simulated: Simulated, tmp_path: Path) -> None:
    """Of each format. A candle comes back as four observations; hours without any are left out."""
    query = f"start={NOON - 30 * 3600}&end={NOON}&period=h&limit=30&agg=ohlc"
    request = HistoryRequest(HISTORIES[0], [], new_assets=True, choice=ColumnChoice(candles=True))
    read = []
    for name, suffix in SUFFIXES.items():
        file = tmp_path / f"{name}.{suffix}"
        file.write_bytes(page(protocol, "/assets/price-history", name, query))
        content = load_history(None, replace(request, files=[file]), LATER, Progress())
        read.append(list(content.rows.iter_rows()))
    assert all(rows == read[0] for rows in read)
    candles = pl.read_csv(tmp_path / "csv.csv", infer_schema=False).filter(pl.col("n") != "0")
    assert len(read[0]) == 4 * candles.height > 0
    settings = replace(simulated.settings, clickhouse_database="test_trip_candles")
    with database(settings) as store:
        publish(store, content, Progress())
        days = f"start={NOON - 86_400}&end={NOON}&period=h&interval=12&limit=2&agg=ohlc"
        pages = [
            pl.read_csv(page(client, "/assets/price-history", "csv", days)).drop("n", "symbol")
            for client in (protocol, client_of(settings, store))
        ]
        assert pages[0].equals(pages[1])


def test_values_alone_are_no_snapshot_of_markets(protocol: Client, simulated: Simulated, tmp_path: Path) -> None:
    """The histories are there; the present state, and that of any moment, is not."""
    settings = replace(simulated.settings, clickhouse_database="test_trip_values")
    (tmp_path / "tvl.csv").write_bytes(page(protocol, "/markets/history/tvl", "csv"))
    with database(settings) as store:
        bring(store, next(history for history in HISTORIES if history.name == "tvl"), tmp_path / "tvl.csv")
        client = client_of(settings, store)
        assert client.simulate_get("/api/v1/markets").status_code == 503
        assert client.simulate_get("/api/v1/markets", query_string=f"at={NOON}").status_code == 404
        answer = client.simulate_get("/api/v1/markets/history/tvl", query_string=PAGE)
        assert answer.headers["as-of"] == f"markets=@{NOON + 3599}"
        health = client.simulate_get("/api/v1/status/health").json["data"]
        assert [(status["newest"], status["fresh"]) for status in health["snapshots"]] == [(None, True)]
        assert health["healthy"]
