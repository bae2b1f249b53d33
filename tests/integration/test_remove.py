"""`remove`: what it takes out, what it leaves behind, and that its files bring it back."""

import random
from contextlib import closing
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from analytics_service.admin.remove import Removal, remove
from analytics_service.cli.main import cli
from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.market.events import Action, Event
from analytics_service.market.instants import DAY, format_instant, unix_second
from analytics_service.market.kinds import FOREVER
from analytics_service.market.positions import Balance, Position
from analytics_service.sources.simulated.source import SimulatedSource
from analytics_service.store.datasets.histories import LOANS, PRICES
from analytics_service.store.datasets.positions import read_items
from analytics_service.store.ledger import read_heads, read_ledger
from jobs.registry import JOBS
from jobs.runner import backfill, take_snapshot
from tests.doubles import Silent, Statement, WatchedStore
from tests.integration.handmade import HandMade
from tests.integration.imports import IDS, NOW, contents, observations, prices_file, query, run
from tests.integration.test_round_trips import bring

HOUR = timedelta(hours=1)
LAST = unix_second(NOW)
ALICE = "0x" + "a" * 40


def removed(settings: Settings, folder: Path, *arguments: str) -> Result:
    into = [] if "--dry-run" in arguments else ["--into", str(folder)]
    return CliRunner().invoke(cli, ["remove", *arguments, *into], env=settings.to_environment({}))


def test_the_file_of_what_is_removed_brings_it_back_exactly(
    store: Store, settings: Settings, tmp_path: Path, draw: random.Random
) -> None:
    """With values of 18 decimals, of one asset in the middle, then of all to the newest."""
    rows = [
        (name, LAST - hour * 3600, f"0.{draw.randint(1, 10**18):018d}")
        for name in IDS
        for hour in range(24 * 12, 0, -1)
    ]
    run(store, prices_file(tmp_path, rows))
    kept = {"ledger", "assets"}
    before = {name: rows for name, rows in contents(settings).items() if name not in kept}
    # A file never replaces another one.
    other = tmp_path / "price-2025-02-19-2025-02-21.csv"
    other.write_text("kept")
    for symbols, start, end, count in ((["AAA"], 10, 8, 49), ([], 3, None, 3 * 72)):
        since = format_instant(NOW - timedelta(days=start))
        arguments = ["price", "--start", since, *(word for name in symbols for word in ("--symbol", name))]
        arguments += ["--end", format_instant(NOW - timedelta(days=end))] if end else []
        if symbols:
            dry = removed(settings, tmp_path, *arguments, "--dry-run")
            said = f"Would remove {count} observations of price, from {since} to "
            assert (dry.exit_code, said in dry.output) == (0, True), dry.output
        own = observations(settings)
        result = removed(settings, tmp_path, *arguments)
        assert result.exit_code == 0, result.output
        assert f"Removed {count} observations of price, from {since}" in result.output
        gone = own.keys() - observations(settings).keys()
        assert {name for name, _ in gone} == {IDS[0]} if symbols else {*IDS}
        seconds = {at for _, at in gone}
        assert (min(seconds), max(seconds)) == (LAST - start * DAY, LAST - (end * DAY if end else 3600))
        assert len(gone) == count
    again = removed(settings, tmp_path, *arguments)
    assert (again.exit_code, "There is nothing to remove of prices" in again.output) == (2, True)
    assert other.read_text() == "kept"
    for file in {*tmp_path.glob("price-*.csv")} - {other}:
        run(store, file)
    assert {name: rows for name, rows in contents(settings).items() if name not in kept} == before


def test_what_an_interrupted_correction_has_begun_to_take_out_is_not_said_to_be_nothing(
    store: Store, settings: Settings, tmp_path: Path
) -> None:
    run(store, prices_file(tmp_path, [(IDS[0], LAST, "1")]))
    store.execute("INSERT INTO rewrite (dataset, version, operation) SELECT 'prices', 7, 'remove'")
    arguments = ["price", "--start", format_instant(NOW + HOUR)]
    dry = removed(settings, tmp_path, *arguments, "--dry-run")
    assert (dry.exit_code, "A correction of prices is unfinished; the service or" in dry.output) == (2, True)
    done = removed(settings, tmp_path, *arguments)
    assert (done.exit_code, read_ledger(store).open) == (2, {})
    assert "There is nothing to remove of prices in this range." in done.output
    assert "unfinished" not in done.output


def test_the_file_of_a_history_has_its_total_too(store: Store, settings: Settings, tmp_path: Path) -> None:
    """Loans of two assets, of 2 and 3 USD."""
    loans = [
        Event(name, Action.BORROW, name, "0x" + "a" * 40, NOW - hours * HOUR, 1, Decimal(usd))
        for name, hours, usd in ((IDS[0], 2, 2), (IDS[1], 1, 3))
    ]
    take_snapshot(JOBS["loans"], HandMade(events_=loans), store, NOW)
    columns, where = "asset_id, toUnixTimestamp(observed_at), value", "history = 'loans_originated'"
    sums = f"SELECT {columns} FROM observation FINAL WHERE {where} ORDER BY ALL"
    before = query(settings, sums)
    assert [row for row in before if row[2]] == [
        *(("", LAST - 7200, 2), ("", LAST - 3600, 5)),
        *((IDS[0], LAST - 7200, 2), (IDS[1], LAST - 3600, 3)),
    ]
    assert removed(settings, tmp_path, "loans-originated", "--start", "2020-01-01").exit_code == 0
    assert query(settings, sums) == []
    bring(store, LOANS, *tmp_path.glob("loans-originated-*.csv"))
    assert query(settings, sums) == before


def test_snapshots_go_with_their_observations_and_can_be_taken_anew(
    store: Store, settings: Settings, tmp_path: Path
) -> None:
    """One in the middle; afterwards the tables are as before."""
    source, names = SimulatedSource("1"), ("prices", "markets")
    hours = [NOW + hour * HOUR for hour in range(3)]
    for name in names:
        backfill(JOBS[name], source, store, hours)
    listed = "(observed_at, version) IN (SELECT at, version FROM snapshot)"
    tables = (
        "SELECT history, asset_id, observed_at, value FROM observation FINAL ORDER BY ALL",
        "SELECT dataset, at, kind FROM snapshot FINAL WHERE kind = 'backfill' ORDER BY ALL",
        f"SELECT * EXCEPT version FROM market_lend FINAL WHERE {listed} ORDER BY ALL",
    )
    before = [query(settings, sql) for sql in tables]
    middle = format_instant(hours[1])
    for name in names:
        result = removed(settings, tmp_path, name, "--start", middle, "--end", middle)
        assert result.exit_code == 0, result.output
        assert f"Removed 1 snapshots of {name}" in result.output
    at = f"'{hours[1]:%Y-%m-%d %H:%M:%S}'"
    assert query(settings, f"SELECT count() FROM snapshot WHERE at = {at}") == [(0,)]
    assert query(settings, f"SELECT count() FROM observation WHERE observed_at = {at}") == [(0,)]
    for name in names:
        backfill(JOBS[name], source, store, hours)
    assert [query(settings, sql) for sql in tables] == before


def take_wallet(store: Store, hours: int, *amounts: int) -> None:
    """Take the snapshot of a wallet."""
    wallet = tuple(Balance(f"native;{number}", amount) for number, amount in enumerate(amounts))
    source = HandMade(positions_=[Position(ALICE, wallet=wallet)])
    take_snapshot(JOBS["positions"], source, store, NOW + hours * HOUR)


def wallet(store: Store, hours: int) -> list[int]:
    items = read_items(store, [ALICE], unix_second(NOW + hours * HOUR)).sort("asset_id")
    return [int(amount) for amount in items["amount"]]


def test_of_what_is_made_from_earlier_snapshots_only_the_newest_go(
    store: Store, settings: Settings, tmp_path: Path
) -> None:
    for day in range(3):
        take_wallet(store, 24 * day, day + 1, 9)
    next_day = format_instant(NOW + 24 * HOUR)
    middle = removed(settings, tmp_path, "positions", "--start", format_instant(NOW), "--end", next_day)
    assert (middle.exit_code, "Leave out --end" in middle.output) == (2, True)
    result = removed(settings, tmp_path, "positions", "--start", next_day)
    assert "Removed 2 snapshots of positions" in result.output
    assert read_heads(store)["positions"].instant == NOW
    assert wallet(store, 48) == [1, 9]
    take_wallet(store, 24, 2, 9)
    assert wallet(store, 24) == [2, 9]


@pytest.mark.slow
def test_events_that_a_run_left_when_it_died_go_with_the_snapshot_that_repeated_it(
    store: Store, settings: Settings, tmp_path: Path
) -> None:
    source, later = SimulatedSource("1"), NOW + 24 * HOUR
    take_snapshot(JOBS["loans"], source, store, NOW)

    def stored() -> list[tuple[object, ...]]:
        return query(settings, "SELECT id, at FROM event_version FINAL ORDER BY ALL")

    def die(statement: Statement) -> None:
        if statement == ("insert", "snapshot"):
            raise KeyboardInterrupt

    before = stored()
    with closing(WatchedStore(settings, before=die)) as watched, pytest.raises(KeyboardInterrupt):
        take_snapshot(JOBS["loans"], source, watched, later)
    take_snapshot(JOBS["loans"], source, store, later)
    assert stored() != before
    remove(store, Removal("loans", None, unix_second(later), FOREVER), tmp_path, Silent())
    assert stored() == before


@pytest.mark.slow
def test_positions_that_were_taken_beside_the_removal_go_with_it(
    store: Store, settings: Settings, tmp_path: Path
) -> None:
    """They were stored as changes of what is gone. A wallet has 1 and 1, wrongly 2 and 2, then truly 2 and 1."""

    def beside(statement: Statement) -> None:
        if statement.name.startswith("DELETE FROM snapshot") and not taken:
            taken.append(2)
            take_wallet(store, 2, 2, 1)

    taken: list[int] = []
    take_wallet(store, 0, 1, 1)
    take_wallet(store, 1, 2, 2)
    with closing(WatchedStore(settings, before=beside)) as watched:
        remove(watched, Removal("positions", None, unix_second(NOW + HOUR), FOREVER), tmp_path, Silent())
    assert taken
    take_wallet(store, 3, 2, 1)
    assert wallet(store, 3) == [2, 1]


@pytest.mark.slow
def test_what_came_just_before_a_removal_goes_with_it(store: Store, settings: Settings, tmp_path: Path) -> None:
    """The removal counts what there is once it has the write lock."""
    job, source, came = JOBS["prices"], SimulatedSource("1"), list[int]()

    def beside(statement: Statement) -> None:
        if statement.name == "list_abandoned_staging" and not came:
            came.append(1)
            take_snapshot(job, source, store, NOW + HOUR)

    take_snapshot(job, source, store, NOW)
    with closing(WatchedStore(settings, before=beside)) as watched:
        remove(watched, Removal("prices", PRICES, LAST, FOREVER), tmp_path, Silent())
    assert came
    assert observations(settings) == {}
