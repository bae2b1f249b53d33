"""The views that researchers read, against what the service answers over HTTP and against sums by hand."""

import io
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

from analytics_service.config.settings import Settings
from analytics_service.market.assets import Asset, AssetGroup
from analytics_service.market.markets import CollateralConfig, CollateralMarket, LendMarket, Market
from analytics_service.market.positions import Account, Balance, Holding, LendPosition, Position, Stake
from analytics_service.store.connection import Store
from jobs.registry import JOBS
from jobs.runner import run_once
from tests import clickhouse
from tests.integration.conftest import Run, Simulated
from tests.integration.handmade import CONFIG, NOON, HandMade, debt_market
from tests.integration.routes import Client

# Views of the present, and those as of an instant with the same columns.
_AS_OF = {"price_now": "price_at", "position_now": "position_at", "account": "account_at"}
# Readers of Parquet, Arrow and CSV have these types of their own.
_TYPES = {"String", "Bool", "UInt8", "UInt32", "UInt64", "Decimal(38, 18)", "DateTime64(3, 'UTC')"}
_COLUMNS = """
SELECT c.table AS view, groupArray((c.name, c.type)) AS columns
FROM system.columns AS c
INNER JOIN system.tables AS t ON t.database = c.database AND t.name = c.table
WHERE c.database = currentDatabase() AND t.engine = 'View'
GROUP BY view
ORDER BY view
"""
_ONE = "0x" + "1" * 40
_TWO = "0x" + "2" * 40


def asset(symbol: str, decimals: int) -> Asset:
    return Asset(AssetGroup.TOKEN, symbol.lower(), symbol, symbol, symbol, decimals, 2)


def data(client: Client, path: str, query: str = "") -> Any:
    """What a path answers."""
    answer = client.simulate_get(f"/api/v1{path}", query_string=query)
    assert answer.status_code == 200, answer.text
    return answer.json["data"]


@pytest.fixture(scope="session")
def users(simulated: Simulated, protocol: Client) -> dict[str, Any]:
    """What the service answers about every address that has a position, with values."""
    addresses = [row["address"] for row in simulated.rows("SELECT DISTINCT address FROM position ORDER BY address")]
    return {address: data(protocol, f"/users/{address}/user", "with_value=true") for address in addresses}


def test_health_of_every_account_is_that_of_the_service_digit_for_digit(
    simulated: Simulated, users: dict[str, Any]
) -> None:
    stated: dict[tuple[str, int], list[Decimal | None]] = {}
    for address, user in users.items():
        for account in user["markets"]["borrow"]["accounts"]:
            parts = [account["health"][part] for part in ("base", "boost", "result")]
            stated[address, account["index"]] = [None] * 3 if "Infinity" in parts else list(map(Decimal, parts))
    rows = simulated.rows("SELECT * FROM account")
    viewed = {(row["address"], row["account_index"]): [row["base"], row["boost"], row["health"]] for row in rows}
    assert viewed == stated
    # Without debt, without a stake, with a stake for the largest boost, and in between.
    assert {boost for _, boost, _ in viewed.values()} > {None, Decimal(0), Decimal("0.05")}


def test_every_item_has_the_amount_and_the_value_that_the_service_states(
    simulated: Simulated, users: dict[str, Any]
) -> None:
    rows = simulated.rows("SELECT * FROM position_now WHERE kind IN ('collateral', 'debt', 'wallet')")
    viewed = {
        (row["address"], row["kind"], row["account_index"], row["asset_id"]): (row["units"], row["usd"])
        for row in rows
        if row["symbol"]
    }
    stated = {}
    for address, user in users.items():
        for account in user["markets"]["borrow"]["accounts"]:
            for kind in ("collateral", "debt"):
                for item in account[f"{kind}s"]:
                    stated[address, kind, account["index"], _id(item)] = _worth(item, "principal")
        for balance in user["wallets"]["balances"]:
            if balance["values"]["kind"] == "known":
                stated[address, "wallet", 0, _id(balance["values"])] = _worth(balance["values"], "amount")
    assert viewed == stated
    assert len(viewed) > 1000


def test_lenders_lend_what_their_receipt_tokens_redeem(simulated: Simulated, users: dict[str, Any]) -> None:
    rows = simulated.rows(
        "SELECT address, asset_id, sum(units) AS units FROM position_now WHERE kind LIKE 'lend_%' GROUP BY ALL"
    )
    assert {(row["address"], row["asset_id"]): row["units"] for row in rows} == {
        (address, _id(lent)): _units(lent, lent["origin_equivalent"]["total"])
        for address, user in users.items()
        for lent in user["markets"]["lend"]["asset_pools"]
    }


def _id(item: Any) -> str:
    return str(item["asset_info"]["asset"]["id"])


def _units(item: Any, amount: str) -> Decimal:
    return Decimal(amount).scaleb(-item["asset_info"]["metadata"]["decimals_denom"])


def _worth(item: Any, field: str) -> tuple[Decimal, Decimal | None]:
    """Units and value of an item of an answer."""
    value = item["extra"]["value"]
    return _units(item, item[field]), value and Decimal(value[field])


def test_markets_are_worth_what_their_histories_say_at_each_snapshot(simulated: Simulated) -> None:
    """The job computes the histories from the source's records, before they are stored."""
    columns = {"deposits_usd": "usd", "collateral_usd": "usd", "debt_usd": "usd", "utilization": "ratio"}
    columns |= {"lend_rate": "apr", "borrow_rate": "apr"}
    for history, value in columns.items():
        column = history.replace("_rate", "_apr")
        viewed = f"(SELECT observed_at, asset_id, {column} AS viewed FROM market WHERE {column} IS NOT NULL)"
        both = f"FROM {viewed} AS m INNER JOIN {history} AS h USING (observed_at, asset_id)"
        assert simulated.rows(f"SELECT * {both} WHERE viewed != h.{value}") == []
        counts = simulated.rows(
            f"SELECT (SELECT count() FROM {viewed}) AS viewed, (SELECT count() FROM {history}) AS kept"
        )
        assert counts[0]["viewed"] == counts[0]["kept"] > 0
    totals = simulated.rows(
        "SELECT t.usd AS kept, m.tvl AS viewed FROM tvl AS t "
        "INNER JOIN (SELECT observed_at, sum(tvl_usd) AS tvl FROM market GROUP BY observed_at) AS m USING (observed_at)"
    )
    assert len(totals) == 3
    assert all(row["kept"] == row["viewed"] for row in totals)


def test_the_present_is_also_the_state_as_of_an_instant(simulated: Simulated) -> None:
    for now, then in _AS_OF.items():
        present, past = f"SELECT * FROM {now}", f"SELECT * FROM {then}(at = '2025-03-01T12:00:00Z')"
        assert simulated.rows(f"{present} ORDER BY ALL") == simulated.rows(f"{past} ORDER BY ALL")
        assert simulated.rows(f"DESCRIBE ({present})") == simulated.rows(f"DESCRIBE ({past})")
    assert simulated.rows("SELECT count() AS n FROM position_at(at = '2025-03-01 11:59:59')") == [{"n": 0}]


def test_prices_as_of_an_instant_include_those_of_receipt_tokens(simulated: Simulated, protocol: Client) -> None:
    at = simulated.noon - 1800
    viewed = simulated.rows(f"SELECT asset_id, price FROM price_at(at = toDateTime64({at}, 3, 'UTC'))")
    markets = data(protocol, "/markets", f"at={at}&with_value=true")["borrow"]["collaterals"]["contents"]
    stated = {_id(market): Decimal(market["state"]["extra"]["value"]["price"]) for market in markets}
    assert {row["asset_id"]: row["price"] for row in viewed if row["asset_id"] in stated} == stated
    assert any(market["asset_info"]["classification"]["kind"] == "protocol_receipt_token" for market in markets)


def test_ranks_follow_debt_and_what_is_lent(simulated: Simulated) -> None:
    for view, value in (("borrower", "debt_usd"), ("lender", "lent_usd")):
        values = [row[value] for row in simulated.rows(f"SELECT * FROM {view} ORDER BY rank")]
        assert values == sorted(values, reverse=True)
    borrowers = simulated.rows("SELECT sum(debt_usd) AS debt, sum(accounts) AS accounts FROM borrower")
    assert borrowers == simulated.rows(
        "SELECT sum(debt_usd) AS debt, toUInt64(countIf(health > 0)) AS accounts FROM account"
    )


def test_accounts_at_risk_are_the_borrowers_of_the_service(simulated: Simulated, protocol: Client) -> None:
    listed = data(protocol, "/analytics/market/borrowers", "limit=1000")
    columns = ("collateral_value", "debt_value", "ltv", "health")
    stated = {
        (one["address"], one["account_index"]): [one[column] and Decimal(one[column]) for column in columns]
        for one in listed
    }
    rows = simulated.rows("SELECT * FROM account_risk")
    columns = ("collateral_usd", "debt_usd", "ltv", "health")
    assert {(row["address"], row["account_index"]): [row[column] for column in columns] for row in rows} == stated
    ranges = data(protocol, "/analytics/market/risk")["histogram"]
    counts = Counter(row["health_from"] for row in rows)
    assert [counts[Decimal(part["from"])] for part in ranges] == [part["accounts"] for part in ranges]


def test_ladders_are_those_of_the_service(simulated: Simulated, protocol: Client) -> None:
    """Of every asset with a price: with debts in it, with receipt tokens that follow, and of the protocol token."""
    fallen = 0
    for asset_id in [row["asset_id"] for row in simulated.rows("SELECT asset_id FROM price_now WHERE NOT follows")]:
        stated = data(protocol, "/analytics/market/risk/ladder", f"asset_id={asset_id}")["steps"]
        rows = simulated.rows(f"SELECT * FROM risk_ladder(asset_id = '{asset_id}')")
        assert len(rows) == len(stated) == 40
        for row, step in zip(rows, stated, strict=True):
            assert row["change"] == Decimal(step["change"])
            assert row["accounts"] == step["accounts"]
            assert row["price"] == Decimal(step["price"])
            for column, field in (("collateral_usd", "collateral_value"), ("debt_usd", "debt_value")):
                assert abs(row[column] - Decimal(step[field])) < Decimal("1e-9")
            assert abs(row["bad_debt_usd"] - Decimal(step["bad_debt"])) < Decimal("1e-9")
            fallen += step["accounts"]
    assert fallen > 100
    assert simulated.rows("SELECT * FROM risk_ladder(asset_id = 'ETH')") == []


def test_every_view_has_types_that_readers_of_files_know(simulated: Simulated) -> None:
    """Whatever the session says about joins."""
    for row in simulated.rows(_COLUMNS):
        view, columns = row["view"], dict(row["columns"])
        plain = {kind.replace("LowCardinality(", "").replace("Nullable(", "").rstrip(")") for kind in columns.values()}
        assert plain <= {kind.rstrip(")") for kind in _TYPES}, view
        for joins in (0, 1):
            with clickhouse.client(simulated.settings) as own:
                sql = f"SELECT * FROM {view} LIMIT 10 SETTINGS join_use_nulls = {joins}"
                frame = pl.read_parquet(io.BytesIO(own.raw_query(sql, fmt="Parquet")))
        for name, kind in columns.items():
            if "Decimal" in kind:
                assert frame.schema[name] == pl.Decimal(38, 18), (view, name)
            if "DateTime64" in kind:
                assert frame.schema[name] == pl.Datetime("ms", "UTC"), (view, name)


@pytest.mark.usefixtures("views")
def test_an_empty_store_has_no_rows_in_any_view(run: Run) -> None:
    for view, _ in run(_COLUMNS):
        assert run(f"SELECT * FROM {view}") == [], view


@pytest.fixture
def protocol_by_hand(store: Store) -> Store:
    """Two assets, of which one has 24 decimals and the other no price, and two addresses.

    One has posted 3 of 6 shares in a balance of 9 units, at 2 USD, with a liquidation LTV of 0.8; owes a third of a
    unit; and has staked 0.09 units. The other lends, and holds more of an unknown asset than 38 digits can say.
    """
    fine, plain = asset("FINE", 24), asset("PLAIN", 6)
    unit = 10**24
    collateral = CollateralMarket(
        CollateralConfig(True, Decimal("0.7"), Decimal("0.8"), None, Decimal(0), Decimal(0)), 9 * unit, 6
    )
    markets = (
        Market(
            "token;fine",
            LendMarket(Decimal("0.01"), 3 * unit, 2 * unit),
            collateral,
            debt_market(balance=unit, shares=3),
        ),
        Market("token;plain", None, collateral, None),
    )
    positions = (
        Position(
            _ONE,
            accounts=(
                Account(0, (Holding("token;fine", 3), Holding("token;plain", 1)), (Holding("token;fine", 1),)),
                Account(1, (), ()),
            ),
            stakes=(Stake(1, 0, 9 * unit // 100, False, None, Decimal(0)),),
        ),
        Position(_TWO, lends=(LendPosition("token;fine", unit, 0),), wallet=(Balance("native;who", 2**256 - 1),)),
    )
    source = HandMade(
        assets_=(fine, plain),
        prices_={"token;fine": Decimal(2)},
        markets_=markets,
        config_=replace(CONFIG, ptoken="token;fine"),
        ptoken_=replace(HandMade().ptoken_, asset_id="token;fine"),
        positions_=positions,
    )
    for name in ("prices", "markets", "ptoken", "positions"):
        run_once(JOBS[name], source, store, NOON)
    return store


@pytest.mark.usefixtures("views", "protocol_by_hand")
def test_values_by_hand(run: Run) -> None:
    """3 of 6 shares of 9 units are 4.5 units; a third of a unit, rounded down, has 24 digits; 1 receipt token of 2
    redeems 1.5 units."""
    third = Decimal("0.333333333333333333")
    owed = Decimal("0.666666666666666667")
    items = run("SELECT kind, symbol, units, usd FROM position_now ORDER BY address, kind, symbol")
    assert items == [
        ("account", "", None, None),
        ("collateral", "FINE", Decimal("4.5"), Decimal(9)),
        ("collateral", "PLAIN", Decimal(1500000000000000000), None),
        ("debt", "FINE", third, owed),
        ("stake", "FINE", Decimal("0.09"), Decimal("0.18")),
        ("lend_held", "FINE", Decimal("1.5"), Decimal(3)),
        ("wallet", "", None, None),
    ]
    # Of the stake a quarter counts, 0.045 USD; 0.45, a twentieth of the collateral, would give the boost of 0.1. Health
    # and the debt of an account come from units with 18 decimals: 7.2 / 0.666666666666666666.
    with_debt, without = run(
        "SELECT collateral_usd, debt_usd, ltv, base, boost, health, unpriced_collaterals "
        "FROM account ORDER BY account_index"
    )
    base, boost = Decimal("10.800000000000000011"), Decimal("0.01")
    debt = 2 * third
    assert with_debt == (Decimal(9), debt, Decimal("0.074074074074074074"), base, boost, base + boost, 1)
    assert without == (0, 0, None, None, None, None, 0)


@pytest.mark.usefixtures("views", "protocol_by_hand")
def test_rows_of_a_run_that_died_are_not_shown(run: Run, store: Store) -> None:
    """They have a version that the ledger does not list, or events later than its newest snapshot of loans."""
    views = ("market", "market_day", "position_now", "events")
    before = {view: run(f"SELECT count() FROM {view}") for view in views}
    second = int(NOON.timestamp())
    store.execute(
        f"INSERT INTO market_lend (observed_at, asset_id, principal, version) VALUES ({second}, 'token;fine', 7, 1), "
        f"({second + 60}, 'token;fine', 7, 1)"
    )
    store.execute(
        "INSERT INTO position (address, kind, asset_id, observed_at, amount, version) "
        f"VALUES ('{_TWO}', 'debt', 'token;fine', {second}, 7, 1)"
    )
    store.execute(
        f"INSERT INTO event (at, id, kind, asset_id, amount) VALUES ({second}, 'x', 'borrow', 'token;fine', 7)"
    )
    assert {view: run(f"SELECT count() FROM {view}") for view in before} == before


@pytest.mark.usefixtures("views")
def test_the_last_snapshot_of_each_day_is_read_without_the_others(settings: Settings, store: Store) -> None:
    """Of ten days of minutes, with twenty assets."""
    second = int(NOON.timestamp()) // 86_400 * 86_400
    store.execute(
        "INSERT INTO market_lend (observed_at, asset_id, apr, principal, receipt_supply, version) "
        f"SELECT {second} + 60 * intDiv(number, 20), concat('token;', toString(number % 20)), 0, number, 0, 1 "
        "FROM numbers(20 * 14400)"
    )
    store.execute(
        "INSERT INTO snapshot (family, at, kind, version) "
        f"SELECT 'markets', {second} + 60 * number, 'job', 1 FROM numbers(14400)"
    )
    with clickhouse.client(settings) as own:
        hours = own.query(
            "SELECT toUnixTimestamp(observed_at) AS second, count() FROM market_hour GROUP BY ALL ORDER BY 1"
        )
        days = own.query(
            "SELECT toUnixTimestamp(observed_at) AS second, count() FROM market_day GROUP BY ALL ORDER BY 1"
        )
    assert hours.result_rows == [(second + 3600 * hour - 60, 20) for hour in range(1, 241)]
    assert days.result_rows == [(second + 86_400 * day - 60, 20) for day in range(1, 11)]
    # The ledger comes on top.
    assert int(days.summary["read_rows"]) < 20 * 14_400 / 2
