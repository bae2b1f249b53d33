"""Situations of real lending protocols, as a source states them, and what HTTP and SQL must answer.

Figures are worked out by hand. U is a dollar asset with 6 decimals, E has 18 decimals and costs 2,000 USD, and the
liquidation LTV is 0.8. Every situation has assets and addresses of its own, so that all live in one store: snapshots of
one day at some of its hours.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.market.account_health import INFINITE
from analytics_service.market.assets import Asset, AssetGroup, AssetKind
from analytics_service.market.decimals import usd_value
from analytics_service.market.events import Action, Event
from analytics_service.market.instants import unix_second
from analytics_service.market.markets import (
    CollateralConfig,
    CollateralMarket,
    DebtConfig,
    DebtMarket,
    LendConfig,
    LendMarket,
    Market,
)
from analytics_service.market.portfolio import Metric, Portfolio, portfolio_metrics
from analytics_service.market.positions import Account, Balance, Holding, LendPosition, Position
from analytics_service.state.view import Views
from analytics_service.store.datasets.histories import HISTORIES
from analytics_service.store.schema import view_names
from jobs.recompute import day_by_day, recompute
from jobs.registry import JOBS
from jobs.runner import take_snapshot
from tests import clickhouse
from tests.doubles import FreshHeads
from tests.integration.databases import database
from tests.integration.handmade import HandMade
from tests.integration.routes import Client, client_of
from tests.integration.test_exports import exported

D = Decimal
DAY = datetime(2025, 3, 1, tzinfo=UTC)
# The snapshots, in hours of the day. The last one comes a minute after its end.
HOURS = (D(0), D(10), D(11), D(24) + 1 / D(60))
# The protocol token and rates never change, loans are of two snapshots, and nothing asks for routes.
SOME = {"ptoken": HOURS[:1], "rates": HOURS[:1], "loans": HOURS[2:], "routes": ()}
FLAGS = "with_text=true&with_value=true"
MAX_128 = 2**128 - 1


def instant_of(hour: Decimal) -> datetime:
    return DAY + timedelta(seconds=int(hour * 3600))


def of(symbol: str) -> str:
    """The id of an asset."""
    return f"native;{symbol}"


def address(name: str) -> str:
    return "0x" + name.encode().hex().rjust(40, "0")


@dataclass(frozen=True)
class Coin:
    """An asset, its price if it has any, and the asset that it is a receipt token of."""

    symbol: str
    decimals: int
    usd: Decimal | None = None
    origin: str | None = None

    @property
    def asset(self) -> Asset:
        plain = Asset(AssetGroup.NATIVE, self.symbol, self.symbol, self.symbol, self.symbol.lower(), self.decimals, 2)
        return replace(plain, kind=AssetKind.RECEIPT, origin_asset=of(self.origin)) if self.origin else plain

    def units(self, amount: str) -> int:
        return int(D(amount).scaleb(self.decimals))


COINS = {
    coin.symbol: coin
    for coin in (
        Coin("U", 6, D(1)),
        Coin("E", 18, D(2000)),
        Coin("P", 6, D("0.1")),
        Coin("FINE", 27, D("1234.567890123456789012")),
        Coin("WEI", 18, D(1)),
        Coin("DARK", 6),
        Coin("GAP", 6, D(1)),
        Coin("LOANED", 6, D(1)),
        Coin("NEGATIVE", 6, D(1)),
        Coin("EARNING", 6, D(1)),
        Coin("LOSING", 6, D(1)),
        Coin("MANY", 18, D(1)),
        Coin("CHEAP", 6, D("1E-18")),
        Coin("LARGE", 36, D(1)),
        Coin("WHOLE", 0, D(3)),
        Coin("SIX", 6, D(1)),
        Coin("RSIX", 8, origin="SIX"),
        Coin("WAD", 18, D(1)),
        Coin("RWAD", 8, origin="WAD"),
        Coin("NEST", 6, D("1.5")),
        Coin("RNEST", 18, origin="NEST"),
        Coin("RRNEST", 8, origin="RNEST"),
        Coin("THIN", 6, D(3)),
        Coin("RTHIN", 18, origin="THIN"),
        Coin("GIFT", 18, D(2000)),
        Coin("RGIFT", 18, origin="GIFT"),
        Coin("HELD", 6, D(1)),
        Coin("RHELD", 8, origin="HELD"),
    )
}


def units(symbol: str, amount: str) -> int:
    return COINS[symbol].units(amount)


def posted(balance: int, shares: int, cap: int | None = None) -> CollateralMarket:
    return CollateralMarket(CollateralConfig(True, D("0.75"), D("0.8"), cap, D("0.05"), D("0.1")), balance, shares)


def lent(symbol: str, amount: str, receipts: int | None = None, apr: str = "0.02") -> Market:
    principal = units(symbol, amount)
    return Market(of(symbol), LendMarket(D(apr), principal, principal if receipts is None else receipts), None, None)


def unlent(symbol: str) -> Market:
    return Market(of(symbol), None, None, None)


def with_collateral(market: Market, amount: str, cap: int | None = None) -> Market:
    """Shares of it are denom units, also of debt."""
    balance = units(market.asset_id.partition(";")[2], amount)
    return replace(market, collateral=posted(balance, balance, cap))


def with_debt(market: Market, amount: str, cap: int | None = None) -> Market:
    owed = units(market.asset_id.partition(";")[2], amount)
    rules = DebtConfig(True, cap, D("0.95"), D("0.1"))
    return replace(market, debt=DebtMarket(rules, D("0.05"), owed, owed, DAY, D(0)))


def borrower(name: str, posted: Mapping[str, str], owed: Mapping[str, str]) -> Position:
    collaterals, debts = (
        tuple(Holding(of(symbol), units(symbol, amount)) for symbol, amount in held.items()) for held in (posted, owed)
    )
    return Position(address(name), (Account(0, collaterals, debts),))


def loan_of(name: str, symbol: str, amount: str, at: datetime, *, is_valued: bool = True) -> Event:
    """A loan, whose value the source states unless `is_valued` is false or the asset has no price."""
    coin = COINS[symbol]
    usd = usd_value(coin.units(amount), coin.decimals, coin.usd) if is_valued and coin.usd is not None else None
    return Event(
        name, Action.BORROW, of(symbol), address(name), at, coin.units(amount), usd, coin.usd if usd else None, 0,
        tx_hash=f"tx {name}",
    )  # fmt: skip


def stated(hour: Decimal) -> HandMade:
    """What the source states at an hour."""
    at = instant_of(hour)
    prices = {of(coin.symbol): coin.usd for coin in COINS.values() if coin.usd is not None}
    if hour == 11:
        del prices[of("GAP")]
    return HandMade(
        assets_=[coin.asset for coin in COINS.values()],
        prices_=prices,
        markets_=markets(hour),
        positions_=POSITIONS if hour else [OWING_CATEGORY, *POSITIONS[:-1]],
        events_=[one for one in events(hour) if one.at <= at],
    )


def markets(hour: Decimal) -> Sequence[Market]:
    used = with_debt(with_collateral(lent("U", "9000000", apr="0.02"), "5000", MAX_128), "2000000", MAX_128)
    ether = with_collateral(lent("E", "1"), "20")
    assert ether.lend and ether.collateral
    return (
        used,
        replace(
            ether,
            lend=replace(ether.lend, config=LendConfig(2 * 10**24, paused=False), interest_paid=7),
            collateral=replace(ether.collateral, config=replace(ether.collateral.config, paused=True, frozen=False)),
        ),
        with_collateral(lent("FINE", "1"), "1"),
        with_debt(lent("WEI", "1"), "1"),
        with_debt(with_collateral(lent("DARK", "5000000"), "7"), "1000000"),
        with_collateral(lent("GAP", "1"), "1000"),
        with_debt(lent("LOANED", "1"), "1"),
        lent("NEGATIVE", "1", apr="-0.001"),
        lent("EARNING", "2000" if hour < 11 else "2200", units("EARNING", "100000")),
        lent("LOSING", "1050" if 10 <= hour < 24 else "1100", units("LOSING", "1000")),
        Market(of("MANY"), LendMarket(D(100), 10**18, 10**30), posted(10**18, 10**30), None),
        with_collateral(lent("CHEAP", "1", apr="-1"), "1", 2**256 - 1),
        Market(of("LARGE"), LendMarket(D(0), 2**127, 2**127), posted(2**127, 2**127), None),
        with_collateral(lent("WHOLE", "9"), "7"),
        lent("SIX", "22555.44", units("RSIX", "1000000")),
        with_collateral(unlent("RSIX"), "100000"),
        lent("WAD", "2200", units("RWAD", "100000")),
        with_collateral(unlent("RWAD"), "50000"),
        with_collateral(lent("NEST", "1000", units("RNEST", "500")), "8"),
        with_collateral(lent("RNEST", "400", units("RRNEST", "100")), "1"),
        with_collateral(unlent("RRNEST"), "1"),
        lent("THIN", "1.234567", 3 * 10**30),
        with_collateral(unlent("RTHIN"), "1E+12"),
        Market(of("GIFT"), LendMarket(D(0), 10**18 + 1, 1), None, None),
        Market(of("RGIFT"), None, posted(1, 1), None),
        lent("HELD", "20009", units("RHELD", "1000000")),
        with_collateral(unlent("RHELD"), "50000"),
    )


# 50,000 receipts, of which the source states where they are in one way or another.
RECEIPTS = units("RHELD", "50000")
HOLDERS = {
    "in wallet": Position(address("in wallet"), wallet=(Balance(of("RHELD"), RECEIPTS),)),
    "lent": Position(address("lent"), lends=(LendPosition(of("HELD"), RECEIPTS, 0),)),
    "in both": Position(
        address("in both"),
        lends=(LendPosition(of("HELD"), RECEIPTS, 0),),
        wallet=(Balance(of("RHELD"), RECEIPTS),),
    ),
    "posted": borrower("posted", {"RHELD": "50000"}, {}),
}
POSITIONS = (
    *HOLDERS.values(),
    borrower("fine", {"FINE": "1"}, {"U": "160"}),
    borrower("wei", {"U": "1000"}, {"WEI": "0.000000000000000001"}),
    borrower("dark debt", {"U": "100"}, {"DARK": "1000000", "U": "10"}),
    borrower("dark collateral", {"DARK": "7", "U": "100"}, {"U": "10"}),
    borrower("gap", {"GAP": "1000"}, {"U": "800"}),
    borrower("many", {"MANY": "1E+12"}, {"U": "0.1"}),
    borrower("cheap", {"CHEAP": "1"}, {"U": "1"}),
    Position(address("large"), (Account(0, (Holding(of("LARGE"), 2**127),), (Holding(of("U"), 10**8),)),)),
    borrower("whole", {"WHOLE": "7"}, {"U": "10"}),
    borrower("six", {"RSIX": "100000"}, {"U": "1000"}),
    borrower("wad", {"RWAD": "50000"}, {"U": "440"}),
    borrower("nest", {"NEST": "8", "RNEST": "1", "RRNEST": "1"}, {"U": "10"}),
    borrower("gift", {"RGIFT": "1E-18"}, {}),
    borrower("owing gift", {"RGIFT": "1E-18"}, {"U": "1"}),
    Position(
        address("category"),
        (Account(0, (Holding(of("E"), 10 * 10**18, D("0.9"), D("0.93")),), (Holding(of("U"), 15_000 * 10**6),)),),
    ),
)
# At first it has the terms of the market.
OWING_CATEGORY = borrower("category", {"E": "10"}, {"U": "15000"})
LATE, MOVED_TO = DAY + timedelta(hours=23, minutes=59, seconds=59), DAY + timedelta(hours=10, minutes=30, seconds=12)


def events(hour: Decimal) -> Iterable[Event]:
    yield loan_of("unvalued", "DARK", "5", DAY + timedelta(hours=3))
    yield loan_of("unvalued again", "LOANED", "7", DAY + timedelta(hours=4), is_valued=False)
    yield loan_of("moved", "U", "1000", MOVED_TO - timedelta(seconds=12 if hour < 24 else 0))
    yield replace(loan_of("large", "LARGE", "1", DAY), amount=2**255, usd=D(2**255).scaleb(-36), price=D(1))
    yield loan_of("late", "LOANED", "30", LATE)


@dataclass
class Asked:
    """The service and its store after the last snapshot."""

    settings: Settings
    store: Store

    @cached_property
    def client(self) -> Client:
        return client_of(self.settings, self.store, unix_second(instant_of(HOURS[-1])) + 30, FreshHeads)

    def get(self, path: str, query: str = "") -> Any:
        answer = self.client.simulate_get(f"/api/v1/{path}", query_string=query)
        assert answer.status_code == 200, answer.text
        return answer.json["data"]

    def points(self, path: str, query: str, symbol: str | None = None) -> list[str | None]:
        """The values of a history of an asset, or of a total."""
        answer = self.get(path, f"start={unix_second(DAY)}&{query}" + (f"&asset_ids={of(symbol)}" if symbol else ""))
        (series,) = answer["series"] if symbol else [answer]
        return [point["v"] for point in series["points"]]

    def rows(self, sql: str, **values: object) -> list[dict[str, Any]]:
        with clickhouse.client(self.settings) as own:
            return list(own.query(sql, parameters=values).named_results())

    @cached_property
    def accounts(self) -> dict[tuple[str, int], dict[str, Any]]:
        """The rows of the view, by address and index."""
        return {(row["address"], row["account_index"]): row for row in self.rows("SELECT * FROM account")}

    @cached_property
    def borrowers(self) -> dict[str, dict[str, Any]]:
        return {one["address"]: one for one in self.get("analytics/market/borrowers", "limit=1000&with_text=true")}

    def health(self, name: str) -> dict[str, Any]:
        result: dict[str, Any] = self.get(f"users/{address(name)}/markets/borrow/accounts/0/health", "with_text=true")
        return result


@pytest.fixture(scope="module")
def asked(server: Settings) -> Iterator[Asked]:
    settings = replace(server, clickhouse_database="test_situations")
    with database(settings, views=True) as store:
        for hour in HOURS:
            for name, job in JOBS.items():
                if hour in SOME.get(name, HOURS):
                    take_snapshot(job, stated(hour), store, instant_of(hour))
        yield Asked(settings, store)


def test_an_asset_with_27_decimals_is_exact(asked: Asked) -> None:
    health = "6.172839450617283945"
    shown = asked.borrowers[address("fine")]
    assert (shown["collateral_value"], shown["health"]) == ("1234.567890123456789012", health)
    assert asked.health("fine")["result"] == health


def test_a_debt_of_the_smallest_unit_gives_a_huge_health(asked: Asked) -> None:
    """0.8 * 1,000 USD by 1e-18 USD."""
    assert asked.health("wei")["result"] == asked.borrowers[address("wei")]["health"] == "8" + "0" * 20


EXTREMES = {
    # Collateral and debt in USD, and health. The first has 10^30 shares of 1 MANY.
    "many": ("1", "0.1", "8"),
    "cheap": ("0.000000000000000001", "1", "0.000000000000000001"),
    "large": ("170.141183460469231732", "100", "1.361129467683753854"),
    "whole": ("21", "10", "1.68"),
    "six": ("2255.544", "1000", "1.8044352"),
    "wad": ("1100", "440", "2"),
    # 8 NEST, one RNEST of 2 NEST, and one RRNEST of 4 RNEST.
    "nest": ("27", "10", "2.16"),
    # With an LTV of 0.93 of its own.
    "category": ("20000", "15000", "1.24"),
}


def test_extremes_have_their_values(asked: Asked) -> None:
    for name, expected in EXTREMES.items():
        shown = asked.borrowers[address(name)]
        assert tuple(shown[field] for field in ("collateral_value", "debt_value", "health")) == expected, name


def test_a_cap_of_128_bits_is_a_number(asked: Asked) -> None:
    (row,) = asked.rows("SELECT collateral_cap, borrow_cap FROM market_now WHERE symbol = 'U'")
    assert [*row.values()] == [pytest.approx(MAX_128 / 10**6)] * 2


def test_debt_that_never_had_a_price_makes_health_unknown(asked: Asked) -> None:
    health = asked.health("dark debt")
    assert (health["result"], health["extra"]["text"]["result"]) == (None, "N/A")
    shown = asked.borrowers[address("dark debt")]
    assert [*asked.borrowers][-2:] == [address("dark debt"), address("owing gift")]
    assert [shown[name] for name in ("collateral_value", "debt_value", "ltv", "health")] == ["100", None, None, None]
    assert shown["extra"]["text"]["health"] == "N/A"
    for metric, value in (("collateral", "100"), ("health", None)):
        course = f"metric={metric}&end=2025-03-01&period=d"
        assert asked.points(f"users/{address('dark debt')}/history", course) == [value], metric
    risk = asked.get("analytics/market/risk")
    assert risk["unpriced_debt_accounts"] == 1
    assert (
        sum(part["accounts"] for part in risk["histogram"])
        == risk["accounts_with_debt"]
        == len(POSITIONS) - len(HOLDERS) - 3
    )
    assert asked.rows("SELECT * FROM account_risk WHERE address = {a:String}", a=address("dark debt")) == []


def test_collateral_that_never_had_a_price_counts_as_nothing(asked: Asked) -> None:
    """0.8 * 100 USD by 10 USD."""
    shown = asked.borrowers[address("dark collateral")]
    assert (shown["collateral_value"], shown["health"]) == ("100", "8")
    assert asked.accounts[address("dark collateral"), 0]["unpriced_collaterals"] == 1
    # And those of the gift.
    assert asked.get("analytics/market/risk")["unpriced_collateral_accounts"] == 3


def test_a_receipt_token_costs_what_it_redeems(asked: Asked) -> None:
    receipts = asked.rows("SELECT asset_id, price, follows FROM price_now WHERE symbol LIKE 'R%'")
    prices = {row["asset_id"]: (row["price"], row["follows"]) for row in receipts}
    markets = {row["asset_id"]: row for row in asked.rows("SELECT asset_id, redemption_ratio, price FROM market_now")}
    for symbol, ratio, price in (
        ("THIN", "0.000000000000411522", "0.000000000001234566"),
        ("SIX", "0.02255544", "0.02255544"),
        ("WAD", "0.022", "0.022"),
        ("NEST", "2", "3"),
        ("RNEST", "4", "12"),
    ):
        receipt = of(f"R{symbol}")
        state = asked.get("markets/lend/lookup", f"asset_id={of(symbol)}&with_text=true")["state"]
        text = f"{100 * D(ratio):.2f}%"
        assert (state["redemption_ratio"], state["extra"]["text"]["redemption_ratio"]) == (ratio, text)
        shown = asked.get("markets/borrow/collaterals/lookup", f"asset_id={receipt}&with_value=true")
        assert shown["state"]["extra"]["value"]["price"] == price
        assert prices[receipt] == (near(price), True)
        assert (markets[of(symbol)]["redemption_ratio"], markets[receipt]["price"]) == (near(ratio), near(price))


def test_receipt_tokens_are_deposits_wherever_they_are(asked: Asked) -> None:
    """Each of 50,000 redeems 0.020009."""
    values = {row.pop("address"): row for row in asked.rows("SELECT address, wallet_usd, net_usd FROM account_value")}
    lenders = {row.pop("address"): row for row in asked.rows("SELECT address, assets, lent_usd FROM lender")}
    for name in HOLDERS:
        part = "collateralized" if name == "posted" else "held"
        (pool,) = asked.get(f"users/{address(name)}/markets/lend")["asset_pools"]
        assert pool["receipt_amounts"][part] == pool["receipt_amounts"]["total"] == str(RECEIPTS)
        assert pool["origin_equivalent"][part] == pool["origin_equivalent"]["total"] == "1000450000"
        course = "metric=deposits&end=2025-03-01&period=d"
        assert asked.points(f"users/{address(name)}/history", course) == ["1000.45"], name
        assert values[address(name)] == {"wallet_usd": 0, "net_usd": near("1000.45")}
        assert lenders[address(name)] == {"assets": 1, "lent_usd": near("1000.45")}


def test_lenders_are_those_of_the_view(asked: Asked) -> None:
    """And five with other receipt tokens among their collateral."""
    (row,) = asked.rows("SELECT count() AS lenders FROM lender")
    assert asked.get("analytics/market/state")["lender_active"] == row["lenders"] == len(HOLDERS) + 5


def test_what_is_lent_again_counts_once(asked: Asked) -> None:
    """1,000 NEST are lent, and 8 are collateral."""
    deposits = asked.get("markets/history/deposits", f"start={unix_second(DAY)}&end=2025-03-01&period=d")
    assert of("NEST") in (listed := {series["asset"]["id"] for series in deposits["series"]})
    assert of("RNEST") not in listed
    sums = "SELECT sum(deposits_usd) AS deposits, sum(tvl_usd) AS tvl FROM market_now WHERE symbol LIKE '%NEST'"
    assert asked.rows(sums) == [{"deposits": 1500, "tvl": 1512}]
    supply = asked.get("markets/supply")
    (row,) = asked.rows("SELECT sum(deposits_usd) AS deposits, sum(tvl_usd) AS tvl FROM market_now")
    assert [float(supply["lend"]["principal"]), float(supply["tvl"]["tvl"])] == [pytest.approx(v) for v in row.values()]


def test_receipt_tokens_fall_with_their_asset(asked: Asked) -> None:
    """18 NEST secure 80 % of their value for 10 USD."""
    (price, other) = asked.borrowers[address("nest")]["liquidation"]
    assert (price["asset"]["id"], other["asset"]["id"]) == (of("NEST"), of("U"))
    assert (price["price"], price["change"]) == ("0.694444444444444444", "-0.537037037037037037")
    for symbol in ("NEST", "RNEST", "RRNEST"):
        ladder = asked.get("analytics/market/risk/ladder", f"asset_id={of(symbol)}&from=-55&to=-50")
        assert (ladder["asset_info"]["asset"]["id"], ladder["price"]) == (of("NEST"), "1.5")
        fallen, before = (D(step["debt_value"]) for step in ladder["steps"])
        assert fallen - before == 10
    exposures = {one["asset_info"]["asset"]["id"]: one for one in asked.get("analytics/market/risk")["by_price"]}
    assert (exposures[of("NEST")]["collateral_value"], exposures[of("NEST")]["debt_value"]) == ("27", "0")
    assert {of("RNEST"), of("RRNEST"), of("RSIX")}.isdisjoint(exposures)


def test_a_receipt_token_of_a_price_beyond_what_is_stored_has_none(asked: Asked) -> None:
    """One smallest unit redeems all that was donated."""
    shown = asked.get("markets/borrow/collaterals/lookup", f"asset_id={of('RGIFT')}&with_value=true")
    assert shown["state"]["extra"]["value"]["price"] is None
    assert asked.rows("SELECT price FROM price_now WHERE symbol = 'RGIFT'") == [{"price": None}]
    for name in ("gift", "owing gift"):
        assert asked.health(name)["result"] is asked.accounts[address(name), 0]["health"] is None
    # It hides no risk of others.
    (row,) = asked.rows("SELECT max(observed_at) AS at FROM debt_at_risk")
    assert row["at"] == instant_of(HOURS[-1])


def test_terms_of_its_own_count_from_the_snapshot_that_states_them(asked: Asked) -> None:
    """15,000 USD by 10 E: at the market's 80 % health is 1.0667, at 93 % it is 1.24."""
    first = f"at={unix_second(DAY)}"
    for query, health, terms in ((first, "1.066666666666666667", (None, None)), ("", "1.24", ("0.9", "0.93"))):
        account = asked.get(f"users/{address('category')}/markets/borrow/accounts/0", query)
        (held,) = account["collaterals"]
        assert account["health"]["result"] == health
        assert (held["allowable_ltv"], held["liquidation_ltv"]) == terms
    own, _ = asked.borrowers[address("category")]["liquidation"]
    assert (own["asset"]["id"], own["price"]) == (of("E"), "1612.903225806451612903")
    held_at = f"FROM position_now WHERE kind = 'collateral' AND address = '{address('category')}'"
    assert asked.rows(f"SELECT allowable_ltv, liquidation_ltv {held_at}") == [
        {"allowable_ltv": 0.9, "liquidation_ltv": 0.93}
    ]


def test_states_and_caps_of_a_market_are_shown(asked: Asked) -> None:
    ether = next(one for one in asked.get("markets/merged") if one["asset_info"]["asset"]["id"] == of("E"))
    assert [ether["borrow_collateral"]["config"][state] for state in ("paused", "frozen")] == [True, False]
    assert [ether["lend"]["config"][name] for name in ("supply_cap", "paused", "frozen")] == [
        f"2{'0' * 24}",
        False,
        None,
    ]
    assert asked.rows("SELECT supply_cap, paused, frozen FROM market_now WHERE symbol = 'E'") == [
        {"supply_cap": 2_000_000, "paused": True, "frozen": False}
    ]


def test_a_price_that_is_missing_in_one_snapshot_changes_nothing(asked: Asked) -> None:
    """At the health of 1 that its account has, 800 USD are at risk beside the 1 of the cheap one; and at first 15,000
    of the account that has terms of its own later."""
    for path, values in (("debt-at-risk", ["15801"] * 10 + ["801"] * 14), ("liquidatable-debt", ["1"] * 24)):
        points = asked.points(f"analytics/market/history/{path}", "end=2025-03-01&period=h")
        assert points == values, path
    points = asked.points("markets/history/collateral", "end=2025-03-01&period=h", "GAP")
    assert points == ["1000"] * 24
    rows = asked.rows("SELECT usd FROM debt_at_risk ORDER BY observed_at")
    assert [row["usd"] for row in rows] == [15_801] + [801] * (len(HOURS) - 1)


def test_the_value_of_an_event_without_a_price_is_unknown(asked: Asked) -> None:
    for name, symbol in (("unvalued", "DARK"), ("unvalued again", "LOANED")):
        (shown,) = asked.get(f"users/{address(name)}/tx-history", FLAGS)
        assert (shown["historic_price"], shown["historic_value"]) == (None, None)
        assert shown["extra"]["text"]["historic_value"] == "N/A"
        for view in ("events", "loan"):
            (row,) = asked.rows(f"SELECT usd FROM {view} WHERE address = {{a:String}}", a=address(name))
            assert row["usd"] is None, (view, symbol)
    # The loans of 1,000 and 30. A third value exceeds all that can be true.
    loans = asked.get("analytics/market/state")["loans_originated"]
    assert (loans["total_value"], loans["unpriced_loans"]) == ("1030", 3)
    before = f"at={unix_second(DAY + timedelta(hours=11))}"
    assert asked.get("analytics/market/state", before)["loans_originated"]["unpriced_loans"] == 3


def test_interest_paid_is_the_growth_of_the_ratio_above_its_highest(asked: Asked) -> None:
    """From 0.02 to 0.022 while 100,000 receipts are out; and a loss that is recovered. E has what the source states."""
    paid = {one["asset"]["id"]: one["lend_interest_paid"] for one in asked.get("analytics/market/state")["assets"]}
    assert (paid[of("EARNING")], paid[of("LOSING")], paid[of("E")]) == ("200000000", "0", "7")


def test_a_loan_in_the_last_second_is_of_its_day(asked: Asked) -> None:
    path = "analytics/market/history/loans-originated/by-asset"
    assert asked.points(path, "end=2025-03-02&period=d", "LOANED") == ["30", "30"]
    (row,) = asked.rows("SELECT max(observed_at) AS at FROM loans_originated WHERE symbol = 'LOANED'")
    assert row["at"] == LATE


def near(value: Decimal | str | None) -> Any:
    """What views, which calculate in binary floating point, have for an exact value."""
    return None if value is None else pytest.approx(float(value), rel=1e-12, abs=5e-19)


def test_views_value_every_account_as_the_service_does(asked: Asked) -> None:
    """Those of extremes, of prices that were lost, and of assets that never had one."""
    view = Views(asked.store, FreshHeads(asked.store)).newest()
    stated, worths = {}, {}
    for position in POSITIONS:
        portfolio = Portfolio(view.position(position.address), view)
        worths[position.address] = near(portfolio_metrics(Metric.NET_VALUE, portfolio))
        for account in portfolio.accounts:
            sides = account.values.known("collateral"), account.values.known("debt")
            health = account.health.result
            stated[position.address, account.index] = [*map(near, sides), near(None if health == INFINITE else health)]
    columns = ("collateral_usd", "debt_usd", "health")
    assert {name: [row[column] for column in columns] for name, row in asked.accounts.items()} == stated
    rows = asked.rows("SELECT address, net_usd FROM account_value")
    assert {row["address"]: row["net_usd"] for row in rows} == worths
    newest = f"FROM account_history(address = '{address('nest')}') ORDER BY observed_at DESC LIMIT 1"
    (row,) = asked.rows(f"SELECT {', '.join(columns)} {newest}")
    assert [*row.values()] == stated[address("nest"), 0]


@pytest.mark.parametrize("symbol", ["E", "RRNEST"])
def test_views_have_the_ladders_of_the_service(asked: Asked, symbol: str) -> None:
    """Of own liquidation LTVs, and of receipt tokens."""
    at = f"asset_id = '{of(symbol)}', time = '{instant_of(HOURS[-1]):%FT%TZ}'"
    columns = ("change", "price", "accounts", "collateral_usd", "debt_usd", "bad_debt_usd")
    fields = ("change", "price", "accounts", "collateral_value", "debt_value", "bad_debt")
    steps = asked.get("analytics/market/risk/ladder", f"asset_id={of(symbol)}")["steps"]
    rows = asked.rows(f"SELECT * FROM risk_ladder({at})")
    stated = [[near(step[name]) for name in fields] for step in steps]
    assert [[row[name] for name in columns] for row in rows] == stated


def test_risk_comes_out_the_same_when_it_is_computed_again(asked: Asked) -> None:
    portions = day_by_day(asked.store, ("positions",), DAY, instant_of(HOURS[-1]) + timedelta(seconds=1))
    assert [recompute(asked.store, portion) for portion in portions] == [0] * len(portions)


@pytest.mark.slow
def test_extremes_leave_out_no_row_of_any_view(asked: Asked) -> None:
    at = f"time = '{instant_of(HOURS[-1]):%FT%TZ}'"
    arguments = {"price_at": at, "position_at": at, "account_at": at, "account_item_at": at}
    arguments["anomalies"] = f"start = 0, end = '{instant_of(HOURS[-1]):%FT%TZ}', factor = 3"
    arguments["risk_ladder"] = f"asset_id = '{of('CHEAP')}', {at}"
    arguments["account_history"] = f"address = '{address('gift')}'"
    views = {*view_names()} - {history.name for history in HISTORIES}
    called = {view: f"{view}({arguments[view]})" if view in arguments else view for view in views}
    # Hashes need all columns of all rows.
    select = "SELECT '{}' AS view, count() AS n, max(cityHash64(*)) AS hash FROM {}"
    rows = asked.rows(" UNION ALL ".join(select.format(*item) for item in called.items()))
    counts = {row["view"]: row["n"] for row in rows}
    # Ten deposits: what is held of each, what is collateral of seven, and what two wallets have.
    held = sum(len(account.collaterals + account.debts) for one in POSITIONS for account in one.accounts)
    listed = {"market_now": len(markets(HOURS[-1])), "assets": len(COINS), "position_now": held + 10 + 7 + 2}
    assert counts.items() >= listed.items()
    assert {view for view, count in counts.items() if not count} <= {"corrections"}


@pytest.mark.slow
def test_extremes_leave_out_no_row_of_an_export(asked: Asked, tmp_path: Path) -> None:
    assert exported(asked.store, tmp_path / "market", "market") > 0
    assert exported(asked.store, tmp_path / "account", "account") == sum(len(one.accounts) for one in POSITIONS)
