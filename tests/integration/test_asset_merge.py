"""An asset that is there twice becomes one: then the store is as if it had been fed with one spelling."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.errors import AssetRefused
from analytics_service.importing.assets import token_of
from analytics_service.importing.events import EventRequest, load_events
from analytics_service.market.assets import Asset, AssetGroup
from analytics_service.market.events import Action, Event
from analytics_service.market.markets import LendMarket
from analytics_service.sources.registry import origin_of
from analytics_service.store.commits import begin
from analytics_service.store.datasets.asset_merge import merge_of
from analytics_service.store.datasets.assets import read_assets
from analytics_service.store.datasets.histories import HISTORIES
from jobs.registry import JOBS
from jobs.snapshot import Batch, Taking, commit
from tests.integration import imports
from tests.integration.databases import database
from tests.integration.handmade import NOON, HandMade, market
from tests.integration.routes import client_of

ADDRESS = "0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2"
NEW, MIXED, MADE = f"token;{ADDRESS.lower()}", f"token;{ADDRESS}", "native;WETH"
ALICE = "0x" + "a" * 40
SECOND = int(NOON.timestamp())
# As a file describes it, so that it was never described otherwise.
WETH = token_of("WETH", ADDRESS.lower(), "18")
OTHER = Asset(AssetGroup.TOKEN, "0xb", "B", "BBB", "b", 6, 2)
DAY = 86_400

pytestmark = pytest.mark.slow


def borrow(minutes: float, usd: str) -> Event:
    at = NOON + timedelta(minutes=minutes)
    return Event(f"source {minutes}", Action.BORROW, NEW, ALICE, at, 10**18, Decimal(usd))


def live(minute: int) -> HandMade:
    """A source that spells the address in lower case, with a price of each minute."""
    lent = LendMarket(Decimal("0.03"), 10**20, 10**20)
    return HandMade(
        assets_=[WETH, OTHER],
        prices_={NEW: Decimal(2000 + minute), OTHER.id: Decimal(1)},
        markets_=[market(NEW, lent, "0.1"), market(OTHER.id, apr="0.2")],
        events_=[borrow(0.5, "70"), borrow(1.5, "7")],
    )


def take(store: Store, minute: int, *names: str) -> None:
    """Snapshots of a source as it spells its assets, whatever is stored already."""
    at, source = NOON + timedelta(minutes=minute), live(minute)
    for name in names or ("prices", "rates", "markets", "loans"):
        beginning = begin(store, name, SECOND, SECOND)
        batch = Batch(name, source, store, [at], beginning.head)
        commit(store, JOBS[name].collect(batch), Taking("job", origin_of(source)), beginning)


def fill(store: Store, folder: Path, asset_id: str, *, has_events: bool) -> None:
    """Files of an asset of 5 days, which end within the first minutes of the source; then two snapshots of it."""
    folder.mkdir()
    assets = folder / "assets.csv"
    weth = "" if asset_id == MADE else f"WETH,{asset_id.partition(';')[2]},18\n"
    assets.write_text(f"symbol,address,decimals\nBBB,0xb,6\n{weth}")
    if has_events:
        path = folder / "events.csv"
        rows = [(SECOND - 4 * DAY, "WETH", 500, 1), (SECOND - 3 * DAY, "BBB", 40, 2), (SECOND - DAY, "WETH", 9, 3)]
        text = "".join(f"{at},{ALICE},borrow,{symbol},1,{usd},e{number}\n" for at, symbol, usd, number in rows)
        path.write_text(f"time,address,action,symbol,units,usd,id\n{text}")
        events = EventRequest([path], assets=assets)
        load_events(store, events, NOON, imports.Progress()).write(store)
    for name, values in (("prices", range(1500, 1505)), ("lend-rate", range(5))):
        path = folder / f"{name}.csv"
        seconds = [SECOND - DAY * (4 - day) + (day == 4) * 60 for day in range(5)]
        rows = zip(seconds, values, strict=True)
        path.write_text("asset,time,value\n" + "".join(f"WETH,{at},{value}e-2\n" for at, value in rows))
        history = next(history for history in HISTORIES if history.slug == name)
        request = imports.asked(history, path, assets=assets)
        request = replace(request, new_assets=asset_id == MADE)
        imports.import_files(store, request, NOON, imports.Progress())
    take(store, 1)
    take(store, 2)


TABLES = (
    "SELECT history, asset_id, observed_at, value FROM observation FINAL ORDER BY ALL",
    "SELECT * EXCEPT version FROM cell FINAL WHERE toDate(cell) < '2025-03-01' ORDER BY ALL",
    "SELECT * EXCEPT version FROM account_event FINAL ORDER BY ALL",
    "SELECT id, argMax((symbol, name, decimals_denom, kind), version) FROM asset_definition GROUP BY id ORDER BY id",
)
SPAN = f"start={SECOND - 5 * DAY}&end={SECOND + 120}&period=h&interval=24"
PATHS = (
    "assets", "assets/prices", "markets", f"assets/price-history?symbols=WETH&{SPAN}",
    f"markets/lend/rate-history?symbols=weth&{SPAN}", f"analytics/market/history/loans-originated?{SPAN}",
    f"analytics/market/history/loans-originated/by-asset?{SPAN}", f"users/{ALICE}/tx-history",
    f"assets/prices?at={SECOND - 2 * DAY}",
)  # fmt: skip


@pytest.mark.parametrize("old", [MIXED, MADE])
def test_a_merged_asset_is_as_if_it_had_always_been_one(
    settings: Settings, store: Store, tmp_path: Path, old: str
) -> None:
    fill(store, tmp_path / "twice", old, has_events=old != MADE)
    client = client_of(settings, store)
    assert client.simulate_get("/api/v1/assets/price-history", query_string=f"symbols=WETH&{SPAN}").status_code == 400
    lines: list[str] = []
    merge_of(store, old, NEW).write(lines.append)
    assert lines[0] == "prices: merged."
    once = replace(settings, clickhouse_database=f"{settings.clickhouse_database}_once")
    with database(once) as other:
        fill(other, tmp_path / "once", NEW, has_events=old != MADE)
        for query in TABLES:
            assert imports.query(settings, query) == imports.query(once, query)
        expected = client_of(once, other)
        for path in PATHS:
            answers = [each.simulate_get(f"/api/v1/{path}") for each in (client_of(settings, store), expected)]
            assert answers[0].status_code == 200, answers[0].text
            assert answers[0].json["data"] == answers[1].json["data"]


@pytest.fixture
def events(store: Store, tmp_path: Path) -> Callable[[], int]:
    """Events of a file with the address as explorers write it; imports it again, and returns how many are new."""
    assets = tmp_path / "assets.csv"
    assets.write_text(f"symbol,address,decimals\nWETH,{ADDRESS},18\n")
    path = tmp_path / "events.csv"
    path.write_text(f"time,address,action,asset_id,units,usd\n{SECOND - DAY},{ALICE},borrow,{ADDRESS},1,500\n")

    def again() -> int:
        request = EventRequest([path], assets=assets)
        loaded = load_events(store, request, NOON, imports.Progress())
        loaded.write(store)
        return loaded.reader.read - loaded.known

    assert again() == 1
    return again


def test_a_merge_that_was_stopped_goes_on(store: Store, settings: Settings, events: Callable[[], int]) -> None:
    """After its first family. The file of events is known afterwards, though they have no ids of their own."""
    take(store, 1, "prices")

    class Stopped(Exception):
        """The process has ended."""

    def stop(line: str) -> None:
        raise Stopped(line)

    with pytest.raises(Stopped, match="loans"):
        merge_of(store, MIXED, NEW).write(stop)
    assert merge_of(store, MIXED, NEW).parts() == []
    merge_of(store, MIXED, NEW).write(stop)
    assert list(read_assets(store)) == [OTHER.id, NEW]
    assert events() == 0
    query = "SELECT asset_id, sum(usd) FROM account_event FINAL GROUP BY asset_id"
    assert imports.query(settings, query) == [(NEW, Decimal(500))]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (NEW, NEW, "the same asset"),
        (NEW, MIXED, r"is in snapshots \(market_debt, market_lend, market_price\).* is in none: swap both"),
        (MIXED, "token;0xb", "has 18 decimals, and those of token;0xb are 6"),
        (MIXED, "token;0xc02a", "'token;0xc02a' is the id of no asset. Did you mean"),
        ("weth", NEW, "'weth' is the id of no asset. Did you mean token;0xC02.* or token;0xc02"),
    ],
)
def test_what_cannot_be_merged_is_refused(
    store: Store, events: Callable[[], int], old: str, new: str, reason: str
) -> None:
    take(store, 1)
    with pytest.raises(AssetRefused, match=reason):
        merge_of(store, old, new)
