"""Markets, the protocol token and swap routes: from a source into ClickHouse and back."""

import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import product

import polars as pl
import pytest
from clickhouse_connect.driver.client import Client

from analytics_service.clickhouse.columns import Snapshots
from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.errors import (
    NoSnapshot,
    SourceError,
    StoreFailure,
    StoreUnavailable,
)
from analytics_service.market.instants import unix_second
from analytics_service.market.markets import LendMarket, Market
from analytics_service.market.positions import Position, SwapContract
from analytics_service.state.view import Views
from analytics_service.store.commits import Overtaken, Provenance, begin, commit
from analytics_service.store.datasets import markets as market_tables
from analytics_service.store.datasets.interest import InterestPaid
from analytics_service.store.datasets.markets import (
    read_arrangements,
    read_config,
    read_contract,
    read_markets,
    read_ptoken,
)
from analytics_service.store.ledger import Origin, past_head, read_heads, snapshot_versions
from analytics_service.store.schema import TABLES as FAMILY_TABLES
from jobs.registry import JOBS, Job
from jobs.runner import backfill, take_snapshot
from jobs.snapshot import JobContext
from tests import clickhouse
from tests.clickhouse import contents
from tests.doubles import FreshHeads, Statement, WatchedStore, dying
from tests.integration.databases import database
from tests.integration.handmade import (
    ARRANGEMENTS,
    CONFIG,
    MARKETS,
    NOON,
    PTOKEN,
    SWAPS,
    HandMade,
    market,
)
from tests.integration.lending import Lending

MINUTE, FOUR_DAYS = timedelta(minutes=1), timedelta(days=4)
# Seconds.
PATIENCE = 10
SECOND = int(NOON.timestamp())
POSITION = Position("0x" + "1" * 40, unclaimed=3)
# By job, the table that its snapshot of the hand-made protocol fills first.
TABLES = {
    "prices": "observation",
    "rates": "observation",
    "markets": "market_config",
    "loans": "observation",
    "ptoken": "unlock_arrangement",
    "positions": "position_digest",
    "routes": "swap_route",
}

# Tables whose rows count once the ledger lists their run.
STATES = frozenset(table for tables in FAMILY_TABLES.values() for table in tables) - {
    "event_version",
    "position_digest",
}


def shown(client: Client, job: Job) -> dict[str, list[list[object]]]:
    """Every row that counts of the tables that a job fills, but for its version: those of completed runs; observations
    of completed instants, and events up to the newest one."""
    listed = f"FROM snapshot WHERE dataset = '{job.dataset}'"
    counts = dict.fromkeys(STATES, f"(observed_at, version) IN (SELECT at, version {listed})")
    counts["event_version"] = f"at <= (SELECT max(at) {listed})"
    counts["observation"] = f"observed_at IN (SELECT at {listed})"
    rows: dict[str, list[list[object]]] = {}
    for name in {"observation", *FAMILY_TABLES[job.dataset]} & counts.keys():
        result = client.query(f"SELECT * EXCEPT version FROM {name} FINAL WHERE {counts[name]} ORDER BY ALL")
        rows[name] = [list(row) for row in result.result_rows]
    return rows


@pytest.mark.parametrize("name", ["markets", "loans"])
def test_of_two_runs_for_an_instant_the_second_one_writes_nothing(name: str, store: Store, client: Client) -> None:
    """As when two schedulers find the same instant missing."""
    job, source = JOBS[name], HandMade(positions_=[POSITION])
    beginnings = [begin(store, job.dataset, SECOND, SECOND + 1) for _ in range(2)]
    taking = Provenance("job", Origin(source.spec, source.simulated))
    changes = job.collect(JobContext(job.dataset, source, store, [NOON], None))
    commit(store, changes, taking, beginnings[0])
    once = contents(client)
    assert once[TABLES[job.name]]
    with pytest.raises(Overtaken):
        commit(store, changes, taking, beginnings[1])
    assert contents(client) == once


@pytest.mark.parametrize(
    ("name", "between"),
    [
        ("loans", [True]),
        *(
            pytest.param(name, [True, False], marks=pytest.mark.slow)
            for name in ("prices", "markets", "loans", "positions")
        ),
    ],
)
def test_what_is_shown_at_completed_instants_is_that_of_a_store_where_no_run_died(
    name: str, between: Sequence[bool], store: Store, settings: Settings, client: Client
) -> None:
    """Runs die at every insert of theirs, with and without another run in between."""
    job, source = JOBS[name], Lending(SECOND)
    take_snapshot(job, source, store, NOON)
    tables = dict.fromkeys([TABLES[name], *FAMILY_TABLES[name], "observation", "snapshot"])
    completed = [NOON]
    for minute, (table, is_between) in enumerate(product(tables, between), start=1):
        with closing(dying(settings, table)) as broken, suppress(StoreUnavailable):
            take_snapshot(job, source, broken, NOON + minute * MINUTE)
            completed.append(NOON + minute * MINUTE)
        if is_between:
            take_snapshot(job, source, store, NOON + minute * MINUTE + MINUTE / 2)
            completed.append(NOON + minute * MINUTE + MINUTE / 2)
    assert read_heads(store)[job.dataset].at == unix_second(completed[-1])
    with database(replace(settings, clickhouse_database="calm")) as calm:
        for at in completed:
            take_snapshot(job, source, calm, at)
        with clickhouse.client(replace(settings, clickhouse_database="calm")) as own:
            expected = shown(own, job)
    assert shown(client, job) == expected


@pytest.fixture(scope="module")
def handmade(server: Settings) -> Iterator[Store]:
    """A store with a snapshot of everything made by hand, and one a minute later without a market and a contract."""
    first, _ = SWAPS
    later = HandMade(markets_=MARKETS[1:], swaps_=[SwapContract(first.address, {"uatom": ("ahel",)})])
    with database(replace(server, clickhouse_database="test_handmade")) as store:
        for name in ("markets", "ptoken", "routes"):
            take_snapshot(JOBS[name], HandMade(), store, NOON)
        for name in ("markets", "routes"):
            take_snapshot(JOBS[name], later, store, NOON + MINUTE)
        yield store


def test_records_come_back_exactly(handmade: Store) -> None:
    assert list(read_markets(handmade, SECOND).values()) == sorted(MARKETS, key=lambda each: each.asset_id)
    assert read_config(handmade, SECOND) == CONFIG
    assert read_ptoken(handmade, SECOND) == PTOKEN
    assert read_arrangements(handmade, SECOND) == list(ARRANGEMENTS)


def test_a_view_has_the_unlock_arrangements_of_each_address(handmade: Store) -> None:
    view = Views(handmade, FreshHeads(handmade)).newest()
    assert view.arrangements_of(ARRANGEMENTS[0].address) == list(ARRANGEMENTS[:2])
    assert view.arrangements_of("0x" + "9" * 40) == []


def test_swap_contracts_come_back_with_their_targets_in_ascending_order(handmade: Store) -> None:
    with_routes, without = SWAPS
    assert read_contract(handmade, with_routes.address, SECOND) == in_order_of_denoms(with_routes)
    assert read_contract(handmade, without.address, SECOND) == without
    assert read_contract(handmade, "0x" + "f" * 40, SECOND) is None


def test_a_reader_gets_the_snapshot_that_it_names(handmade: Store) -> None:
    """What is gone a minute later is still there in the earlier snapshot."""
    first, second = SWAPS
    assert read_contract(handmade, second.address, SECOND + 60) is None
    assert read_contract(handmade, first.address, SECOND + 60) == SwapContract(first.address, {"uatom": ("ahel",)})
    assert "native;all" in read_markets(handmade, SECOND)
    assert "native;all" not in read_markets(handmade, SECOND + 60)
    for read in (read_config, read_ptoken):
        with pytest.raises(NoSnapshot):
            read(handmade, SECOND - 1)


def test_the_store_refuses_null_where_a_column_has_none(store: Store) -> None:
    """ClickHouse alone would store the column's default, here 0."""
    schema = {"asset_id": pl.String, "observed_at": pl.UInt32, "price": pl.Decimal(38, 18), "version": pl.UInt64}
    rows = pl.DataFrame({"asset_id": ["token;a"], "observed_at": [1], "price": [None], "version": [1]}, schema=schema)
    for write in (store.insert, partial(store.insert_if, condition="true")):
        with pytest.raises(StoreFailure, match=r"Cannot convert NULL value.*`price`"):
            write("market_price", rows)


def test_rows_are_written_as_a_whole_if_a_condition_holds_and_not_at_all_if_not(store: Store, client: Client) -> None:
    rows = pl.DataFrame({"name": ["a", "b"]})
    holds = "(SELECT count() FROM owner) = {count:UInt8}"
    assert store.insert_if("owner", rows, holds, count=0)
    assert not store.insert_if("owner", rows, holds, count=0)
    assert client.query("SELECT name FROM owner ORDER BY name").result_rows == [("a",), ("b",)]


def test_rows_of_a_run_that_the_ledger_does_not_list_are_not_read(
    store: Store, settings: Settings, client: Client
) -> None:
    """Another run has left a market of the same snapshot, with a greater version; and one of a minute later, whose
    interest nobody has been paid."""
    take_snapshot(JOBS["markets"], HandMade(), store, NOON)
    risen = [replace(each, lend=each.lend and replace(each.lend, principal=10**40)) for each in MARKETS]
    with closing(dying(settings, "snapshot")) as broken, pytest.raises(StoreUnavailable):
        take_snapshot(JOBS["markets"], HandMade(markets_=risen), broken, NOON + MINUTE)
    take_snapshot(JOBS["markets"], HandMade(), store, NOON + 2 * MINUTE)
    assert set(InterestPaid(store).read(read_heads(store)["markets"]).values()) == {0}
    columns = "observed_at, asset_id, apr, principal, receipt_supply"
    inserted = f"INSERT INTO market_lend ({columns}, version)"
    client.command(f"{inserted} SELECT {columns}, version + 1 FROM market_lend")
    client.command(f"{inserted} SELECT observed_at, 'token;other', apr, 7, 7, version + 1 FROM market_lend LIMIT 1")
    assert list(read_markets(store, SECOND).values()) == sorted(MARKETS, key=lambda each: each.asset_id)
    several = Snapshots(store, {"markets": snapshot_versions(store, "markets", SECOND, SECOND + 121)})
    for table in (market_tables.CONFIG, market_tables._LEND):
        for second in (SECOND, SECOND + 120):
            assert several.read(table, second) == [*table.read(store, second)]


def lent(principal: int, receipts: int) -> list[Market]:
    return [market("token;a", LendMarket(Decimal(0), principal, receipts))]


# From a ratio of 1.1 to 1.2, 1000 receipts earn 100, though 500 were redeemed meanwhile. These earn 50 up to 1.3.
# A fall of the ratio takes nothing back, its recovery adds nothing, and neither does an empty market.
LENT = [lent(1100, 1000), lent(600, 500), lent(650, 500), lent(400, 500), lent(1300, 1000), lent(0, 0)]
PAID = [0, 100, 150, 150, 150, 150]


def paid(store: Store, interest: InterestPaid | None = None) -> int | None:
    """Interest paid up to the newest snapshot of markets."""
    return (interest or InterestPaid(store)).read(read_heads(store)["markets"]).get("token;a")


@dataclass
class Lent(HandMade):
    """Has other markets each minute, or however far apart its snapshots are."""

    lent: Sequence[list[Market]] = tuple(LENT)
    apart: timedelta = MINUTE

    def markets(self, at: datetime) -> list[Market]:
        return self.lent[(at - NOON) // self.apart]

    def fill(self, store: Store) -> None:
        """All snapshots."""
        backfill(JOBS["markets"], self, store, [NOON + number * self.apart for number in range(len(self.lent))])


@pytest.fixture(scope="module")
def lent_out(server: Settings) -> Iterator[Store]:
    """A store with the snapshots of `LENT`, four days apart."""
    with database(replace(server, clickhouse_database="test_lent")) as store:
        Lent(apart=FOUR_DAYS).fill(store)
        yield store


def test_interest_paid_does_not_depend_on_the_order_in_which_runs_complete(store: Store, draw: random.Random) -> None:
    """What is earned from one snapshot to another depends on those in between, so each that is added changes it."""
    minutes, kept = draw.sample(range(len(LENT)), 4), [InterestPaid(store), InterestPaid(store, span=2)]
    for done, minute in enumerate(minutes, 1):
        job, source, at = JOBS["markets"], HandMade(markets_=LENT[minute]), NOON + minute * MINUTE
        _ = take_snapshot(job, source, store, at) if done % 2 else backfill(job, source, store, [at])
        expected = by_hand(sorted(minutes[:done]))
        assert [paid(store), *(paid(store, interest) for interest in kept)] == [expected] * 3


def test_interest_paid_up_to_any_head_of_the_past_is_what_it_was_then(lent_out: Store, draw: random.Random) -> None:
    """In any order, two snapshots at a time or all at once."""
    newest, kept = read_heads(lent_out)["markets"], [InterestPaid(lent_out, span) for span in (2, 20_000)]
    for place in draw.sample(range(len(LENT) - 1), len(LENT) - 1) * 2:
        end = unix_second(NOON + place * FOUR_DAYS) + 1
        past = past_head(lent_out, newest, end, late=False, imported=False, described=False)
        assert [interest.read(past) for interest in kept] == [{"token;a": PAID[place]}] * 2


def test_nobody_waits_for_interest_as_of_a_head_before_the_one_that_is_kept(store: Store, settings: Settings) -> None:
    """One of two concurrent requests may still have the previous head. What the other one reads stays in memory."""
    heads = []
    for minute, markets in enumerate(LENT[:3]):
        take_snapshot(JOBS["markets"], HandMade(markets_=markets), store, NOON + minute * MINUTE)
        heads.append(read_heads(store)["markets"])
    read_meanwhile, is_kept = [], False

    def read_newest(statement: Statement) -> None:
        if statement.name == "read_lent_amounts" and is_kept:
            read_meanwhile.append(pool.submit(kept.read, heads[2]).result(PATIENCE))

    with closing(WatchedStore(settings, before=read_newest)) as watched, ThreadPoolExecutor(1) as pool:
        kept = InterestPaid(watched)
        assert kept.read(heads[2])["token;a"] == PAID[2]
        is_kept = True
        assert [kept.read(head)["token;a"] for head in (heads[1], heads[0])] == [PAID[1], PAID[0]]
    # One query for each of the two earlier heads.
    assert read_meanwhile == [{"token;a": PAID[2]}] * 2


def by_hand(minutes: Sequence[int]) -> int:
    """Interest over some snapshots: the rise of the ratio above the highest so far, times the earlier receipts."""
    lends = [listed.lend for minute in minutes for listed in LENT[minute] if listed.lend]
    ratios = [Fraction(lend.principal, lend.receipt_supply) if lend.receipt_supply else Fraction(0) for lend in lends]
    highest = [max(ratios[:ended]) for ended in range(1, len(ratios))]
    rises = (max(Fraction(0), ratio - before) for before, ratio in zip(highest, ratios[1:], strict=True))
    return int(sum(lend.receipt_supply * rise for lend, rise in zip(lends, rises, strict=False)))


def test_interest_is_exact_and_goes_on_where_it_was_for_a_market_that_was_not_listed_for_a_while(store: Store) -> None:
    """Receipts of 2^200, which are not listed for a minute, are worth a third more when they are again; their product
    with the principal has 400 bits."""
    principals, other = (3 * 2**200, 4 * 2**200, 4 * 2**200 + 3), [market("token;b", None)]
    first, *rest = (lent(principal, 3 * 2**200) for principal in principals)
    Lent(lent=[first, other, *rest]).fill(store)
    newest = read_heads(store)["markets"]
    earlier = past_head(store, newest, SECOND + 61, late=False, imported=False, described=False)
    kept = InterestPaid(store)
    assert "token;a" not in kept.read(earlier)
    assert paid(store) == paid(store, kept) == 2**200 + 3


def test_a_source_without_markets_is_an_error(store: Store) -> None:
    for name in ("markets", "rates"):
        with pytest.raises(SourceError, match=f"has no {name}"):
            take_snapshot(JOBS[name], HandMade(markets_=[]), store, NOON)


def test_a_snapshot_of_the_past_is_added_beside_the_newest(store: Store, client: Client) -> None:
    """By a single run and by a backfill; the newest one stays as it is."""
    name, source, table = "routes", HandMade(), TABLES["routes"]
    take_snapshot(JOBS[name], source, store, NOON)
    query = f"SELECT * EXCEPT version FROM {table} FINAL WHERE observed_at = {SECOND} ORDER BY ALL"
    newest = client.query(query).result_rows
    assert take_snapshot(JOBS[name], source, store, NOON - MINUTE)
    assert backfill(JOBS[name], source, store, [NOON - 2 * MINUTE, NOON - MINUTE, NOON]) == 1
    assert client.query(query).result_rows == newest
    seconds = client.query(f"SELECT DISTINCT toUnixTimestamp(observed_at) FROM {table} ORDER BY ALL").result_rows
    assert seconds == [(SECOND - 120,), (SECOND - 60,), (SECOND,)]
    assert read_heads(store)[name].at == SECOND


def test_a_completed_snapshot_is_left_alone(store: Store, client: Client) -> None:
    """By a job that appends, and one that replaces, at a second that closes rollups."""
    source, at = Lending(SECOND - 60), NOON - timedelta(seconds=1)
    names = ("prices", "positions")
    assert all(take_snapshot(JOBS[name], source, store, at) for name in names)
    once = contents(client)
    assert {"observation", "rollup", "position_change", "snapshot"} <= {name for name, rows in once.items() if rows}
    assert not any(take_snapshot(JOBS[name], source, store, at) for name in names)
    assert contents(client) == once


def in_order_of_denoms(contract: SwapContract) -> SwapContract:
    return replace(contract, routes={source: tuple(sorted(targets)) for source, targets in contract.routes.items()})
