"""Risk of liquidations over HTTP: the health that addresses show, at present and past moments, and its histories."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import falcon.testing
import pytest

from analytics_service.app import create_app
from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.market.assets import Asset, AssetGroup
from analytics_service.market.markets import CollateralConfig, CollateralMarket, Market
from analytics_service.market.positions import Account, Activity, Holding, Position, RiskTotals, Stake
from analytics_service.sources.simulated.universe import ID_OF
from jobs.recompute import plan, recompute
from jobs.registry import JOBS
from jobs.runner import take_snapshot
from tests.doubles import FirstHeads
from tests.integration.databases import database
from tests.integration.handmade import NOON, HandMade, debt_market
from tests.integration.routes import Client, expect_error

D = Decimal
PATH = "/api/v1/analytics/market"
SECOND, MINUTE = int(NOON.timestamp()), timedelta(minutes=1)
ALICE, BOB = "0x" + "a" * 40, "0x" + "b" * 40
TEXT = "CHANGE is -20% (-100% or more), +5%, or a price in USD"


def data(client: Client, path: str, query: str = "") -> Any:
    answer = client.simulate_get(f"{PATH}/{path}", query_string=query)
    assert answer.status_code == 200, answer.text
    return answer.json["data"]


def test_the_ladder_and_assumed_prices_show_the_same(protocol: Client) -> None:
    """So does the list of accounts. Orbit's receipt token follows it; both are named."""
    orb = ID_OF["ORB"]
    ladder = data(protocol, "risk/ladder", f"asset_id={orb}&from=-90&to=-30&step=60")
    assert [step["change"] for step in ladder["steps"]] == ["-0.9", "-0.3"]
    for step, change in zip(ladder["steps"], ("ORB:-90%", f"{orb}:{ladder['steps'][1]['price']}"), strict=True):
        risk = data(protocol, "risk", f"prices={change}")
        sums = {name: step[name] for name in ("accounts", "collateral_value", "debt_value")}
        assert sums == {name: risk["liquidatable"][name] for name in sums}
        assert step["bad_debt"] == risk["bad_debt"]["value"]
        listed = data(protocol, "borrowers", f"prices={change}&sort=health&limit=1000")
        fallen = [one for one in listed if D(one["health"]) < 1]
        assert fallen == listed[: step["accounts"]]
        assert len(fallen) == step["accounts"] > 0
        assert abs(sum(D(one["debt_value"]) for one in fallen) - D(step["debt_value"])) < D("1e-15")
        own, receipts = risk["prices"]
        assert (own["asset"]["id"], own["assumed_price"]) == (orb, step["price"])
        assert D(receipts["assumed_price"]) < D(receipts["price"])
    assert data(protocol, "risk")["prices"] == []


def test_a_parameter_that_cannot_be_used_says_why(protocol: Client) -> None:
    """tests/unit/test_risk.py has the changes that cannot be assumed."""
    ladder = f"asset_id={ID_OF['ETH']}"
    for path, query, message in (
        ("risk", "threshold=0.99", "must be from 1 to 10"),
        ("risk", "prices=ETH:-20", TEXT),
        ("risk", "prices=" + ",".join(["ETH:1"] * 51), "must be at most 50 prices"),
        ("risk/ladder", f"{ladder}&from=-101", "must be from -100 to 10000"),
        ("risk/ladder", f"{ladder}&from=5&to=4", "4 is below from, 5"),
        ("risk/ladder", f"{ladder}&step=0.1", "gives 1,951 steps from -95 to 100; at most 400 are allowed"),
        ("borrowers", "sort=ltv", "must be one of debt, health, collateral"),
    ):
        answer = protocol.simulate_get(f"{PATH}/{path}", query_string=query)
        assert message in expect_error(answer, 400, "query_parameter_invalid", "client")
    for path, query in (("risk", "prices=NOTHING:1"), ("risk/ladder", "asset_id=HEL&following=native;nothing")):
        answer = protocol.simulate_get(f"{PATH}/{path}", query_string=query)
        assert "nothing'" in expect_error(answer, 404, "entity_not_found", "user").lower()


def asset(name: str) -> Asset:
    return Asset(AssetGroup.NATIVE, name, name, name.upper(), name, 0, 2)


RULES = CollateralConfig(True, D("0.7"), D("0.8"), None, D(0), D(0))
MARKETS = (
    Market("native;a", None, CollateralMarket(RULES, 1, 1), None),
    Market("native;b", None, None, debt_market(balance=1, shares=1)),
    Market("native;dark", None, CollateralMarket(RULES, 1, 1), debt_market(balance=1, shares=1)),
)


def owing(address: str, collateral: int, debt: int, asset_id: str = "native;b") -> Position:
    """An account with whole units of a, at 10 USD, 80 % of which secure a debt of units at 1 USD."""
    account = Account(0, (Holding("native;a", collateral),), (Holding(asset_id, debt),))
    # An account that does not exist, and an empty one.
    return Position(address, (account, Account(4)), stakes=(Stake(0, 9, 5, False, None, D(0)),))


SOURCE = HandMade(
    assets_=tuple(map(asset, ("a", "b", "dark", "uptk"))),
    markets_=MARKETS,
    prices_={"native;a": D(10), "native;b": D(1)},
)


# From which risk is made.
DATASETS = ("prices", "markets", "ptoken", "positions")


@pytest.fixture(scope="module")
def client(server: Settings) -> Iterator[falcon.testing.TestClient]:
    """The service, to which no test writes, after two snapshots: first Alice owes 80 % of 10 a and Bob
    75 % of 8 a, then Alice 1 more."""
    settings = replace(server, clickhouse_database="test_risk")
    source = replace(SOURCE, positions_=(owing(ALICE, 10, 80), owing(BOB, 8, 60)))
    later = replace(source, positions_=(owing(ALICE, 10, 81), owing(BOB, 8, 60, "native;dark")))
    with database(settings) as store:
        for dataset in DATASETS:
            take_snapshot(JOBS[dataset], source, store, NOON)
        take_snapshot(JOBS["positions"], later, store, NOON + MINUTE)
        yield falcon.testing.TestClient(create_app(settings, store, heads=FirstHeads(store)))


def test_a_moment_has_its_own_risk(client: Client) -> None:
    """Health of 1 is not liquidatable; debt in an asset without a price is unknown."""
    then, now = (data(client, "risk", query) for query in (f"at={SECOND}", ""))
    assert (then["accounts"], then["accounts_with_debt"], then["debt_value"]) == (4, 2, "140")
    assert (then["liquidatable"]["accounts"], then["at_risk"]["debt_value"]) == (0, "140")
    assert (now["accounts"], now["accounts_with_debt"], now["unpriced_debt_accounts"]) == (3, 1, 1)
    assert now["liquidatable"] == {
        "accounts": 1,
        "collateral_value": "100",
        "debt_value": "81",
        "extra": {"text": None},
    }
    borrower, unknown = data(client, "borrowers")
    assert [unknown[name] for name in ("address", "debt_value", "ltv", "health")] == [BOB, None, None, None]
    assert (borrower["ltv"], borrower["health"]) == ("0.81", "0.987654320987654321")
    assert [(one["price"], one["change"]) for one in borrower["liquidation"]] == [
        ("10.125", "0.0125"),
        ("0.987654320987654321", "-0.012345679012345679"),
    ]


def test_a_price_may_be_assumed_for_an_asset_without_one(client: Client) -> None:
    risk = data(client, "risk", "prices=DARK:2.5")
    assert (risk["accounts_with_debt"], risk["unpriced_debt_accounts"], risk["debt_value"]) == (2, 0, "231")
    assert risk["prices"][0]["price"] is None
    answer = client.simulate_get(f"{PATH}/risk/ladder", query_string="asset_id=native;dark")
    assert "an asset without a price" in expect_error(answer, 404, "entity_not_found", "user")


def test_each_snapshot_of_positions_writes_the_histories_of_risk(client: Client) -> None:
    expected = {"debt-at-risk": ["140", "81"], "accounts-at-risk": ["2", "1"], "liquidatable-debt": ["0", "81"]}
    expected["bad-debt"] = ["0", "0"]
    for name, values in expected.items():
        query = f"start={SECOND}&end={SECOND + 60}&period=min"
        assert [point["v"] for point in data(client, f"history/{name}", query)["points"]] == values


def test_positions_of_some_addresses_say_nothing_of_all_accounts(store: Store, settings: Settings) -> None:
    """The store had a source of that kind once, which told as many as it stated to be borrowing. What it stated of the
    risk stays when that is computed again."""

    class Partial(HandMade):
        def activity(self, at: Any) -> Activity:
            return Activity(1, 1, 0)

        def risk(self, at: Any) -> RiskTotals:
            return RiskTotals(D("140.5"), D(3))

    given = {name: getattr(SOURCE, name) for name in ("assets_", "markets_", "prices_")}
    partial, whole = (of(**given, positions_=(owing(ALICE, 10, 81),)) for of in (Partial, HandMade))
    for dataset in DATASETS:
        take_snapshot(JOBS[dataset], partial, store, NOON)
    take_snapshot(JOBS["positions"], whole, store, NOON + MINUTE)
    (portion,) = plan(store, "positions", NOON, NOON + 2 * MINUTE)
    assert recompute(store, portion) == 0
    client = falcon.testing.TestClient(create_app(settings, store, heads=FirstHeads(store)))
    expected = {"debt-at-risk": ["140.5", "81"], "accounts-at-risk": ["3", "1"], "liquidatable-debt": [None, "81"]}
    for name, values in expected.items():
        points = data(client, f"history/{name}", f"start={SECOND}&end={SECOND + 60}&period=min")["points"]
        assert [point["v"] for point in points] == values
    for path, query in (("risk", ""), ("risk/ladder", "asset_id=native;a&"), ("borrowers", f"address={ALICE}&")):
        answer = client.simulate_get(f"{PATH}/{path}", query_string=f"{query}at={SECOND}")
        message = expect_error(answer, 404, "entity_not_found", "user")
        assert message.startswith("This service knows the positions of some addresses only")
        assert data(client, path, query.rstrip("&"))
