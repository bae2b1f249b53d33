"""Snapshots that are taken again: from their source, or from what the store holds after a correction."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn

import pytest
from click.testing import CliRunner, Result
from clickhouse_connect.driver.client import Client

from analytics_service.cli.main import cli
from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.errors import SourceError
from analytics_service.market.instants import from_unix, multiples_between, unix_second
from analytics_service.market.prices import Price
from analytics_service.market.rates import Rates
from analytics_service.sources.base import Source
from analytics_service.sources.simulated.source import SimulatedSource
from analytics_service.store.commits import Overtaken
from jobs.recompute import DATASETS, day_by_day, plan, recompute, replace_snapshots
from jobs.registry import JOBS
from jobs.runner import IF_OVERTAKEN, backfill, take_snapshot
from tests import clickhouse
from tests.clickhouse import contents
from tests.integration.conftest import Run
from tests.integration.databases import copied, database
from tests.integration.lending import ETH, Lending

# A day ends in between. All datasets have their snapshots at instants of prices, each so many minutes.
START = datetime(2025, 2, 27, 23, tzinfo=UTC)
END = START + timedelta(hours=2)
MINUTE = timedelta(minutes=1)
EVERY = {"prices": 30, "markets": 30, "ptoken": 120, "loans": 60, "positions": 60}
# When prices were too low, until the next one.
SINCE, LAST = START + 30 * MINUTE, START + 60 * MINUTE
ASSET = ETH
# Rows count where the ledger lists their instant and version.
DATED = ("market_lend", "market_collateral", "market_debt", "market_config", "market_price", "position_change")
DATED += ("ptoken_state", "ptoken_pool", "unlock_arrangement", "position_summary")
# What tells of runs, not of what they have brought.
ABOUT_RUNS = {"rewrite", "write_lock", "owner", "snapshot_head", "job_run", "schema_migration"}


@dataclass(frozen=True)
class Protocol(Lending):
    """`quote` changes its prices."""

    live: int = unix_second(START)
    quote: Callable[[Price], Price | None] = lambda price: price

    def prices(self, at: datetime) -> Sequence[Price]:
        return [price for price in map(self.quote, super().prices(at)) if price]


def too_low(price: Price) -> Price:
    """The price of an asset is a hundredth of the right one from 23:30 to 00:30."""
    is_wrong = SINCE <= price.observed_at <= LAST and price.asset_id == ASSET
    return replace(price, usd=price.usd / 100) if is_wrong else price


def without_asset(price: Price) -> Price | None:
    return None if price.asset_id == ASSET else price


RIGHT = Protocol()


def fill(store: Store, source: Source, *names: str) -> None:
    """Snapshots of some datasets by backfills, or of all: the last of markets by a job."""
    for name in names or EVERY:
        instants = multiples_between(START, END + MINUTE, EVERY[name] * MINUTE)
        by_job = [] if names or name != "markets" else [instants.pop()]
        backfill(JOBS[name], source, store, instants)
        for at in by_job:
            take_snapshot(JOBS[name], source, store, at)


def compute(store: Store) -> dict[str, int]:
    """The number of snapshots that came out otherwise, by dataset."""
    changed = dict.fromkeys(DATASETS, 0)
    for portion in day_by_day(store, DATASETS, START, END + MINUTE):
        changed[portion.dataset] += recompute(store, portion)
    return changed


def seen(own: Client, newest: datetime = END) -> Mapping[str, Any]:
    """What readers see of a database up to its newest snapshot: all rows that count, without the versions of runs."""
    conditions = dict.fromkeys(DATED, "(observed_at, version) IN (SELECT at, version FROM snapshot FINAL)")
    conditions["snapshot"] = "kind IN ('job', 'backfill')"
    # Only closed rollups are read.
    ended = f"if(width = 'day', '{newest:%F} 00:00:00', '{newest:%F %T}')"
    conditions["rollup"] = f"width != 'month' AND start < toDateTime({ended}, 'UTC')"
    # Events that a run has brought are not brought again.
    hidden = {"snapshot": "version, rows, first_observed_at"}
    rows = {}
    for table in contents(own).keys() - ABOUT_RUNS:
        only, but = conditions.get(table, "true"), hidden.get(table, "version")
        statement = f"SELECT * EXCEPT ({but}) FROM {table} FINAL WHERE {only} ORDER BY ALL"
        rows[table] = own.query(statement).result_rows
    return rows


def store_of(server: Settings, name: str, source: Source) -> Iterator[tuple[Store, Client]]:
    settings = replace(server, clickhouse_database=f"test_{name}")
    with database(settings) as store, clickhouse.client(settings) as own:
        fill(store, source)
        yield store, own


@pytest.fixture(scope="module")
def false(server: Settings) -> Iterator[Store]:
    """A store of which some prices were wrong. It stays as it is: tests correct copies."""
    for store, _ in store_of(server, "false", Protocol(quote=too_low)):
        yield store


@pytest.fixture
def wrong(settings: Settings, false: Store) -> Iterator[Store]:
    """A copy of it."""
    with copied(settings, false) as store:
        yield store


@pytest.fixture(scope="module")
def truth(server: Settings) -> Iterator[tuple[Store, Client]]:
    """A store that was fed right from the start."""
    yield from store_of(server, "truth", RIGHT)


def test_imported_prices_reach_what_follows_from_them(
    settings: Settings, wrong: Store, client: Client, truth: tuple[Store, Client], tmp_path: Path
) -> None:
    """Of five snapshots of markets two are of these prices, and of three of positions one. Those of the day after may
    be, too. Where nothing is wrong, nothing is written."""
    kinds = {portion.provenance.kind for portion in day_by_day(wrong, DATASETS, START, END + MINUTE)}
    assert kinds == {"job", "backfill"}
    path = tmp_path / "prices.csv"
    path.write_text("asset,time,value\n")
    with path.open("a") as file:
        for at in (SINCE, LAST):
            file.writelines(f"{ASSET},{unix_second(at)},{p.usd}\n" for p in RIGHT.prices(at) if p.asset_id == ASSET)
    command, env = ["import", "price", str(path), "--time-unit", "s"], settings.to_environment({})
    said = CliRunner().invoke(cli, command, env=env).output
    assert "`analytics-service jobs recompute --start 2025-02-27T23:30:00Z --end 2025-02-28T01:00:00Z`" in said
    suggested = said.split("`")[1].split()[1:]
    said = CliRunner().invoke(cli, [*suggested, "--dry-run"], env=env).output
    assert re.search("To recompute: 4 snapshots of markets, .*2 snapshots of positions", said)
    assert "the sums of loans from then on" in said
    said = CliRunner().invoke(cli, suggested, env=env).output
    assert re.search("markets: 2 snapshots have changed.\n(.*\n)*positions: 1 snapshots? ha(s|ve) changed.", said)
    assert seen(client) == seen(truth[1])
    before = contents(client)
    assert compute(wrong) == {"markets": 0, "positions": 0, "loans": 0}
    assert contents(client) == before


def test_a_backfill_takes_snapshots_again(wrong: Store, client: Client, truth: tuple[Store, Client]) -> None:
    """The origin of runs that are day_by_day again stays."""
    for name, start, end in (
        ("prices", START, LAST),
        ("markets", SINCE, LAST),
        ("ptoken", START, START),
        ("loans", LAST, LAST),
    ):
        for portion in plan(wrong, name, start, end + MINUTE):
            replace_snapshots(JOBS[name], RIGHT, wrong, portion)
    assert compute(wrong) == {"markets": 0, "positions": 1, "loans": 0}
    assert seen(client) == seen(truth[1])


def test_what_is_quoted_no_more_has_no_value(store: Store, run: Run) -> None:
    for name in ("prices", "markets"):
        backfill(JOBS[name], RIGHT, store, [START, SINCE])
    for portion in plan(store, "prices", START, SINCE + MINUTE):
        replace_snapshots(JOBS["prices"], Protocol(quote=without_asset), store, portion)
    [markets] = day_by_day(store, ["markets"], START, SINCE + MINUTE)
    assert recompute(store, markets) == 2
    valued = "history IN ('price', 'deposits_usd', 'collateral_usd', 'debt_usd')"
    known = (
        f"SELECT asset_id = '{ASSET}', count() FROM observation FINAL WHERE {valued} AND known GROUP BY 1 ORDER BY 1"
    )
    ((is_other, others),) = run(known)
    assert (is_other, others > 0) == (0, True)


def test_changed_events_reach_all_later_sums_of_loans(store: Store, run: Run) -> None:
    """An early loan becomes one of a million more, and a job goes on from what it was before."""
    total = "SELECT observed_at, value FROM observation FINAL WHERE history = 'loans_originated' AND asset_id = ''"
    fill(store, RIGHT, "loans")
    before = dict(run(total))
    run(
        "INSERT INTO event_version SELECT * REPLACE (usd + 1000000 AS usd, version + 1 AS version) "
        "FROM event_version FINAL WHERE action = 'borrow' ORDER BY at LIMIT 1"
    )
    [portion] = day_by_day(store, ["loans"], from_unix(0), START + MINUTE)
    take_snapshot(JOBS["loans"], RIGHT, store, END + 30 * MINUTE)
    assert recompute(store, portion) > len(before)
    after = dict(run(total))
    assert {value - before[at] for at, value in after.items() if at in before} == {1_000_000}
    assert max(after.values()) == run("SELECT sum(usd) FROM event_version FINAL WHERE action = 'borrow'")[0][0]
    assert recompute(store, portion) == 0


def test_values_that_were_imported_stay(settings: Settings, wrong: Store, run: Run, tmp_path: Path) -> None:
    path, at = tmp_path / "tvl.csv", LAST
    path.write_text(f"time,value\n{unix_second(at)},5\n")
    CliRunner().invoke(cli, ["import", "tvl", str(path), "--time-unit", "s"], env=settings.to_environment({}))
    (prices,) = plan(wrong, "prices", at, at + MINUTE)
    replace_snapshots(JOBS["prices"], RIGHT, wrong, prices)
    (markets,) = day_by_day(wrong, ["markets"], at, at + MINUTE)
    assert recompute(wrong, markets) == 1
    assert run(f"SELECT usd FROM tvl WHERE observed_at = {unix_second(at)}") == [(5,)]


def test_the_command_takes_all_snapshots_of_a_range_anew(settings: Settings, store: Store, run: Run) -> None:
    """And no others. What was made of it is not taken with it."""
    for name, minutes in (("prices", 10), ("markets", 20)):
        take_snapshot(JOBS[name], SimulatedSource("1"), store, START + minutes * MINUTE)
    prices = run("SELECT * FROM price ORDER BY ALL")
    run("INSERT INTO observation SELECT * REPLACE (2 * value AS value, version + 1 AS version) FROM observation")
    between = ["--start", "2025-02-27T23:05:00Z", "--end", "2025-02-27T23:15:00Z"]
    command = ["jobs", "backfill", "prices", *between, "--every", "5min", "--again"]
    wrong = run("SELECT * FROM price ORDER BY ALL")
    said = CliRunner().invoke(cli, [*command, "--dry-run"], env=settings.to_environment({})).output
    assert said.splitlines() == [
        "Snapshots come from simulated:1.",
        "prices: 1 snapshots to replace.",
    ]
    assert run("SELECT * FROM price ORDER BY ALL") == wrong != prices
    said = CliRunner().invoke(cli, command, env=settings.to_environment({})).output
    assert "prices: 1 snapshots replaced." in said
    assert "`analytics-service jobs recompute --start 2025-02-27T23:20:00Z --end 2025-02-27T23:20:00Z`" in said
    assert run("SELECT * FROM price ORDER BY ALL") == prices


def test_all_datasets_are_filled_in_but_that_of_whose_past_the_source_knows_nothing(
    settings: Settings, store: Store, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forgotten(source: SimulatedSource, at: datetime) -> NoReturn:
        raise SourceError("The node is pruned.")

    def broken(source: SimulatedSource, at: datetime) -> NoReturn:
        raise KeyError("rpc")

    monkeypatch.setattr(SimulatedSource, "swaps", forgotten)
    monkeypatch.setattr(SimulatedSource, "arrangements", broken)
    between = ["--start", "2025-01-03T00:00Z", "--end", "2025-01-03T02:00Z", "--source", "simulated:1"]

    def command(*more: str) -> Result:
        return CliRunner().invoke(cli, ["jobs", "backfill", "all", *between, *more], env=settings.to_environment({}))

    lacking = ("ptoken", "routes")
    others = [name for name in JOBS if name not in lacking]
    assert [f"{name}: 3 snapshots to take." for name in JOBS] == command("--dry-run").output.splitlines()[1:]
    first = command()
    asked = "The node is pruned. It was asked for swaps as of 2025-01-03T00:00:00Z."
    lost = f"{asked} 3 of 3 snapshots cannot be taken;"
    assert (first.exit_code, f"Error: routes: {lost}" in first.output) == (1, True)
    assert "ptoken: the source failed unexpectedly" in first.output
    assert run("SELECT dataset, count() FROM snapshot FINAL GROUP BY dataset ORDER BY 1") == [
        (name, 3) for name in sorted(others)
    ]
    monkeypatch.undo()
    again = command()
    assert again.exit_code == 0
    counts = {name: (3, 0) if name in lacking else (0, 3) for name in JOBS}
    assert [line for line in again.output.splitlines() if " taken, " in line] == [
        f"{name}: {new} snapshots taken, {there} already stored." for name, (new, there) in counts.items()
    ]


def test_snapshots_that_another_process_takes_again_meanwhile_are_taken_once_more(store: Store) -> None:
    take_snapshot(JOBS["rates"], RIGHT, store, START)
    (portion,) = plan(store, "rates", START, END + MINUTE)
    asked = []

    class Slow(Protocol):
        def rates(self, at: datetime) -> Rates:
            asked.append(at)
            if len(asked) == 1:
                replace_snapshots(JOBS["rates"], RIGHT, store, portion)
            return super().rates(at)

    replace_snapshots(JOBS["rates"], Slow(), store, portion)
    assert asked == [START, START]


def test_snapshots_that_are_taken_out_meanwhile_stay_out(
    store: Store, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.recompute.IF_OVERTAKEN", replace(IF_OVERTAKEN, wait=lambda pause: None))
    take_snapshot(JOBS["rates"], RIGHT, store, START)
    (portion,) = plan(store, "rates", START, END + MINUTE)
    run("TRUNCATE TABLE snapshot")
    with pytest.raises(Overtaken):
        replace_snapshots(JOBS["rates"], RIGHT, store, portion)
    assert plan(store, "rates", START, END + MINUTE) == []
