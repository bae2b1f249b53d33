"""The views that researchers read, against what the service answers over HTTP and against sums by hand.

`test_situations.py` compares the values of accounts, lenders and receipt tokens."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import pytest
from clickhouse_connect.driver.exceptions import DatabaseError

from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.queries import sql_scripts
from analytics_service.config.settings import Settings
from analytics_service.market.assets import Asset, AssetGroup, AssetKind
from analytics_service.market.events import Action, Event, Leg
from analytics_service.market.instants import unix_second
from analytics_service.market.markets import (
    CollateralConfig,
    CollateralMarket,
    DebtConfig,
    LendConfig,
    LendMarket,
    Market,
)
from analytics_service.market.positions import Account, Balance, Holding, LendPosition, Position, Stake
from jobs.registry import JOBS
from jobs.runner import take_snapshot
from tests import clickhouse
from tests.integration.conftest import Run, Simulated
from tests.integration.databases import database
from tests.integration.handmade import CONFIG, MARKETS, NOON, HandMade, debt_market
from tests.integration.pages import commit
from tests.integration.routes import Client

# Views of the present, and those as of an instant with the same columns.
_AS_OF = {"price_now": "price_at", "position_now": "position_at", "account": "account_at"}
# Readers of Parquet, Arrow and CSV have these types of their own.
_TYPES = {"String", "Bool", "UInt8", "UInt32", "UInt64", "Float64", "Decimal(38, 18)", "DateTime64(3, 'UTC')", "Date32"}
_COLUMNS = """
SELECT c.table AS view, groupArray((c.name, c.type)) AS columns
FROM system.columns AS c
INNER JOIN system.tables AS t ON t.database = c.database AND t.name = c.table
WHERE c.database = currentDatabase() AND t.engine = 'View'
GROUP BY view
ORDER BY view
"""
# Columns of events, and the fields that say the same.
_SAME = {
    "amount_denom": "amount",
    "tx_hash": "tx_hash",
    "address": "account_address",
    "account_index": "account_index",
    "contract": "contract_address",
    "destination": "destination_address",
}
_ONE = "0x" + "1" * 40
_TWO = "0x" + "2" * 40


def asset(symbol: str, decimals: int) -> Asset:
    return Asset(AssetGroup.TOKEN, symbol.lower(), symbol, symbol, symbol, decimals, 2)


def near(value: Any) -> Any:
    """Equal to a number within 10^-12 of it, or to what is none. The service rounds values to 18 decimals."""
    return value if value is None else pytest.approx(float(value), rel=1e-12, abs=1e-18)


def data(client: Client, path: str, query: str = "") -> Any:
    """What a path answers."""
    answer = client.simulate_get(f"/api/v1{path}", query_string=query)
    assert answer.status_code == 200, answer.text
    return answer.json["data"]


def test_markets_are_worth_what_their_histories_say_at_each_snapshot(simulated: Simulated) -> None:
    """The job computes the histories from the source's records, before they are stored."""
    columns = {"deposits_usd": "usd", "collateral_usd": "usd", "debt_usd": "usd", "utilization": "ratio"}
    columns |= {"lend_rate": "apr", "borrow_rate": "apr"}
    for history, value in columns.items():
        column = history.replace("_rate", "_apr")
        (counts,) = simulated.rows(
            "SELECT count() AS rows, countIf(abs(viewed - kept) <= 1e-12 * kept) AS same "
            f"FROM (SELECT observed_at, asset_id, {column} AS viewed FROM market WHERE {column} IS NOT NULL) AS m "
            f"FULL JOIN (SELECT observed_at, asset_id, {value} AS kept FROM {history}) AS h "
            "USING (observed_at, asset_id) SETTINGS join_use_nulls = 1"
        )
        assert counts["rows"] == counts["same"] > 0
    totals = simulated.rows(
        "SELECT t.usd AS kept, m.tvl AS viewed FROM tvl AS t "
        "INNER JOIN (SELECT observed_at, sum(tvl_usd) AS tvl FROM market GROUP BY observed_at) AS m USING (observed_at)"
    )
    assert len(totals) == 3
    assert all(row["kept"] == near(row["viewed"]) for row in totals)
    # Without the ledger's, the rows of one of three snapshots.
    assert simulated.rows("SELECT * FROM market_now ORDER BY asset_id") == simulated.rows(
        f"SELECT * FROM market WHERE observed_at = {simulated.noon} ORDER BY asset_id"
    )


@pytest.mark.usefixtures("views")
def test_markets_have_all_of_their_terms(store: Store, settings: Settings) -> None:
    """Each field that the records have, whichever they are. Caps of assets without decimals are in denom units."""
    ids = [market.asset_id.partition(";") for market in MARKETS]
    assets = [Asset(AssetGroup(group), key, key, key, key, 0, 2) for group, _, key in ids]
    for name in ("prices", "markets"):
        take_snapshot(JOBS[name], HandMade(assets_=assets), store, NOON)
    with clickhouse.client(settings) as own:
        rows = {row["asset_id"]: row for row in own.query("SELECT * FROM market").named_results()}
    for market in MARKETS:
        stated: dict[str, list[Any]] = {}
        for side, name, config in (
            ("lend", "lend", LendConfig),
            ("collateral", "collateral", CollateralConfig),
            ("debt", "borrow", DebtConfig),
        ):
            of_side = getattr(market, side)
            for field in fields(config):
                column = f"{name}_enabled" if field.name == "enabled" else field.name
                stated.setdefault(column, []).append(getattr(of_side.config, field.name) if of_side else None)
        for column, values in stated.items():
            # Each market of an asset may be paused or frozen by itself.
            known = [value for value in values if value is not None]
            assert rows[market.asset_id][column] == (near(max(known)) if known else None), (market.asset_id, column)


def test_the_present_is_also_the_state_as_of_an_instant(simulated: Simulated) -> None:
    for now, then in _AS_OF.items():
        key = "asset_id" if now == "price_now" else "address, account_index"
        key += ", kind, asset_id, pool, until, usd" if now == "position_now" else ""
        with clickhouse.client(simulated.settings) as own:
            present, past = (
                own.query(f"SELECT * FROM {view} ORDER BY {key}")
                for view in (now, f"{then}(time = '2025-03-01T12:00:00Z')")
            )
        assert present.column_names == past.column_names
        assert [kind.name for kind in present.column_types] == [kind.name for kind in past.column_types]
        assert _rounded([*present.named_results()]) == _rounded([*past.named_results()])


def _rounded(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows whose sums may have been added up in any order."""
    return [{key: near(value) if isinstance(value, float) else value for key, value in row.items()} for row in rows]


EARLY = "time = '2025-03-01T09:59:59Z'"


def test_before_the_first_snapshot_nothing_is_known(simulated: Simulated) -> None:
    """Which of several datasets is named depends on ClickHouse."""
    for view in ("price_at({})", "position_at({})"):
        with pytest.raises(DatabaseError, match=r"(Prices|Snapshots of .+) begin at 2025-03-01 10:00:00"):
            simulated.rows(f"SELECT * FROM {view.format(EARLY)}")


def test_an_instant_is_the_same_in_all_zones(simulated: Simulated) -> None:
    """Half past eleven, between the snapshots of ten, eleven and twelve o'clock."""
    for time in (
        "1740828600.5",
        "'2025-03-01 06:30:00.123-05:00'",
        "toUnixTimestamp('2025-03-01 20:30:00', 'Asia/Tokyo')",
    ):
        sql = f"SELECT DISTINCT prices_at FROM price_at(time = {time}) SETTINGS session_timezone = 'Asia/Tokyo'"
        assert simulated.rows(sql) == [{"prices_at": NOON - timedelta(hours=1)}], time


_NO_INSTANT = r"must be unix seconds, such as toUnixTimestamp\(.*\), or text with Z or an offset"
_FUTURE = r"time is '\d{10}', which is in the future"


def test_what_is_no_instant_or_in_the_future_is_refused(simulated: Simulated) -> None:
    for time, message in (
        ("now('America/New_York')", rf"time is '\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d', but {_NO_INSTANT}"),
        ("today()", _NO_INSTANT),
        ("'2025-03-01 11:30:00'", f"time is '2025-03-01 11:30:00', but {_NO_INSTANT}"),
        ("'2025-02-30T11:30:00Z'", _NO_INSTANT),
        ("-1", _NO_INSTANT),
        ("NULL", _NO_INSTANT),
        ("toUnixTimestamp(now()) + 120", _FUTURE),
    ):
        with pytest.raises(DatabaseError, match=message):
            simulated.rows(f"SELECT count() FROM price_at(time = {time})")


def test_every_view_as_of_an_instant_refuses_the_same(simulated: Simulated) -> None:
    views = ("position_at(time = {})", "anomalies(start = {}, end = 1, factor = 3)")
    for view in (*views, "anomalies(start = 1, end = {}, factor = 3)"):
        with pytest.raises(DatabaseError, match=_NO_INSTANT):
            simulated.rows(f"SELECT count() FROM {view.format('now()')}")


@pytest.mark.usefixtures("views")
def test_the_present_includes_a_snapshot_of_the_next_minute(run: Run, store: Store) -> None:
    """ClickHouse's clock may be behind that of the jobs."""
    ahead = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=40)
    commit(store, {"token;a": [(unix_second(ahead), Decimal(1))]}, kind="job")
    assert run("SELECT price, prices_at FROM price_now") == [(1, ahead)]


def test_accounts_at_risk_are_the_borrowers_of_the_service(simulated: Simulated, protocol: Client) -> None:
    listed = data(protocol, "/analytics/market/borrowers", "limit=1000")
    columns = ("collateral_value", "debt_value", "ltv", "health")
    stated = {
        (one["address"], one["account_index"]): [near(one[column]) for column in columns]
        for one in listed
        if one["health"]
    }
    rows = simulated.rows("SELECT * FROM account_risk")
    columns = ("collateral_usd", "debt_usd", "ltv", "health")
    assert {(row["address"], row["account_index"]): [row[column] for column in columns] for row in rows} == stated
    risk = data(protocol, "/analytics/market/risk")
    counts = Counter(row["health_from"] for row in rows)
    assert [counts[float(part["from"])] for part in risk["histogram"]] == [
        part["accounts"] for part in risk["histogram"]
    ]


def test_a_ladder_of_an_unknown_asset_is_refused(simulated: Simulated) -> None:
    with pytest.raises(DatabaseError, match="There is no asset with the id 'ETH': the view assets has all ids"):
        simulated.rows("SELECT * FROM risk_ladder(asset_id = 'ETH', time = toUnixTimestamp(now()))")


def test_every_view_has_types_that_readers_of_files_know(simulated: Simulated) -> None:
    """No column has a name that DuckDB reserves."""
    words = duckdb.sql("FROM duckdb_keywords() WHERE keyword_category IN ('reserved', 'type_function')").fetchall()
    reserved = {word for word, _ in words}
    for row in simulated.rows(_COLUMNS):
        columns = dict(row["columns"])
        assert not reserved & columns.keys(), row["view"]
        plain = {kind.replace("LowCardinality(", "").replace("Nullable(", "").rstrip(")") for kind in columns.values()}
        assert plain <= {kind.rstrip(")") for kind in _TYPES}, row["view"]


def test_views_have_the_same_rows_whatever_a_query_says_about_joins(simulated: Simulated) -> None:
    """By themselves without nulls, as the service asks, and as a part of a join of researchers, which has nulls."""
    for view in ("market_now", "position_now"):
        rows = f"SELECT 1 AS one, * FROM {view}"
        joined = f"SELECT * FROM values('one UInt8', 1) AS o LEFT JOIN ({rows}) AS v USING (one)"
        queries = (f"{rows} SETTINGS join_use_nulls = 0", f"{joined} SETTINGS join_use_nulls = 1")
        alone, in_join = (sorted(map(_without_last_digits, simulated.rows(sql))) for sql in queries)
        assert in_join == alone != [], view


def test_every_view_that_joins_says_what_the_other_side_of_a_row_is() -> None:
    """By itself, or in each part that views share."""
    for script in sql_scripts("views"):
        shared, *views = script.read_text("utf-8").split("CREATE OR REPLACE VIEW")
        for part in (*re.split(r"(?m)^\),?$", shared), *views):
            begin = "^" if part in views else r"^ *"
            assert "LEFT JOIN" not in part or re.search(rf"(?m){begin}SETTINGS join_use_nulls", part), (script, part)


def _without_last_digits(row: dict[str, Any]) -> str:
    """A row as text. The last digits of sums depend on their order."""
    return str([f"{value:.12g}" if isinstance(value, float) else value for value in row.values()])


@pytest.fixture(scope="module")
def protocol_by_hand(server: Settings) -> Iterator[Store]:
    """Two assets, of which one has 24 decimals and the other no price, a receipt token, and two addresses.

    One has posted 3 of 6 shares in a balance of 9 units, at 2 USD, with a liquidation LTV of 0.8; owes a third of a
    unit; and has staked 0.09 units. The other lends, which its wallet shows, too, and holds more of an unknown asset
    than 38 digits can say. Tests add snapshots, in their order.
    """
    fine, plain = asset("FINE", 24), asset("PLAIN", 6)
    receipt = replace(asset("RECEIPT", 24), kind=AssetKind.RECEIPT, origin_asset=fine.id)
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
    wallet = (Balance("native;who", 2**256 - 1), Balance(receipt.id, unit))
    positions = (
        Position(
            _ONE,
            accounts=(
                Account(0, (Holding("token;fine", 3), Holding("token;plain", 1)), (Holding("token;fine", 1),)),
                Account(1, (), ()),
            ),
            stakes=(Stake(1, 0, 9 * unit // 100, False, None, Decimal(0)),),
        ),
        Position(_TWO, lends=(LendPosition("token;fine", unit, 0),), wallet=wallet),
    )
    source = HandMade(
        assets_=(fine, plain, receipt),
        prices_={"token;fine": Decimal(2)},
        markets_=markets,
        config_=replace(CONFIG, ptoken="token;fine"),
        ptoken_=replace(HandMade().ptoken_, asset_id="token;fine"),
        positions_=positions,
    )
    with database(replace(server, clickhouse_database="test_by_hand"), views=True) as store:
        for name in ("prices", "markets", "ptoken", "positions"):
            take_snapshot(JOBS[name], source, store, NOON)
        yield store


@pytest.fixture
def run_by_hand(protocol_by_hand: Store) -> Iterator[Run]:
    """Runs SQL as a researcher of that protocol would."""
    with clickhouse.client(protocol_by_hand._settings) as own:
        yield lambda sql: [tuple(row) for row in own.query(sql).result_rows]


def test_values_by_hand(run_by_hand: Run) -> None:
    """3 of 6 shares of 9 units are 4.5 units; a third of a unit, rounded down, has 24 digits; 1 receipt token of 2
    redeems 1.5 units. Nobody knows the decimals of what is not defined."""
    items = run_by_hand("SELECT kind, symbol, units, usd FROM position_now ORDER BY address, kind, symbol")
    assert items == [
        ("account", "", 0, None),
        ("collateral", "FINE", 4.5, 9),
        ("collateral", "PLAIN", 1.5e18, None),
        ("debt", "FINE", near(1 / 3), near(2 / 3)),
        ("stake", "FINE", near(0.09), near(0.18)),
        ("lend_held", "FINE", 1.5, 3),
        ("wallet", "", near(2**256), None),
        ("wallet", "RECEIPT", 1, 3),
    ]
    # Of the stake a quarter counts, 0.045 USD; 0.45, a twentieth of the collateral, would give the boost of 0.1. Health
    # without it is 7.2 / (2 / 3).
    with_debt, without = run_by_hand(
        "SELECT collateral_usd, debt_usd, ltv, base, boost, health, unpriced_collaterals "
        "FROM account ORDER BY account_index"
    )
    assert with_debt == (9, near(2 / 3), near(2 / 27), near(10.8), near(0.01), near(10.81), 1)
    assert without == (0, 0, None, None, None, None, 0)
    values = run_by_hand("SELECT * EXCEPT address FROM account_value ORDER BY address")
    assert values == [
        (0, 0, 9, near(0.18), near(2 / 3), near(9 + 0.18 - 2 / 3), 1),
        # The receipt token in the wallet counts once.
        (0, 3, 0, 0, 0, 3, 1),
    ]


def test_rows_of_a_run_that_died_are_not_shown(run_by_hand: Run, protocol_by_hand: Store) -> None:
    """They have a version that the ledger does not list, or events later than its newest snapshot of loans."""
    views = ("market", "market_day", "position_now", "events")
    before = {view: run_by_hand(f"SELECT count() FROM {view}") for view in views}
    second = int(NOON.timestamp())
    protocol_by_hand.execute(
        f"INSERT INTO market_lend (observed_at, asset_id, principal, version) VALUES ({second}, 'token;fine', 7, 1), "
        f"({second + 60}, 'token;fine', 7, 1)"
    )
    protocol_by_hand.execute(
        "INSERT INTO position_change (address, kind, asset_id, observed_at, amount, version) "
        f"VALUES ('{_TWO}', 'debt', 'token;fine', {second}, 7, 1)"
    )
    protocol_by_hand.execute(
        "INSERT INTO event_version (address, at, uuid, action, asset_id, amount) "
        f"VALUES ('{_TWO}', {second + 1}, 'x', 'borrow', 'token;fine', 7)"
    )
    assert {view: run_by_hand(f"SELECT count() FROM {view}") for view in before} == before


def test_answers_say_which_snapshots_they_come_from(run_by_hand: Run, protocol_by_hand: Store) -> None:
    """Markets have one more, a minute after noon, prices three, and positions none."""
    minute = timedelta(minutes=1)
    early, markets, prices = (NOON + minute / 2, NOON + minute, NOON + 2 * minute)
    source = HandMade(assets_=(asset("FINE", 24), asset("PLAIN", 6)), prices_={"token;fine": Decimal(2)})
    for name, at in (("prices", early), ("markets", markets), ("prices", prices), ("prices", prices + minute)):
        take_snapshot(JOBS[name], source, protocol_by_hand, at)
    ladder = "SELECT count(), any(positions_at), any(markets_at), any(prices_at) FROM risk_ladder(asset_id = '{}', {})"
    time = f"time = {unix_second(early)}"
    assert run_by_hand(ladder.format("token;fine", time)) == [(40, NOON, NOON, early)]
    time = f"time = '{prices + minute / 2:%FT%TZ}'"
    assert run_by_hand(f"SELECT DISTINCT markets_at, prices_at FROM price_at({time})") == [(markets, prices)]
    for view in (f"position_at({time})", f"account_at({time})"):
        rows = run_by_hand(f"SELECT DISTINCT positions_at, markets_at, prices_at FROM {view}")
        assert rows == [(NOON, markets, prices)]
    snapshots = "SELECT DISTINCT observed_at, markets_at, prices_at"
    assert run_by_hand(f"{snapshots} FROM account_history(address = '{_ONE}')") == [(NOON, NOON, NOON)]


@pytest.fixture
def lost_by_hand(store: Store) -> HandMade:
    """A day and a second after noon, when GONE, whose receipt token RGONE follows it, and DUST had a price for the last
    time: 3 USD. FINE costs 2 USD, and PLAIN never had a price. Of each asset a share is a unit; but of DUST nothing.

    The accounts of the first address: with the lost price among its collateral, among its debts, in neither, with what
    is worth nothing at any price, with a debt that never had a price, and with the lost price staked. The other one has
    GONE in its wallet, and lends it.
    """
    fine, plain, gone, dust = (asset(symbol, 0) for symbol in ("FINE", "PLAIN", "GONE", "DUST"))
    receipt = replace(asset("RGONE", 0), kind=AssetKind.RECEIPT, origin_asset=gone.id)
    rules = CollateralConfig(True, Decimal("0.7"), Decimal("0.5"), None, Decimal(0), Decimal(0))
    markets = [
        Market(
            one.id, LendMarket(Decimal(0), 9, 3), CollateralMarket(rules, balance, 9), debt_market(balance=9, shares=9)
        )
        for one, balance in ((fine, 9), (plain, 9), (gone, 9), (dust, 0), (receipt, 9))
    ]

    def account(index: int, posted: str, owed: str) -> Account:
        """With a share of each."""
        return Account(
            index,
            tuple(Holding(f"token;{name}", 1) for name in posted.split()),
            tuple(Holding(f"token;{name}", 1) for name in owed.split()),
        )

    accounts = (
        account(0, "fine gone", "fine"),
        account(1, "fine", "fine gone"),
        account(2, "fine plain dust", "fine"),
        account(3, "fine rgone", ""),
        account(4, "fine", "fine plain"),
        account(5, "fine", "fine"),
    )
    stake = Stake(0, 0, 5, False, None, Decimal(0))
    source = HandMade(
        assets_=(fine, plain, gone, dust, receipt),
        prices_={fine.id: Decimal(2), gone.id: Decimal(3), dust.id: Decimal(3)},
        markets_=markets,
        config_=replace(CONFIG, ptoken=fine.id),
        ptoken_=replace(HandMade().ptoken_, asset_id=gone.id),
        positions_=(
            Position(_ONE, accounts=accounts, stakes=(replace(stake, account_index=5),)),
            Position(_TWO, lends=(LendPosition(gone.id, 1, 0),), wallet=(Balance(gone.id, 1), Balance(fine.id, 1))),
        ),
    )
    take_snapshot(JOBS["prices"], source, store, NOON)
    source = replace(source, prices_={fine.id: Decimal(2)})
    take_snapshot(JOBS["prices"], source, store, NOON + timedelta(days=1))
    for name in ("prices", "markets", "ptoken", "positions"):
        take_snapshot(JOBS[name], source, store, NOON + timedelta(days=1, seconds=1))
    return source


_ACCOUNTS = (
    "SELECT collateral_usd, debt_usd, ltv, base, boost, health, unpriced_collaterals, unpriced_debts "
    "FROM account ORDER BY account_index"
)


@pytest.mark.usefixtures("views")
def test_a_lost_price_makes_unknown_what_follows_from_it(run: Run, lost_by_hand: HandMade, store: Store) -> None:
    """tests/integration/test_missing_prices.py has the same over HTTP."""
    prices = run("SELECT symbol, price FROM price_now ORDER BY symbol")
    assert prices == [("DUST", None), ("FINE", 2), ("GONE", None), ("RGONE", None)]
    # A second earlier they were just young enough.
    assert run(f"SELECT count(price) FROM price_at(time = '{NOON + timedelta(days=1):%FT%TZ}')") == [(3,)]
    assert run(_ACCOUNTS) == [
        (None, 2, None, None, None, None, 1, 0),
        (2, None, None, None, None, None, 0, 1),
        (2, 2, 1, 0.5, 0, 0.5, 1, 0),
        (None, 0, None, None, None, None, 1, 0),
        (2, None, None, None, None, None, 0, 1),
        (2, 2, 1, None, None, None, 1, 0),
    ]
    assert run("SELECT account_index, debt_usd, health FROM account_risk") == [(2, 2, 0.5)]
    # The first address has posted receipt tokens.
    assert run("SELECT lent_usd FROM lender") == [(None,), (None,)]
    assert run("SELECT * EXCEPT address FROM account_value ORDER BY address") == [
        (0, 0, None, None, None, None, 6),
        (None, None, 0, 0, 0, None, 2),
    ]
    # What is not listed for so long ends. In accounts it then counts as nothing; elsewhere nobody knows its value.
    later = NOON + timedelta(days=2, seconds=2)
    take_snapshot(JOBS["prices"], replace(lost_by_hand, assets_=lost_by_hand.assets_[:2]), store, later)
    assert run(_ACCOUNTS)[0] == (2, 2, 1, 0.5, 0, 0.5, 1, 0)
    assert run("SELECT symbol FROM price_now") == [("FINE",)]
    values = f"SELECT wallet_usd, lent_usd, net_usd FROM account_value WHERE address = '{_TWO}'"
    assert run(values) == [(None, None, None)]


@pytest.mark.usefixtures("views")
def test_no_imported_price_is_too_old(run: Run, store: Store) -> None:
    """Without a snapshot of prices nothing says that one is missing."""
    second = int(NOON.timestamp())
    commit(store, {"token;a": [(second, Decimal(1))], "token;b": [(second + 10**6, Decimal(2))]}, kind="import")
    prices = run("SELECT price, markets_at, prices_at FROM price_now ORDER BY asset_id")
    assert prices == [(1, None, None), (2, None, None)]


def test_events_are_those_of_the_service(simulated: Simulated, protocol: Client) -> None:
    """All of them, under the same ids and words; beside floats of amounts, prices and values there are exact ones."""
    stated, after = dict[str, Any](), ""
    while page := data(protocol, "/analytics/market/events", f"start=0&limit=1000{after}"):
        stated |= {event["event_uuid"]: event for event in page}
        after = f"&prev_event_uuid={page[-1]['event_uuid']}"
    rows = {row["id"]: row for row in simulated.rows("SELECT * FROM events")}
    assert rows.keys() == stated.keys()
    for uuid, event in stated.items():
        row, decimals = rows[uuid], event["asset"]["metadata"]["decimals_denom"]
        assert (f"{row['time']:%Y-%m-%dT%H:%M:%SZ}", row["action"]) == (event["event_time"], event["action"])
        assert (row["asset_id"], row["symbol"]) == (event["asset"]["asset"]["id"], event["asset"]["metadata"]["symbol"])
        assert [row["leg"] or None, *map(row.get, _SAME)] == [event["leg"], *map(event.get, _SAME.values())], uuid
        for name, field in (("price", "historic_price"), ("usd", "historic_value")):
            exact = None if event[field] is None else Decimal(event[field])
            assert (row[f"{name}_exact"], row[name]) == (exact, near(exact)), (uuid, name)
        assert row["units"] == near(None if event["amount"] is None else Decimal(event["amount"]).scaleb(-decimals))
    assert {row["action"] for row in rows.values()} == {*Action}
    assert {row["leg"] for row in rows.values()} == {"", "debt", "collateral"}


@pytest.mark.usefixtures("views")
def test_a_liquidation_without_a_leg_is_the_debt_repaid(run: Run, store: Store) -> None:
    """As it counts in sums."""
    events = [
        Event("1", Action.LIQUIDATE, "token;lend", _ONE, NOON, 5, Decimal(2)),
        Event("2", Action.LIQUIDATE, "token;lend", _ONE, NOON, 6, Decimal(3), leg=Leg.COLLATERAL),
        Event("3", Action.SEND, "token;lend", _ONE, NOON, 2**256 - 1),
    ]
    take_snapshot(JOBS["loans"], HandMade(events_=events), store, NOON)
    assert run("SELECT action, leg, amount_denom FROM events ORDER BY ALL") == [
        ("liquidate", "collateral", "6"),
        ("liquidate", "debt", "5"),
        ("send", "", str(2**256 - 1)),
    ]
    assert run("SELECT usd FROM liquidations WHERE asset_id = 'token;lend' ORDER BY observed_at DESC LIMIT 1") == [
        (2.0,)
    ]


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
        "INSERT INTO snapshot (dataset, at, kind, version) "
        f"SELECT 'markets', {second} + 60 * number, 'job', 1 FROM numbers(14400)"
    )
    with clickhouse.client(settings) as own:
        hours = own.query(
            "SELECT toUnixTimestamp(observed_at) AS second, count() FROM market_hour GROUP BY ALL ORDER BY 1"
        )
        days = own.query(
            "SELECT toUnixTimestamp(observed_at) AS second, count() FROM market_day GROUP BY ALL ORDER BY 1"
        )
        newest = own.query(f"SELECT * FROM market WHERE observed_at >= {second} + 60 * 14390")
    assert hours.result_rows == [(second + 3600 * hour - 60, 20) for hour in range(1, 241)]
    assert days.result_rows == [(second + 86_400 * day - 60, 20) for day in range(1, 11)]
    # The ledger comes on top.
    assert int(days.summary["read_rows"]) < 20 * 14_400 / 2
    assert len(newest.result_rows) == 200
    assert int(newest.summary["read_rows"]) < 14_400 + 20 * 14_400 / 50
