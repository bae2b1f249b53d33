"""One asset whatever the case of its address, in everything that a source answers (rule 3.4)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

import falcon.testing
from clickhouse_connect.driver.client import Client

from analytics_service.app import create_app
from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.market.assets import Asset, AssetGroup, AssetKind
from analytics_service.market.events import Action, Event, Sum, Totals
from analytics_service.market.markets import CollateralConfig, CollateralMarket, LendMarket, Market
from analytics_service.market.positions import Account, Balance, Holding, LendPosition, Position
from analytics_service.market.prices import Price
from analytics_service.market.ptoken import Ptoken
from analytics_service.market.rates import Rates
from analytics_service.store.datasets.assets import read_assets
from jobs.registry import JOBS
from jobs.runner import take_snapshot
from tests.doubles import FirstHeads
from tests.integration.handmade import CONFIG, NOON, PTOKEN, HandMade, debt_market
from tests.stored import write_assets

WETH, RECEIPT = "token;0xAbCd", "token;0xBEEF"
ADDRESS = "0x" + "f" * 40


def lower(asset_id: str) -> str:
    return asset_id.lower()


def upper(asset_id: str) -> str:
    group, key = asset_id.split(";0x")
    return f"{group};0x{key.upper()}"


class Careless(HandMade):
    """Names WETH and its receipt token in one case here and in another there."""

    def assets(self, at: datetime) -> Sequence[Asset]:
        weth, receipt = (lower(asset_id).removeprefix("token;") for asset_id in (WETH, RECEIPT))
        return [
            Asset(AssetGroup.TOKEN, weth, "Ether", "WETH", "wei", 18, 6, receipt_asset=upper(RECEIPT)),
            Asset(AssetGroup.TOKEN, receipt, "Lent", "aWETH", "awei", 18, 6, AssetKind.RECEIPT, upper(WETH)),
        ]

    def prices(self, at: datetime) -> Sequence[Price]:
        return [Price(upper(WETH), at, Decimal(2000))]

    def markets(self, at: datetime) -> Sequence[Market]:
        rules = CollateralConfig(True, Decimal("0.7"), Decimal("0.8"), None, Decimal(0), Decimal("0.1"))
        posted = CollateralMarket(rules, 10**18, 10**18)
        lent = LendMarket(Decimal("0.02"), 3 * 10**18, 2 * 10**18)
        # Not a list, as other sources' answers may be.
        return {0: Market(lower(WETH), lent, posted, debt_market(balance=10**18, shares=10**18))}.values()  # type: ignore[return-value]

    def rates(self, at: datetime) -> Rates:
        return Rates({upper(WETH): Decimal("0.02")}, {lower(WETH): Decimal("0.1")})

    def events(self, start: datetime, end: datetime) -> Sequence[Event]:
        return [Event("1", Action.BORROW, upper(WETH), ADDRESS, NOON - timedelta(hours=1), 10**18, Decimal(2000))]

    def totals(self, at: datetime) -> Totals:
        return Totals(loans=Sum(Decimal(2000), {lower(WETH): Decimal(2000)}))

    def ptoken(self, at: datetime) -> Ptoken:
        return replace(PTOKEN, asset_id=lower(WETH))

    def positions(self, at: datetime):  # type: ignore[no-untyped-def]
        account = Account(0, (Holding(lower(WETH), 10**17),), (Holding(upper(WETH), 10**16),))
        yield Position(ADDRESS, (account,), (LendPosition(upper(WETH), 5, 0),), (Balance(lower(RECEIPT), 7),))


def stored_ids(client: Client) -> Mapping[str, set[str]]:
    """The asset ids in each table that has some."""
    tables = client.query(
        "SELECT DISTINCT table, name FROM system.columns WHERE database = currentDatabase() AND name IN "
        "('asset_id', 'id', 'origin_asset', 'receipt_asset', 'ptoken') AND table IN (SELECT name FROM system.tables "
        "WHERE engine LIKE '%MergeTree')"
    ).result_rows
    return {
        f"{table}.{column}": {str(row[0]) for row in client.query(f"SELECT DISTINCT {column} FROM {table}").result_rows}
        for table, column in tables
    }


def take_all(source: HandMade, store: Store) -> None:
    for job in JOBS.values():
        take_snapshot(job, source, store, NOON)


def asked(settings: Settings, store: Store, path: str, query: str) -> falcon.testing.Result:
    client = falcon.testing.TestClient(create_app(settings, store, lambda: NOON, FirstHeads(store)))
    return client.simulate_get(path, query_string=query)


def test_every_answer_of_a_source_has_the_stored_spelling_of_an_asset(
    settings: Settings, store: Store, client: Client
) -> None:
    """The store knows WETH, and spells what it does not know in lower case."""
    write_assets(store, [Asset(AssetGroup.TOKEN, WETH.removeprefix("token;"), "", "WETH", "", 0, 0)], 1)
    take_all(Careless(config_=replace(CONFIG, ptoken=upper(WETH))), store)
    found = {one for ids in stored_ids(client).values() for one in ids if one.startswith("token;0x")}
    assert found == {WETH, lower(RECEIPT)}
    assert {asset.symbol for asset in read_assets(store).values()} == {"WETH", "aWETH"}
    page = asked(
        settings, store, "/api/v1/assets/price-history", "symbols=WETH&start=1740830400&end=1740830460&period=min"
    )
    assert page.status_code == 200, page.text
