"""A source of views in the store's own ClickHouse: what it reads as of an instant, and what it says of wrong views."""

import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from clickhouse_connect.driver.client import Client

from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.queries import split_statements
from analytics_service.config.settings import Settings
from analytics_service.errors import SettingError, SourceError
from analytics_service.market.assets import Asset, AssetGroup, AssetKind
from analytics_service.market.events import Action, Event
from analytics_service.market.instants import unix_second
from analytics_service.market.markets import (
    NO_CONFIG,
    CollateralConfig,
    CollateralMarket,
    DebtConfig,
    DebtMarket,
    LendConfig,
    LendMarket,
    Market,
)
from analytics_service.market.positions import (
    Account,
    Balance,
    Holding,
    LendPosition,
    Position,
    Stake,
    SwapContract,
    Unbonding,
)
from analytics_service.market.prices import Price
from analytics_service.market.ptoken import Arrangement, MemberClass, ScheduleKind, no_ptoken
from analytics_service.market.validation import validate
from analytics_service.sources.base import Source
from analytics_service.sources.registry import open_source
from analytics_service.sources.sql.views import VIEWS
from jobs.check import Finding, Level, Plan, check
from jobs.registry import JOBS
from jobs.runner import backfill, take_snapshot
from tests.clickhouse import client
from tests.unit.test_examples import printed

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
ALICE = "0x" + "a" * 40
ASSETS = "CREATE VIEW {}.source_asset AS SELECT 'native;ua' AS asset_id, 'A' AS symbol, 6 AS decimals"
PRICES = (
    "CREATE TABLE {}.source_price (asset_id String, observed_at DateTime64(3, 'UTC'), usd Nullable(Decimal(38, 18))) "
    "ENGINE = MergeTree ORDER BY observed_at"
)


class Views:
    """A database of views for a test."""

    def __init__(self, own: Client, settings: Settings, store: Store) -> None:
        self.name = f"research_{uuid.uuid4().hex}"
        self.spec = f"sql:{self.name}"
        self._own, self._settings, self._store = own, settings, store
        self.run("CREATE DATABASE {}")

    def run(self, *sql: str) -> None:
        """Run statements, with the database's name for {}."""
        for statement in sql:
            self._own.command(statement.format(self.name))

    def source(self) -> Source:
        """The source of the views as they are now."""
        source = open_source(self.spec, self._settings, self._store)
        assert source is not None
        return source


@pytest.fixture
def database(settings: Settings, store: Store) -> Iterator[Views]:
    """A database without views."""
    with client(replace(settings, clickhouse_database="default")) as own:
        views = Views(own, settings, store)
        yield views
        views.run("DROP DATABASE {} SYNC")


@pytest.fixture
def research(database: Views) -> Views:
    """A database with both required views: an asset, and three of its prices."""
    database.run(
        ASSETS,
        PRICES,
        "INSERT INTO {}.source_price VALUES ('native;ua', '2026-03-01 10:00:00.250', 1.5),"
        "('native;ua', '2026-03-01 11:00:00.000', 1.25), ('native;ua', '2026-03-01 11:00:00.001', 2)",
    )
    return database


@pytest.mark.usefixtures("views")
def test_the_printed_views_run_as_they_are_and_every_job_takes_a_snapshot_of_them(
    settings: Settings, database: Views, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have all views with all columns, and no others. What is checked is stored."""
    for statement in split_statements(printed("source-views").replace("research_mine", database.name)):
        store.execute(statement, in_database=False)
    written = store.query("list_source_columns", database=database.name)
    shown = {(view, column) for view, column, _ in written.iter_rows()}
    assert shown == {(view.name, column) for view in VIEWS.values() for column in view.columns}
    now = datetime.now(UTC).replace(microsecond=0)
    monkeypatch.setattr("jobs.check._AGO", (timedelta(),))
    found = [step for step in check(database.source(), store, Plan(now)) if isinstance(step, Finding)]
    assert [finding for finding in found if finding.level is not Level.NOTE] == []
    with client(settings) as own:
        assert own.query("SELECT symbol, value_exact FROM price ORDER BY symbol").result_rows == [
            ("ATOM", Decimal("10.5")),
            ("USDT", Decimal("0.9999")),
        ]
        # 250 ATOM of collateral, and 1,000 USDT lent.
        assert own.query("SELECT value_exact FROM tvl").result_rows == [(Decimal("3624.9"),)]
        loans = own.query("SELECT value_exact FROM loans_originated WHERE asset_id = 'native;uusdt'")
        assert loans.result_rows == [(500,)]


def test_the_newest_price_at_or_before_an_instant_counts(research: Views) -> None:
    source = research.source()
    assert [source.prices(NOON - hours * HOUR) for hours in (0, 1, 2)] == [
        [Price("native;ua", NOON - HOUR, Decimal(2))],
        [Price("native;ua", NOON - HOUR, Decimal("1.25"))],
        [],
    ]
    assert source.assets(NOON) == [Asset(AssetGroup.NATIVE, "ua", "A", "A", "ua", 6, 6)]


def test_without_the_other_views_every_snapshot_is_taken_and_there_is_nothing_else(
    research: Views, store: Store
) -> None:
    source = research.source()
    assert not source.has_markets
    assert (source.config(NOON), source.ptoken(NOON)) == (NO_CONFIG, no_ptoken(NOON))
    nothing = [source.markets(NOON), source.arrangements(NOON), source.positions(NOON), source.swaps(NOON)]
    assert [list(part) for part in (*nothing, source.events(NOON - HOUR, NOON))] == [[]] * 5
    assert all(take_snapshot(job, source, store, NOON) for job in JOBS.values())


def test_history_is_filled_from_the_rows_of_its_time(research: Views, store: Store, settings: Settings) -> None:
    research.run(
        "CREATE TABLE {}.source_market (asset_id String, observed_at DateTime('UTC'), lend_principal String, "
        "lend_apr Decimal(9, 4)) ENGINE = Memory",
        "INSERT INTO {}.source_market VALUES ('native;ua', '2026-03-01 10:00:00', '3000000', 0.01),"
        "('native;ua', '2026-03-01 12:00:00', '5000000', 0.02)",
    )
    source, instants = research.source(), [NOON - HOUR, NOON]
    for name in ("prices", "rates", "markets"):
        assert backfill(JOBS[name], source, store, instants) == 2
    with client(settings) as own:
        assert own.query("SELECT toUnixTimestamp(observed_at), value_exact FROM price ORDER BY 1").result_rows == [
            (unix_second(NOON - HOUR), Decimal(2))
        ]
        assert own.query("SELECT value_exact FROM lend_rate ORDER BY observed_at").result_rows == [
            (Decimal("0.01"),),
            (Decimal("0.02"),),
        ]
        # 3 at 1.25, and 5 at 2 USD.
        assert own.query("SELECT value_exact FROM tvl ORDER BY observed_at").result_rows == [(Decimal("3.75"),), (10,)]


def test_a_market_has_the_parts_whose_amounts_are_not_null(research: Views) -> None:
    research.run(
        "CREATE TABLE {}.source_market (asset_id String, observed_at DateTime('UTC'), lend_principal Nullable(UInt64), "
        "lend_apr Nullable(String), collateral_balance Nullable(Decimal(40, 0)), allowable_ltv Nullable(UInt8), "
        "liquidation_ltv Nullable(UInt8), debt_balance Nullable(UInt256), debt_apr Nullable(Decimal(9, 2)), "
        "debt_enabled Nullable(Bool), lend_supply_cap Nullable(UInt256), debt_paused Nullable(Bool)) ENGINE = Memory",
        "INSERT INTO {}.source_market VALUES "
        "('native;ua', '2026-03-01 10:00:00', 7, '0.5', 9, 0, 1, 11, 0.25, false, 8, false),"
        "('native;ub', '2026-03-01 10:00:00', NULL, NULL, NULL, NULL, NULL, 11, 0.25, NULL, NULL, true),"
        "('native;uc', '2026-03-01 10:00:00', 7, '0.5', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),"
        "('native;uc', '2026-03-01 11:00:00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    )
    zero, one, quarter = Decimal(0), Decimal(1), Decimal("0.25")
    lend = LendMarket(Decimal("0.5"), 7, 7, config=LendConfig(8))
    collateral = CollateralMarket(CollateralConfig(True, zero, one, None, zero, zero), 9, 9)
    debts = [
        DebtMarket(DebtConfig(enabled, None, one, zero, paused=enabled), quarter, 11, 11, NOON - 2 * HOUR, zero)
        for enabled in (False, True)
    ]
    source = research.source()
    assert source.markets(NOON) == [
        Market("native;ua", lend, collateral, debts[0]),
        Market("native;ub", None, None, debts[1]),
    ]
    assert [market.asset_id for market in source.markets(NOON - 2 * HOUR)] == ["native;ua", "native;ub", "native;uc"]


def test_positions_are_those_of_the_newest_snapshot(research: Views) -> None:
    research.run(
        "CREATE TABLE {}.source_position (address String, observed_at DateTime('UTC'), kind LowCardinality(String), "
        "account_index UInt8, asset_id String, pool UInt8, amount UInt64, until Nullable(DateTime('UTC')), "
        "liquidation_ltv Nullable(Decimal(4, 2))) ENGINE = Memory",
        "INSERT INTO {}.source_position VALUES "
        "('b', '2026-03-01 10:00:00', 'wallet', 0, 'native;ua', 0, 1, NULL, NULL),"
        f"('{ALICE}', '2026-03-01 11:00:00', 'collateral', 10, 'native;ua', 0, 2, NULL, 0.93),"
        f"('{ALICE}', '2026-03-01 11:00:00', 'debt', 10, 'native;ub', 0, 3, NULL, NULL),"
        f"('{ALICE}', '2026-03-01 11:00:00', 'account', 9, '', 0, 0, NULL, NULL),"
        f"('{ALICE}', '2026-03-01 11:00:00', 'lend_collateralized', 0, 'native;ua', 0, 4, NULL, NULL),"
        f"('{ALICE}', '2026-03-01 11:00:00', 'wallet', 0, 'native;uz', 0, 5, NULL, NULL),"
        f"('{ALICE.upper()}', '2026-03-01 11:00:00', 'stake', 10, '', 2, 6, NULL, NULL),"
        f"('{ALICE}', '2026-03-01 11:00:00', 'unbonding', 0, '', 0, 7, '2026-04-01 00:00:00', NULL),"
        f"('{ALICE}', '2026-03-01 11:00:00', 'unclaimed', 0, '', 0, 8, NULL, NULL)",
    )
    source = research.source()
    assert list(source.positions(NOON)) == [
        Position(
            ALICE,
            (Account(9), Account(10, (Holding("native;ua", 2, None, Decimal("0.93")),), (Holding("native;ub", 3),))),
            (LendPosition("native;ua", 0, 4),),
            (Balance("native;uz", 5),),
            (Stake(2, 10, 6, False, None, Decimal(0)),),
            (Unbonding(7, datetime(2026, 4, 1, tzinfo=UTC)),),
            unclaimed=8,
        )
    ]
    assert [position.address for position in source.positions(NOON - 2 * HOUR)] == ["b"]
    with pytest.raises(SourceError, match=r"source_position has no rows at or before 2026-03-01T09:00:00Z"):
        list(source.positions(NOON - 3 * HOUR))


def test_events_of_a_range_come_oldest_first(research: Views) -> None:
    research.run(
        "CREATE TABLE {}.source_event (id String, at DateTime64(3, 'UTC'), action String, address String, "
        "asset_id String, amount Nullable(UInt64), leg String) ENGINE = Memory",
        f"INSERT INTO {{}}.source_event VALUES ('3', '2026-03-01 12:00:00.000', 'liquidate', '{ALICE}', 'native;ua', "
        f"5, 'debt'), ('2', '2026-03-01 11:00:00.500', 'send', '{ALICE}', 'native;ua', NULL, ''),"
        f"('1', '2026-03-01 11:00:00.000', 'lend', '{ALICE}', 'native;ua', 1, ''),"
        f"('4', '2026-03-01 12:00:00.001', 'lend', '{ALICE}', 'native;ua', 1, '')",
    )
    half = NOON - HOUR + timedelta(milliseconds=500)
    assert research.source().events(NOON - HOUR, NOON) == [
        Event("1", Action.LEND, "native;ua", ALICE, NOON - HOUR, 1),
        Event("2", Action.SEND, "native;ua", ALICE, half, None),
    ]
    assert [event.id for event in research.source().events(NOON, NOON + HOUR)] == ["3", "4"]


def test_a_view_without_time_has_the_same_rows_at_every_instant(research: Views) -> None:
    research.run(
        "CREATE VIEW {}.source_ptoken AS SELECT 'native;up' AS asset_id, 9 AS total_supply",
        "CREATE VIEW {}.source_pool AS SELECT 1 AS pool, 60 AS duration",
        f"CREATE VIEW {{}}.source_arrangement AS SELECT '{ALICE}' AS address, 3 AS arrangement, 'team' "
        "AS member_class, 'lump_sum' AS kind, 7 AS amount, toDateTime('2026-03-01 12:00:00', 'UTC') AS begins_at",
        "CREATE VIEW {}.source_route AS SELECT * FROM VALUES('contract String, source String, targets Array(String)', "
        "('c', 'ua', ['ub', 'uc']), ('d', '', []))",
    )
    source = research.source()
    for at in (NOON, NOON - 1000 * HOUR):
        ptoken = source.ptoken(at)
        assert (ptoken.total_supply, ptoken.rewards_last_distributed) == (9, at)
        assert [(pool.index, pool.duration, pool.reward_weight) for pool in ptoken.pools] == [(1, 60, 1)]
        assert source.arrangements(at) == [
            Arrangement(ALICE, 3, MemberClass.TEAM, ScheduleKind.LUMP_SUM, 7, 0, NOON, None, None, None, "", None, 0, 0)
        ]
        assert source.swaps(at) == [SwapContract("c", {"ua": ("ub", "uc")}), SwapContract("d")]


def test_what_moves_has_no_past_without_time(research: Views) -> None:
    research.run(
        "DROP TABLE {}.source_price SYNC",
        "CREATE VIEW {}.source_price AS SELECT 'native;ua' AS asset_id, '1.5' AS usd",
        "CREATE VIEW {}.source_market AS SELECT 'native;ua' AS asset_id, 5 AS collateral_balance, "
        "0 AS allowable_ltv, 0 AS liquidation_ltv",
        f"CREATE VIEW {{}}.source_position AS SELECT '{ALICE}' AS address, 'wallet' AS kind, 'native;ua' AS asset_id, "
        "7 AS amount",
    )
    source, now = research.source(), datetime.now(UTC)
    assert source.prices(now) == [Price("native;ua", now.replace(microsecond=0), Decimal("1.5"))]
    assert [market.asset_id for market in source.markets(now)] == ["native;ua"]
    assert [*source.positions(now)] == [Position(ALICE, wallet=(Balance("native;ua", 7),))]
    for ask, view in ((source.prices, "price"), (source.markets, "market"), (source.positions, "position")):
        with pytest.raises(SourceError, match=rf"source_{view} has no column observed_at, so it has only present rows"):
            list(ask(now - HOUR))


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("DROP VIEW {}.source_asset", "the service's user cannot read a view source_asset"),
        (
            "CREATE OR REPLACE VIEW {}.source_asset AS SELECT 'native;ua' AS asset_id, 'A' AS symbol",
            r"source_asset has no column decimals \(a whole number, such as UInt256, or String\)",
        ),
        (
            "ALTER TABLE {}.source_price MODIFY COLUMN usd Nullable(Float64)",
            r"source_price.usd is Nullable\(Float64\); cast it to Decimal\(38, 18\) or .* in the view",
        ),
        (
            "CREATE VIEW {}.source_market AS SELECT 'native;ua' AS asset_id, 0.04 AS lend_apy",
            "source_market.lend_apy is unknown; the columns of source_market are asset_id, observed_at, lend_apr",
        ),
        ("CREATE VIEW {}.source_events AS SELECT 1 AS id", "source_events is unknown; the views are source_asset, "),
    ],
)
def test_views_that_are_not_as_they_must_be_are_refused_when_the_source_is_opened(
    sql: str, message: str, research: Views
) -> None:
    research.run(sql)
    with pytest.raises(SettingError, match=rf"^sql:research_\w+ cannot be read: {message}.*example source-views"):
        research.source()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("'loan' AS kind", "kind of a is 'loan': it must be one of"),
        ("'unbonding' AS kind", "until .* a value is required, because kind is unbonding"),
    ],
)
def test_every_rule_of_a_row_is_kept(row: str, message: str, research: Views) -> None:
    research.run(f"CREATE VIEW {{}}.source_position AS SELECT 'a' AS address, {row}, 5 AS amount")
    with pytest.raises(SourceError, match=rf"^sql:research_\w+: source_position\.{message}"):
        list(research.source().positions(datetime.now(UTC)))


def test_a_value_that_cannot_be_read_costs_its_asset_only(research: Views) -> None:
    """It stays as it is, and whoever stores records leaves this one out."""
    research.run(
        "CREATE VIEW {}.source_market AS SELECT 'native;ua' AS asset_id, 5 AS lend_principal, 'x' AS lend_apr",
        "CREATE OR REPLACE VIEW {}.source_asset AS SELECT 'ua' AS asset_id, 'A' AS symbol, 6 AS decimals",
    )
    source = research.source()
    for record, of, message in (
        (*source.markets(datetime.now(UTC)), Market, "lend.apr of native;ua is 'x', a str; it must be a Decimal."),
        (*source.assets(datetime.now(UTC)), Asset, "id of ua;: 'ua;' is not the id of an asset"),
    ):
        first, *_ = validate(record, of)
        assert first.of(record).startswith(message)


def test_a_view_that_fails_is_named(research: Views) -> None:
    research.run("CREATE VIEW {}.source_config AS SELECT toString(throwIf(true, 'no rules today')) AS hnative")
    with pytest.raises(SourceError, match=r"the view source_config cannot be read: .*no rules today"):
        research.source().config(NOON)
    research.run("CREATE OR REPLACE VIEW {}.source_config AS SELECT 'native;ua' AS hnative WHERE false")
    with pytest.raises(SourceError, match="source_config has 0 rows as of 2026-03-01T12:00:00Z; it must have one"):
        research.source().config(NOON)


def test_a_table_that_a_view_lost_is_not_one_of_the_service(research: Views) -> None:
    research.run(
        "CREATE TABLE {0}.base (hnative String) ENGINE = Memory",
        "CREATE VIEW {0}.source_config AS SELECT hnative FROM {0}.base",
    )
    source = research.source()
    research.run("DROP TABLE {}.base SYNC")
    with pytest.raises(SourceError, match=r"the view source_config cannot be read: .*base") as refused:
        source.config(NOON)
    assert f"Check the tables that {research.name}.source_config reads." in str(refused.value)
    assert "migrate" not in str(refused.value)


def test_the_services_own_database_is_no_source(settings: Settings, store: Store) -> None:
    with pytest.raises(SettingError, match="names the service's own database"):
        open_source(f"sql:{settings.clickhouse_database}", settings, store)


def test_the_kinds_of_assets_are_read(database: Views) -> None:
    database.run(
        PRICES,
        "CREATE VIEW {}.source_asset AS SELECT 'token;0xa' AS asset_id, 'A' AS symbol, 18 AS decimals, "
        "'protocol_receipt_token' AS kind, 'native;ua' AS origin_asset, '' AS receipt_asset",
    )
    with closing(database.source()) as source:
        assert source.assets(NOON) == [
            Asset(AssetGroup.TOKEN, "0xa", "A", "A", "0xa", 18, 6, AssetKind.RECEIPT, "native;ua")
        ]
