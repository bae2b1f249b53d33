"""Rates: snapshots of both sides of a market, their histories, and imports of files."""

import csv
import gzip
import os
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from threading import Event, current_thread

import falcon.testing
import pytest

from analytics_service.app import create_app
from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.errors import ImportRefused
from analytics_service.imports.history_files import Summary
from analytics_service.imports.presets import PRICES, RATES
from analytics_service.market.assets import Asset, AssetGroup
from analytics_service.market.instants import multiples
from analytics_service.market.markets import LendMarket
from analytics_service.store.datasets.assets import read_assets
from analytics_service.store.datasets.histories import BORROW_RATES, LEND_RATES, History
from analytics_service.store.datasets.observations import read_latest
from analytics_service.store.ledger import IMPORTED, new_version, oldest_change, read_heads, read_ledger
from jobs.registry import JOBS
from jobs.runner import backfill, run_once
from tests.doubles import FreshHeads, Statement, WatchedStore
from tests.integration.handmade import MARKETS, NOON, HandMade, market
from tests.integration.imports import NOW, Progress, asked, import_files, query
from tests.integration.pages import commit
from tests.stored import write_assets

HOUR = timedelta(hours=1)
SECOND = int(NOON.timestamp())
COLUMNS = "timestamp,symbol,asset_address,decimals,active,borrowing_enabled,current_liquidity_rate"
HEADER = f"{COLUMNS},current_variable_borrow_rate,last_update_timestamp\n"
AAA, BBB = "token;0xAbC0", "token;0xb"


def rates(store: Store, history: History, *ids: str, at: int = SECOND) -> dict[str, Decimal]:
    return {asset_id: apr for asset_id, (apr, _) in read_latest(store, history, ids, at).items()}


def test_a_snapshot_has_the_rate_of_each_side_that_a_market_has(store: Store) -> None:
    run_once(JOBS["rates"], HandMade(), store, NOON)
    ids = [each.asset_id for each in MARKETS]
    assert rates(store, LEND_RATES, *ids) == {"native;all": Decimal("0.031234567890123456"), "token;lend": Decimal(0)}
    assert rates(store, BORROW_RATES, *ids) == {"native;all": Decimal("99.5"), "token;debt": Decimal("0.1")}


def test_a_backfill_adds_what_is_missing(store: Store) -> None:
    source = HandMade(markets_=[market("token;a", LendMarket(Decimal("0.5"), 1, 1))])
    run_once(JOBS["rates"], source, store, NOON)
    assert backfill(JOBS["rates"], source, store, multiples(NOON - 3 * HOUR, NOON, HOUR)) == 3
    assert rates(store, LEND_RATES, "token;a", at=SECOND - 3 * 3600) == {"token;a": Decimal("0.5")}
    assert rates(store, LEND_RATES, "token;a", at=SECOND - 3 * 3600 - 1) == {}


def rate_file(folder: Path, *rows: str, name: str = "rates.csv") -> Path:
    path = folder / name
    path.write_text(HEADER + "".join(f"{row}\n" for row in rows))
    return path


def imported(store: Store, *files: Path, skip_invalid: bool = False) -> Summary:
    return import_files(store, asked(RATES, *files, skip_invalid=skip_invalid), NOW, Progress())


def stored(settings: Settings, table: str) -> dict[tuple[object, object], object]:
    rows = query(settings, f"SELECT asset_id, toUnixTimestamp(observed_at), value_exact FROM {table}")
    return {(asset_id, second): apr for asset_id, second, apr in rows}


def test_an_import_registers_assets_and_writes_both_rates(store: Store, settings: Settings, tmp_path: Path) -> None:
    """B cannot be borrowed, so it has no borrow rate. A cannot at 300, but could before, so its rate is 0 there."""
    path = rate_file(
        tmp_path,
        "100,AAA,0xAbC0,18,True,True,3.7e-05,0.25,99",
        "100,BBB,0xb,6,True,False,0.5,0.0,99",
        "200,AAA,0xAbC0,18,True,False,-0.01,0.125,99",
        "300,AAA,0xAbC0,18,False,false,0,0,99",
    )
    assert imported(store, path) == Summary(4, 4, 0, 0, {"lend_rate": 4, "borrow_rate": 3})
    assert stored(settings, "lend_rate") == {
        (AAA, 100): Decimal("0.000037"),
        (BBB, 100): Decimal("0.5"),
        (AAA, 200): Decimal("-0.01"),
        (AAA, 300): Decimal(0),
    }
    assert stored(settings, "borrow_rate") == {
        (AAA, 100): Decimal("0.25"),
        (AAA, 200): Decimal("0.125"),
        (AAA, 300): Decimal(0),
    }
    assert read_assets(store) == {
        AAA: Asset(AssetGroup.TOKEN, "0xAbC0", "AAA", "AAA", "aaa", 18, 6),
        BBB: Asset(AssetGroup.TOKEN, "0xb", "BBB", "BBB", "bbb", 6, 6),
    }
    head = read_heads(store)["rates"]
    assert (head.at, head.last_observed_at) == (300, 300)
    assert query(settings, "SELECT kind, rows, source FROM snapshot FINAL") == [("import", 7, "rates.csv")]


def test_files_may_be_imported_one_after_the_other(store: Store, settings: Settings, tmp_path: Path) -> None:
    """A cannot be borrowed on the second day any more, so its rate is 0 there. B never could, so it has none."""
    days = (
        ("100,AAA,0xAbC0,18,True,True,0.01,0.05,99", "100,BBB,0xb,6,True,False,0.5,0,99"),
        ("86500,AAA,0xAbC0,18,True,False,0.01,0,99", "86500,BBB,0xb,6,True,False,0.5,0,99"),
    )
    for number, day in enumerate(days):
        imported(store, rate_file(tmp_path, *day, name=f"{number}.csv"))
    assert stored(settings, "borrow_rate") == {(AAA, 100): Decimal("0.05"), (AAA, 86500): Decimal(0)}


def test_a_day_from_before_the_first_borrow_rate_has_a_rate_of_0_once_it_is_imported_again(
    store: Store, settings: Settings, tmp_path: Path
) -> None:
    first = rate_file(tmp_path, "100,AAA,0xAbC0,18,True,False,0.01,0,99", name="first.csv")
    second = rate_file(tmp_path, "86500,AAA,0xAbC0,18,True,True,0.01,0.05,99", name="second.csv")
    imported(store, first)
    imported(store, second)
    assert stored(settings, "borrow_rate") == {(AAA, 86500): Decimal("0.05")}
    imported(store, first)
    assert stored(settings, "borrow_rate") == {(AAA, 100): Decimal(0), (AAA, 86500): Decimal("0.05")}


def test_one_address_in_two_spellings_is_one_asset(store: Store, settings: Settings, tmp_path: Path) -> None:
    rows = ("100,AAA,0xAbC0,18,True,True,0.1,0.25,99", "100,AAA,0xABC0,18,True,True,0.5,0.75,99")
    brought = {"lend_rate": 1, "borrow_rate": 1}
    assert imported(store, rate_file(tmp_path, *rows)) == Summary(2, 1, 1, 0, brought)
    assert list(read_assets(store)) == [AAA]
    assert stored(settings, "borrow_rate") == {(AAA, 100): Decimal("0.75")}


LEND, BORROW = (f"column current_{side}_rate: the value" for side in ("liquidity", "variable_borrow"))
BAD = {
    "100,AAA,0xa,18,True,True,-1.1,0.25,99": f"{LEND} is below -1",
    "100,AAA,0xa,18,True,True,0.1,100.5,99": f"{BORROW} is above 100",
    "100,AAA,0xa,18,True,True,1e30,0.25,99": f"{LEND} is above 100",
    "100,AAA,0xa,18,True,True,0.1,,99": f"{BORROW} is empty",
    "100,AAA,0xa,18,True,True,much,0.1,99": f"{LEND} is not a number",
    "100,AAA,0xa,18,True,maybe,0.1,0.1,99": "borrowing_enabled is neither True nor False",
    "100,AAA,,18,True,True,0.1,0.1,99": "the asset is empty",
    "100,AAA,0xq,many,True,True,0.1,0.1,99": "no asset can be made of it: decimals must be a whole number from 0 to 77",
    "100,=AAA,0xf,18,True,True,0.1,0.1,99": "no asset can be made of it: the symbol begins with = + - @, a tab or a "
    "line end: a spreadsheet would run it as a formula",
    "99999999999,AAA,0xa,18,True,True,0.1,0.1,99": "the time is in the future",
}


def test_bad_rows_are_written_to_a_file_with_their_reason(store: Store, settings: Settings, tmp_path: Path) -> None:
    path = rate_file(tmp_path, "100,AAA,0xa,18,True,True,0.1,0.25,99", *BAD)
    done = imported(store, path, skip_invalid=True)
    assert (done.written, done.rejected) == (1, len(BAD))
    with done.rejected_files[0].open() as file:
        kept = list(csv.DictReader(file))
    # A spreadsheet would run the formula in this file, too.
    rows = {row.replace(",=AAA", ",'=AAA"): reason for row, reason in BAD.items()}
    assert {",".join(list(row.values())[:9]): row["reason"] for row in kept} == rows
    assert [int(row["line"]) for row in kept] == list(range(3, 3 + len(BAD)))
    assert stored(settings, "borrow_rate") == {("token;0xa", 100): Decimal("0.25")}


def test_a_file_without_the_columns_is_refused(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "prices.csv"
    path.write_text("symbol,timestamp,USD_price\nAAA,100,1\n")
    with pytest.raises(ImportRefused, match="has no column 'asset_address'; it has 'symbol, timestamp"):
        imported(store, path)


def test_imported_rates_are_answered(store: Store, settings: Settings, tmp_path: Path) -> None:
    rows = ("3600,AAA,0xa,18,True,True,0.1,0.25,99", "7200,BBB,0xb,18,True,True,0.5,0.75,9")
    imported(store, rate_file(tmp_path, *rows))
    client = falcon.testing.TestClient(create_app(settings, store, heads=FreshHeads(store)))
    for path, points in (
        ("lend/rate-history", {"token;0xa": ["0.1", "0.1"], "token;0xb": [None, "0.5"]}),
        ("borrow/rate-history", {"token;0xa": ["0.25", "0.25"], "token;0xb": [None, "0.75"]}),
    ):
        answer = client.simulate_get(f"/api/v1/markets/{path}", query_string="start=3600&end=7200&period=h").json
        series = {one["asset"]["id"]: [point["v"] for point in one["points"]] for one in answer["data"]["series"]}
        assert series == points


def test_assets_of_an_import_are_shown_with_prices_that_never_change(
    store: Store, settings: Settings, tmp_path: Path
) -> None:
    """There is no schedule that would take a later snapshot of prices."""
    client = falcon.testing.TestClient(create_app(settings, store, heads=FreshHeads(store)))
    commit(store, {"token;0xb": [(100, Decimal(1))]}, kind="import")
    prices, before = client.simulate_get("/api/v1/assets/prices"), read_heads(store)["prices"]
    imported(store, rate_file(tmp_path, "100,AAA,0xa,18,True,True,0.1,0.25,99"))
    assert shown(client) == ["token;0xa", "token;0xb"]
    query = "start=0&end=100&period=h&symbols=AAA"
    answer = client.simulate_get("/api/v1/markets/lend/rate-history", query_string=query)
    assert [one["asset"]["id"] for one in answer.json["data"]["series"]] == ["token;0xa"]
    without = client.simulate_get("/api/v1/markets/lend/rate-history", query_string=query.replace("AAA", "0XB"))
    told = "asset_ids or symbols: 'token;0xb' (0xb) is no asset with this history."
    assert (without.json["error"]["kind"], without.json["error"]["message"]) == ("entity_not_found", told)
    assert client.simulate_get("/api/v1/assets/prices").text == prices.text
    # Readers need not read its history again.
    assert read_ledger(store).origins == {IMPORTED}
    head = read_heads(store)["prices"]
    assert oldest_change(store, before, head) == head.last_observed_at


def test_assets_that_an_earlier_version_registered_are_shown_once_rates_are_imported_again(
    store: Store, settings: Settings, tmp_path: Path
) -> None:
    client = falcon.testing.TestClient(create_app(settings, store, heads=FreshHeads(store)))
    commit(store, {"token;0xb": [(100, Decimal(1))]}, kind="import")
    write_assets(store, [Asset(AssetGroup.TOKEN, "0xa", "AAA", "AAA", "aaa", 18, 6)], new_version(store))
    assert shown(client) == ["token;0xb"]
    imported(store, rate_file(tmp_path, "100,AAA,0xa,18,True,True,0.1,0.25,99"))
    assert shown(client) == ["token;0xa", "token;0xb"]


def test_past_moments_have_the_assets_of_all_imports_whatever_was_asked_before(
    store: Store, settings: Settings, tmp_path: Path
) -> None:
    """Which import came first, and what a worker has in memory, makes no difference. An import that only adds to the
    end tells nothing of the moments before."""
    moment = f"at={SECOND}"
    client = falcon.testing.TestClient(create_app(settings, store, heads=FreshHeads(store)))
    prices, assets = tmp_path / "prices.csv", tmp_path / "assets.csv"
    assets.write_text("symbol,address,decimals\nBBB,0xb,18\nCCC,0xc,18\n")
    first = f"asset_id,ts,price\ntoken;0xb,{SECOND - 100},1\ntoken;0xc,{SECOND + 100},1\n"

    def import_prices(content: str) -> None:
        prices.write_text(content)
        import_files(store, asked(PRICES, prices, assets=assets), datetime.fromtimestamp(SECOND + 900, UTC), Progress())

    import_prices(first)
    assert shown(client, moment) == ["token;0xb", "token;0xc"]
    imported(store, rate_file(tmp_path, f"{SECOND - 50},AAA,0xa,18,True,True,0.1,0.25,99"))
    assert shown(client, moment) == ["token;0xa", "token;0xb", "token;0xc"]
    assets.write_text("symbol,address,decimals\nDDD,0xd,18\n")
    import_prices(f"asset_id,ts,price\ntoken;0xd,{SECOND + 200},1\n")
    fresh = falcon.testing.TestClient(create_app(settings, store, heads=FreshHeads(store)))
    for one in (client, fresh):
        assert shown(one, moment) == ["token;0xa", "token;0xb", "token;0xc"]
        assert shown(one) == ["token;0xa", "token;0xb", "token;0xc", "token;0xd"]


def test_an_import_without_new_assets_changes_nothing_else(store: Store, settings: Settings, tmp_path: Path) -> None:
    commit(store, {"token;0xa": [(100, Decimal(1))]}, kind="import")
    before = read_heads(store)["prices"]
    imported(store, rate_file(tmp_path, "100,AAA,0xa,18,True,True,0.1,0.25,99"))
    assert read_heads(store)["prices"] == before


def test_assets_of_an_import_change_no_answer_of_the_state_before(
    store: Store, settings: Settings, tmp_path: Path
) -> None:
    """A snapshot of prices that completes while the rates are written has a greater version than the import."""
    heads, etags, counts = [], [], []
    begun, importing = Event(), current_thread()

    def look() -> None:
        """Ask a worker that has just started."""
        client = falcon.testing.TestClient(create_app(settings, store, heads=FreshHeads(store)))
        heads.append(read_heads(store)["prices"])
        answer = client.simulate_get("/api/v1/assets")
        etags.append(answer.headers["etag"])
        counts.append(answer.json["count"])

    def before(statement: Statement) -> None:
        # While heartbeats are sent, the import goes on: the head might change before the answer is there. What reads
        # changes nothing.
        if begun.is_set() and current_thread() is importing and statement.kind != "query":
            look()

    def begin() -> None:
        commit(store, {"token;0xb": [(100, Decimal(1))]})
        begun.set()

    with closing(WatchedStore(settings, before=before)) as watched:
        file = rate_file(tmp_path, "100,AAA,0xa,18,True,True,0.1,0.25,99")
        import_files(watched, asked(RATES, file), NOW, Progress(at_first_batch=begin))
    look()
    assert [*dict.fromkeys(counts)] == [1, 2]
    # The last head differs from the one before in that it tells of a rewrite: past moments have another asset, too.
    assert len({*zip(heads, etags, strict=True)}) == len({*heads}) == 3
    assert len({*etags}) == 2


def shown(client: falcon.testing.TestClient, query: str = "") -> list[str]:
    return [one["asset"]["id"] for one in client.simulate_get("/api/v1/assets", query_string=query).json["data"]]


REAL = Path(os.environ.get("ANALYTICS_TEST_DATA", "/nonexistent")) / "rates_daily.csv.gz"


@pytest.mark.skipif(not REAL.is_file(), reason="ANALYTICS_TEST_DATA names no folder of real data")
def test_the_real_rates_are_all_imported(store: Store, settings: Settings) -> None:
    """Compared with the text of the file; assets that could never be borrowed have no borrow rates."""
    done = import_files(store, asked(RATES, REAL), datetime.now(UTC), Progress())
    with gzip.open(REAL, "rt") as file:
        rows = list(csv.DictReader(file))
    key = {(f"token;{row['asset_address']}", int(row["timestamp"])): row for row in rows}
    assert stored(settings, "lend_rate") == {at: Decimal(row["current_liquidity_rate"]) for at, row in key.items()}
    borrowable = {
        row["asset_address"]
        for row in rows
        if row["borrowing_enabled"] == "True" or Decimal(row["current_variable_borrow_rate"])
    }
    assert stored(settings, "borrow_rate") == {
        at: Decimal(row["current_variable_borrow_rate"])
        for at, row in key.items()
        if row["asset_address"] in borrowable
    }
    assert 0 < len(borrowable) < len(read_assets(store)) == 67
    brought = {"lend_rate": len(rows), "borrow_rate": sum(row["asset_address"] in borrowable for row in rows)}
    assert done == Summary(len(rows), len(rows), 0, 0, brought)
