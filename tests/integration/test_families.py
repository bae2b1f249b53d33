"""Markets, the protocol token and swap routes: from a source into ClickHouse and back."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from clickhouse_connect.driver.client import Client

from analytics_service.config import Settings
from analytics_service.errors import NoSnapshot, SnapshotRefused, SourceError, StoreUnavailable
from analytics_service.market.markets import LendMarket, Market
from analytics_service.market.positions import Position, SwapContract
from analytics_service.sources.simulated.source import SimulatedSource
from analytics_service.state.view import Views
from analytics_service.store.connection import Store
from analytics_service.store.ledger import new_version, read_heads
from analytics_service.store.markets import read_config, read_interest_paid, read_markets
from analytics_service.store.positions import read_position
from analytics_service.store.ptoken import read_arrangements, read_ptoken
from analytics_service.store.swaps import read_contract
from jobs.registry import JOBS, Job
from jobs.runner import Outcome, backfill, run_once
from jobs.snapshot import Batch, Origin, commit
from tests import clickhouse
from tests.doubles import FreshHeads, dying
from tests.integration.handmade import (
    ARRANGEMENTS,
    CONFIG,
    HUGE,
    LARGEST,
    MARKETS,
    NOON,
    PTOKEN,
    SWAPS,
    HandMade,
    market,
)

MINUTE = timedelta(minutes=1)
SECOND = int(NOON.timestamp())
POSITION = Position("0x" + "1" * 40, unclaimed=3)
# By job, a table that its snapshot of the hand-made protocol fills.
TABLES = {
    "prices": "price",
    "rates": "borrow_rate",
    "markets": "market_config",
    "loans": "flash_loan_volume",
    "ptoken": "unlock_arrangement",
    "positions": "position_digest",
    "routes": "swap_route",
}

pytestmark = pytest.mark.usefixtures("store")


@pytest.fixture
def client(settings: Settings) -> Iterator[Client]:
    """Access to the tables that is independent of the service's own code."""
    with clickhouse.client(settings) as own:
        yield own


def contents(client: Client, without: Sequence[str] = ()) -> dict[str, list[list[object]]]:
    """Every row of every table, without some columns."""
    tables = client.query("SELECT name FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%Tree'")
    rows: dict[str, list[list[object]]] = {}
    for (name,) in tables.result_rows:
        found = client.query(f"SELECT * FROM {name} FINAL ORDER BY ALL")
        kept = [place for place, column in enumerate(found.column_names) if column not in without]
        rows[name] = [[row[place] for place in kept] for row in found.result_rows]
    return rows


@pytest.mark.parametrize("job", JOBS.values(), ids=list(JOBS))
def test_a_snapshot_that_is_written_twice_is_stored_once(job: Job, store: Store, client: Client) -> None:
    """As when two schedulers find the same instant missing. Only versions and announcements may differ."""
    source = HandMade(positions_=[POSITION])
    found = [job.collect(Batch(job.family, source, store, [NOON])) for _ in range(2)]
    tables = []
    for number, snapshots in enumerate(found):
        commit(store, snapshots, Origin(job.family, "job", source.spec), new_version() + number)
        tables.append(contents(client, without=["version", "rank", "runs"]))
        del tables[-1]["publication"]
    assert tables[0][TABLES[job.name]]
    assert tables[0] == tables[1]


@pytest.mark.parametrize("job", JOBS.values(), ids=list(JOBS))
def test_a_snapshot_without_its_ledger_row_is_not_shown(job: Job, store: Store, settings: Settings) -> None:
    with closing(dying(settings, "snapshot")) as broken, pytest.raises(StoreUnavailable):
        run_once(job, HandMade(positions_=[POSITION]), broken, NOON)
    with pytest.raises(NoSnapshot):
        FreshHeads(store).known().head(job.family)


def test_a_head_moves_only_when_its_snapshot_is_complete(store: Store, settings: Settings) -> None:
    """The next snapshot's rows are written, but readers follow the head, which is the one before."""
    run_once(JOBS["markets"], HandMade(), store, NOON)
    with closing(dying(settings, "snapshot")) as broken, pytest.raises(StoreUnavailable):
        run_once(JOBS["markets"], HandMade(markets_=[market("token;new", apr="0.5")]), broken, NOON + MINUTE)
    assert set(read_markets(store, read_heads(store)["markets"].at)) == {each.asset_id for each in MARKETS}


def test_markets_come_back_exactly(store: Store) -> None:
    run_once(JOBS["markets"], HandMade(), store, NOON)
    assert list(read_markets(store, SECOND).values()) == sorted(MARKETS, key=lambda each: each.asset_id)
    assert read_config(store, SECOND) == CONFIG


def test_the_protocol_token_comes_back_exactly(store: Store) -> None:
    run_once(JOBS["ptoken"], HandMade(), store, NOON)
    assert read_ptoken(store, SECOND) == PTOKEN
    assert read_arrangements(store, SECOND) == list(ARRANGEMENTS)


def test_a_view_has_the_unlock_arrangements_of_each_address(store: Store) -> None:
    run_once(JOBS["ptoken"], HandMade(), store, NOON)
    view = Views(store, FreshHeads(store)).newest()
    assert view.arrangements_of(ARRANGEMENTS[0].address) == list(ARRANGEMENTS[:2])
    assert view.arrangements_of("0x" + "9" * 40) == []


def test_swap_contracts_come_back_exactly(store: Store) -> None:
    run_once(JOBS["routes"], HandMade(), store, NOON)
    with_routes, without = SWAPS
    assert read_contract(store, with_routes.address, SECOND) == with_routes
    assert read_contract(store, without.address, SECOND) == without
    assert read_contract(store, "0x" + "f" * 40, SECOND) is None


def test_a_contract_without_rows_in_a_snapshot_does_not_exist_at_it(store: Store) -> None:
    first, second = SWAPS
    run_once(JOBS["routes"], HandMade(), store, NOON)
    run_once(JOBS["routes"], HandMade(swaps_=[SwapContract(first.address, {"uatom": ("ahel",)})]), store, NOON + MINUTE)
    assert read_contract(store, second.address, SECOND + 60) is None
    assert read_contract(store, first.address, SECOND + 60) == SwapContract(first.address, {"uatom": ("ahel",)})


def test_a_reader_gets_the_snapshot_that_it_names(store: Store) -> None:
    """A market that is delisted a minute later is still there in the earlier snapshot."""
    run_once(JOBS["markets"], HandMade(), store, NOON)
    run_once(JOBS["markets"], HandMade(markets_=MARKETS[1:]), store, NOON + MINUTE)
    assert "native;all" in read_markets(store, SECOND)
    assert "native;all" not in read_markets(store, SECOND + 60)


@pytest.mark.parametrize("read", [read_config, read_ptoken])
def test_an_instant_without_a_snapshot_has_no_state(read: object, store: Store) -> None:
    with pytest.raises(NoSnapshot):
        read(store, SECOND)  # type: ignore[operator]


@pytest.mark.parametrize("amount", [-1, LARGEST + 1])
def test_an_amount_that_would_wrap_around_is_refused(amount: int, store: Store) -> None:
    lend = LendMarket(Decimal(0), amount, 0)
    with pytest.raises(ValueError, match=r"below 2\^256"):
        run_once(JOBS["markets"], HandMade(markets_=[market("token;a", lend)]), store, NOON)
    assert read_heads(store) == {}


def test_a_ratio_that_does_not_fit_is_refused(store: Store) -> None:
    config = replace(CONFIG, liquidation_fee=Decimal(10) ** 20)
    with pytest.raises(ValueError, match=r"below 10\^20"):
        run_once(JOBS["markets"], HandMade(config_=config), store, NOON)


def lent(principal: int, receipts: int) -> list[Market]:
    return [market("token;a", LendMarket(Decimal(0), principal, receipts))]


def test_interest_paid_is_what_receipts_have_earned_so_far(store: Store) -> None:
    """1000 receipts are worth 1100 at first: 100. At a ratio of 1.2 they earn 100 more, though 500 were redeemed since;
    the 500 left earn 50 up to a ratio of 1.3. A fall of the ratio takes nothing back, and an empty market adds nothing.
    """
    paid = []
    states = [lent(1100, 1000), lent(600, 500), lent(650, 500), lent(400, 500), lent(0, 0)]
    for minute, markets in enumerate(states):
        run_once(JOBS["markets"], HandMade(markets_=markets), store, NOON + minute * MINUTE)
        paid.append(read_interest_paid(store, SECOND + 60 * minute)["token;a"])
    assert paid == [100, 200, 250, 250, 250]


def test_a_source_without_markets_is_an_error(store: Store) -> None:
    for name in ("markets", "rates"):
        with pytest.raises(SourceError, match="no markets"):
            run_once(JOBS[name], HandMade(markets_=[]), store, NOON)


@pytest.mark.parametrize("name", ["markets", "ptoken", "positions", "routes"])
def test_an_older_snapshot_of_a_family_without_history_is_not_taken(name: str, store: Store, client: Client) -> None:
    """As when a scheduler begins with the last whole minute, after someone took a later snapshot."""
    source = HandMade(positions_=[POSITION])
    run_once(JOBS[name], source, store, NOON + MINUTE)
    before = contents(client)
    assert run_once(JOBS[name], source, store, NOON) is Outcome.SUPERSEDED
    assert contents(client) == before


@pytest.mark.parametrize("name", ["markets", "ptoken", "positions", "routes"])
def test_a_family_without_history_is_not_backfilled(name: str, store: Store) -> None:
    with pytest.raises(SnapshotRefused, match=rf"{name} cannot be backfilled.*Prices, rates and loans can be\."):
        backfill(JOBS[name], HandMade(), store, [NOON, NOON + MINUTE])
    assert read_heads(store) == {}


def test_amounts_beyond_128_bits_can_be_summed_in_sql(store: Store, client: Client) -> None:
    """HUGE in one market and 10^36 in another."""
    run_once(JOBS["markets"], HandMade(), store, NOON)
    assert client.query("SELECT toString(sum(balance)) FROM market_debt").result_rows == [(str(HUGE + 10**36),)]


def test_a_simulated_snapshot_that_is_written_twice_leaves_all_tables_equal(store: Store, client: Client) -> None:
    """Every job twice, then once more as if its ledger row did not exist.

    Besides announcements only versions may differ, and with them the counts of runs, and of rows that were written, and
    the oldest of these rows.
    """
    source = SimulatedSource("1")
    for job in JOBS.values():
        assert run_once(job, source, store, NOON) is Outcome.DONE
    versions = ["version", "rank", "rows", "first_observed_at", "runs"]
    once, but_versions = contents(client), contents(client, versions)
    assert [name for name, rows in once.items() if not rows] == ["publication"]
    for job in JOBS.values():
        assert run_once(job, source, store, NOON) is Outcome.ALREADY_DONE
    assert contents(client) == once
    for job in JOBS.values():
        snapshots = job.collect(Batch(job.family, source, store, [NOON]))
        commit(store, snapshots, Origin(job.family, "job", source.spec), new_version())
    assert contents(client, versions) | {"publication": []} == but_versions


def test_the_simulated_protocol_comes_back_exactly(store: Store) -> None:
    source = SimulatedSource("1")
    for name in ("markets", "ptoken", "positions", "routes"):
        run_once(JOBS[name], source, store, NOON)
    assert list(read_markets(store, SECOND).values()) == sorted(source.markets(NOON), key=lambda each: each.asset_id)
    assert read_config(store, SECOND) == source.config(NOON)
    assert read_ptoken(store, SECOND) == source.ptoken(NOON)
    agreed = sorted(source.arrangements(NOON), key=lambda each: (each.address, each.index))
    assert read_arrangements(store, SECOND) == agreed
    for contract in source.swaps(NOON):
        assert read_contract(store, contract.address, SECOND) == contract
    for position in list(source.positions(NOON))[:60]:
        assert in_order(read_position(store, position.address, SECOND)) == in_order(position)


def in_order(position: Position) -> Position:
    """The position with its parts in one order; sources may have them in any."""
    return replace(
        position,
        accounts=tuple(
            replace(
                account,
                collaterals=tuple(sorted(account.collaterals, key=lambda held: held.asset_id)),
                debts=tuple(sorted(account.debts, key=lambda held: held.asset_id)),
            )
            for account in sorted(position.accounts, key=lambda account: account.index)
        ),
        lends=tuple(sorted(position.lends, key=lambda lent: lent.asset_id)),
        wallet=tuple(sorted(position.wallet, key=lambda balance: balance.asset_id)),
        stakes=tuple(sorted(position.stakes, key=lambda stake: (stake.account_index, stake.pool))),
    )
