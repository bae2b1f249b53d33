"""Rates: snapshots of both sides of a market, their histories, and imports of files."""

from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from threading import Event, current_thread

import falcon.testing

from analytics_service.app import create_app
from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.store.datasets.histories import BORROW_RATES, LEND_RATES, PRICES, History
from analytics_service.store.datasets.observations import read_latest
from analytics_service.store.ledger import IMPORTED, oldest_change, read_heads, read_ledger
from jobs.registry import JOBS
from jobs.runner import take_snapshot
from tests.doubles import FreshHeads, Statement, WatchedStore
from tests.integration.handmade import MARKETS, NOON, HandMade
from tests.integration.imports import NOW, Progress, asked, import_files
from tests.integration.pages import commit

HOUR = timedelta(hours=1)
SECOND = int(NOON.timestamp())


def rates(store: Store, history: History, *ids: str, at: int = SECOND) -> dict[str, Decimal]:
    return {asset_id: apr for asset_id, (apr, _) in read_latest(store, history, ids, at).items()}


def test_a_snapshot_has_the_rate_of_each_side_that_a_market_has(store: Store) -> None:
    take_snapshot(JOBS["rates"], HandMade(), store, NOON)
    ids = [each.asset_id for each in MARKETS]
    assert rates(store, LEND_RATES, *ids) == {"native;all": Decimal("0.031234567890123456"), "token;lend": Decimal(0)}
    assert rates(store, BORROW_RATES, *ids) == {"native;all": Decimal("99.5"), "token;debt": Decimal("0.1")}


def imported(store: Store, folder: Path, row: str = "100,0xa,0.1", history: History = LEND_RATES) -> None:
    """Import a rate, with an assets file that describes its asset."""
    path, assets = folder / "rates.csv", folder / "rates_assets.csv"
    path.write_text(f"time,asset,value\n{row}\n")
    key = row.split(",")[1]
    assets.write_text(f"symbol,address,decimals\n{key[2:].upper() * 3},{key},18\n")
    import_files(store, asked(history, path, assets=assets), NOW, Progress())


def test_imported_rates_are_answered(store: Store, settings: Settings, tmp_path: Path) -> None:
    imported(store, tmp_path, "3600,0xa,0.1")
    imported(store, tmp_path, "7200,0xb,0.75", BORROW_RATES)
    client = falcon.testing.TestClient(create_app(settings, store, heads=FreshHeads(store)))
    for path, points in (
        ("lend/rate-history", {"token;0xa": ["0.1", "0.1"]}),
        ("borrow/rate-history", {"token;0xb": [None, "0.75"]}),
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
    imported(store, tmp_path)
    assert shown(client) == ["token;0xa", "token;0xb"]
    query = "start=0&end=100&period=h&symbols=AAA"
    answer = client.simulate_get("/api/v1/markets/lend/rate-history", query_string=query)
    assert [one["asset"]["id"] for one in answer.json["data"]["series"]] == ["token;0xa"]
    without = client.simulate_get("/api/v1/markets/lend/rate-history", query_string=query.replace("AAA", "0XB"))
    told = "asset_ids or symbols: 'token;0xb' (0xb) has no such history."
    assert (without.json["error"]["kind"], without.json["error"]["message"]) == ("entity_not_found", told)
    assert client.simulate_get("/api/v1/assets/prices").text == prices.text
    # Readers need not read its history again.
    assert read_ledger(store).origins == {IMPORTED}
    head = read_heads(store)["prices"]
    assert oldest_change(store, before, head) == head.last_observed_at
    # The next import has no new assets.
    imported(store, tmp_path)
    assert read_heads(store)["prices"] == head


def test_past_moments_have_the_assets_of_all_imports_whatever_was_asked_before(
    store: Store, settings: Settings, tmp_path: Path
) -> None:
    """Which import came first, and what a worker has in memory, makes no difference. An import that only adds to the
    end tells nothing of the moments before."""
    moment = f"at={SECOND}"
    client = falcon.testing.TestClient(create_app(settings, store, heads=FreshHeads(store)))
    prices, assets = tmp_path / "prices.csv", tmp_path / "assets.csv"
    assets.write_text("symbol,address,decimals\nBBB,0xb,18\nCCC,0xc,18\n")
    first = f"asset,time,value\ntoken;0xb,{SECOND - 100},1\ntoken;0xc,{SECOND + 100},1\n"

    def import_prices(content: str) -> None:
        prices.write_text(content)
        import_files(store, asked(PRICES, prices, assets=assets), datetime.fromtimestamp(SECOND + 900, UTC), Progress())

    import_prices(first)
    assert shown(client, moment) == ["token;0xb", "token;0xc"]
    imported(store, tmp_path, f"{SECOND - 50},0xa,0.1")
    assert shown(client, moment) == ["token;0xa", "token;0xb", "token;0xc"]
    assets.write_text("symbol,address,decimals\nDDD,0xd,18\n")
    import_prices(f"asset,time,value\ntoken;0xd,{SECOND + 200},1\n")
    fresh = falcon.testing.TestClient(create_app(settings, store, heads=FreshHeads(store)))
    for one in (client, fresh):
        assert shown(one, moment) == ["token;0xa", "token;0xb", "token;0xc"]
        assert shown(one) == ["token;0xa", "token;0xb", "token;0xc", "token;0xd"]


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
        (file := tmp_path / "rates.csv").write_text("time,asset,value\n100,0xa,0.1\n")
        (assets := tmp_path / "assets.csv").write_text("symbol,address,decimals\nAAA,0xa,18\n")
        request = asked(LEND_RATES, file, assets=assets)
        import_files(watched, request, NOW, Progress(at_first_batch=begin))
    look()
    assert [*dict.fromkeys(counts)] == [1, 2]
    # The last head differs from the one before in that it tells of a rewrite: past moments have another asset, too.
    assert len({*zip(heads, etags, strict=True)}) == len({*heads}) == 3
    assert len({*etags}) == 2


def shown(client: falcon.testing.TestClient, query: str = "") -> list[str]:
    return [one["asset"]["id"] for one in client.simulate_get("/api/v1/assets", query_string=query).json["data"]]
