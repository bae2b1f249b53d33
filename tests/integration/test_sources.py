"""A store knows where its data is from, and simulated data is never mixed with any other (rule 8.7)."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import falcon.testing
import pytest
from clickhouse_connect.driver.client import Client

from analytics_service.app import create_app
from analytics_service.cli.context import require_source
from analytics_service.cli.report import collect_report
from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.errors import SettingError, SourceMismatch
from analytics_service.importing.history import load_history
from analytics_service.sources.base import Source
from analytics_service.sources.registry import choose_source
from analytics_service.sources.simulated.source import SimulatedSource
from analytics_service.store.datasets.histories import PRICES as PRICE_FILES
from analytics_service.store.ledger import IMPORTED, Origin, read_ledger
from analytics_service.store.ownership import require_admitted
from jobs.registry import JOBS
from jobs.runner import backfill, take_snapshot
from tests import clickhouse
from tests.doubles import LOCAL, FreshHeads, Statement, WatchedStore
from tests.integration.handmade import RealSource
from tests.integration.imports import Progress, asked, assets_file, prices_file, run

NOON = datetime(2025, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
PRICES = JOBS["prices"]
# 2025-02-26 00:00:00 UTC.
ROWS = [("token;0xa", 1_740_528_000, "1.5")]
# Writes into a store; some need a folder for files.
Write = Callable[[Store, Path], object]


FIRST, SEVENTH, REAL = SimulatedSource("1"), SimulatedSource("7"), RealSource("1")


@pytest.fixture
def client(settings: Settings, store: Store) -> Iterator[Client]:
    """Access to the tables that is independent of the service's own code."""
    with clickhouse.client(settings) as own:
        yield own


def imports(store: Store, folder: Path) -> object:
    return run(store, prices_file(folder, ROWS))


def takes(source: Source, at: datetime = NOON) -> Write:
    return lambda store, _: take_snapshot(PRICES, source, store, at)


def fills(source: Source) -> Write:
    """A backfill of a day before all imports and other snapshots."""
    return lambda store, _: backfill(PRICES, source, store, [NOON - 240 * HOUR, NOON - 239 * HOUR])


MIXTURES: dict[str, tuple[Write, Write, str]] = {
    "a simulated snapshot after an import": (imports, takes(FIRST), "imported history"),
    "an import after a simulated backfill": (fills(FIRST), imports, "simulated:1"),
    "a snapshot of another seed": (takes(FIRST), takes(SEVENTH, NOON + HOUR), "simulated:1"),
    "a simulated backfill after a real snapshot": (takes(REAL), fills(FIRST), "chain:1"),
}


@pytest.mark.parametrize(("first", "second", "held"), MIXTURES.values(), ids=MIXTURES)
def test_a_mixture_is_refused_before_anything_is_written(
    first: Write, second: Write, held: str, store: Store, client: Client, tmp_path: Path
) -> None:
    first(store, tmp_path)
    before = clickhouse.contents(client)
    with pytest.raises(SourceMismatch, match=f"^This store holds {held}, .* Nothing was written.*--data-dir"):
        second(store, tmp_path)
    assert clickhouse.contents(client) == before


@pytest.mark.parametrize(("words", "source"), [("", ""), ("made up again by ", "simulated:7")])
def test_a_store_of_an_earlier_simulation_is_refused_in_one_line(words: str, source: str, store: Store) -> None:
    store.run("insert_owner", name=f"{words}simulated:7", source=source, after=0, token="")
    for spec in (None, "simulated:7"):
        refused = pytest.raises(
            SourceMismatch, match=r"^This store holds simulated:7 of an earlier version, .*--data-dir"
        )
        with refused as caught:
            choose_source(store, Settings(source=spec))
        assert "\n" not in str(caught.value)


def test_a_trial_import_is_refused_like_an_import(store: Store, tmp_path: Path) -> None:
    takes(FIRST)(store, tmp_path)
    request = asked(PRICE_FILES, prices_file(tmp_path, ROWS), assets=assets_file(tmp_path))
    with pytest.raises(SourceMismatch, match="This store holds simulated:1"):
        load_history(store, request, NOON, Progress())


class Moved(RealSource):
    """The same protocol at another address."""

    @property
    def spec(self) -> str:
        return "chain:2"


MOVED = Moved("1")


def test_another_source_is_refused_until_it_replaces_the_stores_own(
    store: Store, client: Client, tmp_path: Path
) -> None:
    """A scheduler that goes on with the source of before is then refused. Imports come at any time."""
    imports(store, tmp_path)
    take_snapshot(PRICES, REAL, store, NOON)
    before = clickhouse.contents(client)
    with pytest.raises(SourceMismatch, match=r"^The source of this store is chain:1, not chain:2\. .*--replace-source"):
        take_snapshot(PRICES, MOVED, store, NOON + HOUR)
    assert clickhouse.contents(client) == before
    require_admitted(store, Origin("chain:2"), replace=True)
    take_snapshot(PRICES, MOVED, store, NOON + HOUR)
    with pytest.raises(SourceMismatch, match=r"^The source of this store is chain:2, not chain:1\."):
        take_snapshot(PRICES, REAL, store, NOON + 2 * HOUR)
    assert read_ledger(store).origins == {IMPORTED, Origin("chain:1"), Origin("chain:2")}


def test_the_source_of_a_replacement_must_be_of_the_same_side(store: Store) -> None:
    take_snapshot(PRICES, REAL, store, NOON)
    with pytest.raises(SourceMismatch, match=r"^This store holds chain:1, and simulated data is never mixed"):
        choose_source(store, Settings(source="simulated:1"), replace_source=True)


def test_a_source_whose_data_turns_out_to_be_simulated_is_refused(store: Store, client: Client) -> None:
    """As that of a follower whose upstream is set up anew."""

    class Turned(RealSource):
        simulated = True

    take_snapshot(PRICES, REAL, store, NOON)
    before = clickhouse.contents(client)
    with pytest.raises(SourceMismatch, match=r"^This store holds chain:1, .* For chain:1 \(simulated data\), "):
        take_snapshot(PRICES, Turned("1"), store, NOON + HOUR)
    assert clickhouse.contents(client) == before


def test_of_two_that_write_first_at_the_same_time_one_is_refused(
    store: Store, settings: Settings, client: Client, tmp_path: Path
) -> None:
    """Both have found the store empty before either claims it."""
    meeting = threading.Barrier(2, timeout=20)

    def meet(statement: Statement) -> None:
        if statement == Statement("run", "insert_owner"):
            meeting.wait()

    def outcome(write: Write) -> str:
        with closing(WatchedStore(settings, before=meet)) as own:
            try:
                write(own, tmp_path)
            except SourceMismatch as error:
                return str(error)
        return "written"

    with ThreadPoolExecutor(2) as both:
        simulated, real = both.map(outcome, [takes(FIRST), imports])
    assert sorted([simulated == "written", real == "written"]) == [False, True]
    (held,) = read_ledger(store).origins
    assert held == (IMPORTED if real == "written" else Origin("simulated:1", simulated=True))
    prices = client.query("SELECT uniqExact(asset_id = 'token;0xa') FROM price").result_rows
    assert prices == [(1,)]


def test_nothing_is_added_beside_an_import_that_has_begun(
    store: Store, settings: Settings, client: Client, tmp_path: Path
) -> None:
    refused: list[str] = []

    def take() -> None:
        with pytest.raises(SourceMismatch) as caught:
            take_snapshot(PRICES, FIRST, store, NOON)
        refused.append(str(caught.value))

    with closing(Store(settings)) as own:
        run(own, prices_file(tmp_path, ROWS), reporter=Progress(at_first_batch=take))
    assert [message.partition(",")[0] for message in refused] == ["This store holds imported history"]
    assert read_ledger(store).origins == {IMPORTED}
    assert not [name for name in clickhouse.contents(client) if "staging" in name]


def test_without_a_named_source_a_store_goes_on_with_its_own(store: Store, tmp_path: Path) -> None:
    takes(SEVENTH)(store, tmp_path)
    choice = choose_source(store, Settings(), empty="simulated")
    assert choice.source is not None
    assert (choice.spec, choice.source.spec) == ("simulated:7", "simulated:7")


def test_only_up_fills_an_empty_store_without_a_named_source(store: Store, settings: Settings) -> None:
    assert choose_source(store, Settings(), empty="simulated").spec == "simulated"
    with pytest.raises(SettingError, match=r"The store is empty.*--source"):
        require_source(settings, store)


def test_a_store_of_imports_only_has_no_source(store: Store, settings: Settings, tmp_path: Path) -> None:
    imports(store, tmp_path)
    choice = choose_source(store, Settings(), empty="simulated")
    assert (choice.source, choice.spec) == (None, "none")
    assert "imported history only" in choice.reason
    with pytest.raises(SettingError, match="imported history only"):
        require_source(settings, store)


def get(settings: Settings, store: Store, path: str) -> falcon.testing.Result:
    app = create_app(settings, store, lambda: NOON, FreshHeads(store))
    return falcon.testing.TestClient(app).simulate_get(path)


@pytest.mark.parametrize(
    ("write", "source", "simulated"),
    [(takes(FIRST), "simulated:1", True), (imports, "imported history", False)],
)
def test_every_report_tells_whether_data_is_simulated(
    write: Write, source: str, simulated: bool, store: Store, settings: Settings, tmp_path: Path
) -> None:
    write(store, tmp_path)
    assert get(settings, store, "/api/v1/status/health").json["data"]["simulated"] is simulated
    operators = create_app(settings, store, lambda: NOON, FreshHeads(store)).operators
    gauge = f'analytics_source_simulated{{source="{source}"}} {float(simulated)}'
    assert gauge in falcon.testing.TestClient(operators, headers=LOCAL).simulate_get("/metrics").text.splitlines()
    assert [(str(origin), origin.simulated) for origin in collect_report(settings, NOON).status.origins] == [
        (source, simulated)
    ]


def test_a_service_that_was_told_no_source_is_ready_with_imported_history_alone(
    store: Store, settings: Settings, tmp_path: Path
) -> None:
    assert get(settings, store, "/readyz").status_code == 503
    imports(store, tmp_path)
    for told in (None, "none"):
        assert get(replace(settings, source=told), store, "/readyz").status_code == 200
    missing = get(replace(settings, source="chain:1"), store, "/readyz")
    assert missing.status_code == 503
    assert "there is no snapshot of rates yet" in missing.json["error"]["message"]


def test_a_service_that_was_told_no_source_waits_for_all_datasets_of_the_stores_own(
    store: Store, settings: Settings, tmp_path: Path
) -> None:
    takes(FIRST)(store, tmp_path)
    assert "no snapshot of markets yet" in get(settings, store, "/readyz").json["error"]["message"]
