"""What a source may state of collateral and markets: own LTVs, as in e-mode, states, and a cap of what is lent."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.market.assets import Asset, AssetGroup
from analytics_service.market.instants import unix_second
from analytics_service.market.markets import CollateralConfig, CollateralMarket, LendConfig, LendMarket, Market
from analytics_service.market.positions import Account, Holding, Position
from analytics_service.state.view import Views
from jobs.registry import JOBS
from jobs.runner import take_snapshot
from tests.doubles import FreshHeads
from tests.integration.handmade import CONFIG, NOON, HandMade, debt_market
from tests.integration.routes import client_of

D = Decimal
E, U = "native;e", "native;u"
ADDRESS = "0x" + "e" * 40
RULES = CollateralConfig(True, D("0.75"), D("0.8"), None, D(0), D(0), paused=True, frozen=False)
SOURCE = HandMade(
    assets_=[Asset(AssetGroup.NATIVE, key, key, key.upper(), key, 18, 2) for key in ("e", "u")],
    prices_={E: D(2000), U: D(1)},
    config_=replace(CONFIG, staking_health_modifier=D(0)),
    markets_=[
        Market(E, LendMarket(D(0), 5, 5, interest_paid=7), CollateralMarket(RULES, 20 * 10**18, 20 * 10**18), None),
        Market(
            U,
            LendMarket(D(0), 10**24, 10**24, config=LendConfig(2 * 10**24, paused=False)),
            None,
            debt_market(balance=10**24, shares=10**24),
        ),
    ],
)


def owing(**terms: Decimal) -> HandMade:
    """10 E, 20,000 USD, against 15,000 U."""
    account = Account(0, (Holding(E, 10 * 10**18, **terms),), (Holding(U, 15_000 * 10**18),))
    return replace(SOURCE, positions_=[Position(ADDRESS, (account,))])


@pytest.mark.usefixtures("views")
def test_own_ltvs_count_from_the_snapshot_that_states_them(
    store: Store, settings: Settings, run: Callable[[str], list[tuple[Any, ...]]]
) -> None:
    """At the market's 80 % health is 1.0667, at 93 % it is 1.24: liquidated at 15,000 / 9.3 USD."""
    for name in ("prices", "markets", "ptoken"):
        take_snapshot(JOBS[name], SOURCE, store, NOON)
    take_snapshot(JOBS["positions"], owing(), store, NOON)
    later = NOON + timedelta(minutes=1)
    take_snapshot(JOBS["positions"], owing(allowable_ltv=D("0.9"), liquidation_ltv=D("0.93")), store, later)

    client = client_of(settings, store, unix_second(later) + 30, FreshHeads)

    def get(path: str, query: str = "") -> Any:
        answer = client.simulate_get(f"/api/v1/{path}", query_string=query)
        assert answer.status_code == 200, answer.text
        return answer.json["data"]

    for query, health, terms in (
        (f"at={unix_second(NOON)}", "1.066666666666666667", (None, None)),
        ("", "1.24", ("0.9", "0.93")),
    ):
        account = get(f"users/{ADDRESS}/markets/borrow/accounts/0", query)
        (held,) = account["collaterals"]
        assert account["health"]["result"] == health
        assert (held["allowable_ltv"], held["liquidation_ltv"]) == terms
        (borrower,) = get("analytics/market/borrowers", query)
        assert borrower["health"] == health
    assert borrower["liquidation"][0]["price"] == "1612.903225806451612903"
    points = get(f"users/{ADDRESS}/history", f"metric=health&period=min&start={unix_second(NOON)}&end=now")["points"]
    assert [point["v"] for point in points] == ["1.066666666666666667", "1.24"]
    e, u = get("markets/merged")
    assert [e["borrow_collateral"]["config"][state] for state in ("paused", "frozen")] == [True, False]
    assert [u["lend"]["config"][name] for name in ("supply_cap", "paused", "frozen")] == [f"2{'0' * 24}", False, None]
    assert [u["borrow_debt"]["config"][state] for state in ("paused", "frozen")] == [None, None]
    states = run("SELECT supply_cap, paused, frozen FROM market_now ORDER BY asset_id")
    assert states == [(None, True, False), (2_000_000, False, None)]

    steps = get("analytics/market/risk/ladder", f"asset_id={E}&from=-20&to=-15")["steps"]
    assert [step["accounts"] for step in steps] == [1, 0]
    (by_asset,) = get("analytics/market/risk", "prices=e:-20%")["by_collateral"]
    assert (by_asset["collateral_value"], by_asset["liquidatable_value"]) == ("16000", "16000")

    assert run("SELECT usd FROM debt_at_risk ORDER BY observed_at") == [(15_000,), (0,)]
    assert run("SELECT allowable_ltv, liquidation_ltv FROM position_now WHERE kind = 'collateral'") == [(0.9, 0.93)]


def test_interest_is_what_the_source_states_of_each_market_else_what_snapshots_show(store: Store) -> None:
    """7 units of E are stated; those who lend 10^24 units of U get a tenth more from one snapshot to the next."""
    take_snapshot(JOBS["markets"], SOURCE, store, NOON)
    e, u = SOURCE.markets_
    assert u.lend is not None
    later = [e, replace(u, lend=replace(u.lend, principal=11 * 10**23))]
    take_snapshot(JOBS["markets"], replace(SOURCE, markets_=later), store, NOON + timedelta(minutes=1))
    view = Views(store, FreshHeads(store)).newest()
    assert view.interest_paid == {E: 7, U: 10**23}
