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
from analytics_service.store.write_lock import write_lock
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
        for hour in range(24 * 40, 0, -1)
    ]
    run(store, prices_file(tmp_path, rows))
    kept = {"ledger", "assets"}
    before = {name: rows for name, rows in contents(settings).items() if name not in kept}
    for number, (symbols, start, end) in enumerate([(["AAA"], 30, 20), ([], 9, None)]):
        since = format_instant(NOW - timedelta(days=start))
        arguments = ["price", "--start", since, *(word for name in symbols for word in ("--symbol", name))]
        arguments += ["--end", format_instant(NOW - timedelta(days=end or 0))] if end else []
        count = (241, 3 * 216)[number]
        said = f"remove {count} observations of price, from {since} to "
        dry = removed(settings, tmp_path, *arguments, "--dry-run")
        assert (dry.exit_code, f"Would {said}" in dry.output) == (0, True), dry.output
        own = observations(settings)
        result = removed(settings, tmp_path, *arguments)
        assert result.exit_code == 0, result.output
        assert f"Removed {count} observations of price, from {since}" in result.output
        gone = own.keys() - observations(settings).keys()
        assert {name for name, _ in gone} == {IDS[0]} if symbols else {*IDS}
        assert len(gone) == count
        again = removed(settings, tmp_path, *arguments)
        assert (again.exit_code, "There is nothing to remove of prices" in again.output) == (2, True)
    for file in tmp_path.glob("price-*.csv"):
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
    with write_lock(store, "prices", "remove"):
        refused = removed(settings, tmp_path, *arguments)
    assert (refused.exit_code, ": remove of prices. Try" in refused.output) == (2, True), refused.output
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


def test_files_never_replace_others(store: Store, settings: Settings, tmp_path: Path) -> None:
    first, second, third = (tmp_path / f"price-2025-03-01-2025-03-01{n}.csv" for n in ("", "-2", "-3"))
    for path in (first, second):
        path.write_text("kept")
    run(store, prices_file(tmp_path, [(IDS[0], LAST, "1"), (IDS[0], LAST - DAY, "2")]))
    assert removed(settings, tmp_path, "price", "--start", format_instant(NOW)).exit_code == 0
    assert [path.read_text() for path in (first, second)] == ["kept"] * 2
    assert {*tmp_path.glob("price-*")} == {first, second, third}


@pytest.mark.usefixtures("views")
@pytest.mark.parametrize(
    "names", [("prices", "markets"), pytest.param(("rates", "ptoken"), marks=pytest.mark.slow)], ids=" ".join
)
def test_snapshots_go_with_their_observations_and_can_be_taken_anew(
    store: Store, settings: Settings, tmp_path: Path, names: tuple[str, ...]
) -> None:
    """Of every job that has history, one of several in the middle; afterwards the tables answer as before."""
    source = SimulatedSource("1")
    hours = [NOW + hour * HOUR for hour in range(4)]
    for name in names:
        backfill(JOBS[name], source, store, hours)
    sql = "SELECT history, asset_id, observed_at, value FROM observation FINAL ORDER BY ALL"
    listed = "SELECT dataset, at, kind FROM snapshot FINAL WHERE kind = 'backfill' ORDER BY ALL"
    markets = "SELECT * FROM market ORDER BY ALL"
    before = [query(settings, each) for each in (sql, listed, markets)]
    for name in names:
        result = removed(
            settings, tmp_path, name, "--start", format_instant(hours[1]), "--end", format_instant(hours[2])
        )
        assert result.exit_code == 0, result.output
        assert f"Removed 2 snapshots of {name}" in result.output
        at = f"'{hours[1]:%Y-%m-%d %H:%M:%S}' AND '{hours[2]:%Y-%m-%d %H:%M:%S}'"
        assert query(settings, f"SELECT count() FROM snapshot WHERE dataset = '{name}' AND at BETWEEN {at}") == [(0,)]
    assert query(
        settings, f"SELECT count() FROM observation WHERE history != 'price' AND observed_at BETWEEN {at}"
    ) == [(0,)]
    for name in names:
        backfill(JOBS[name], source, store, hours)
    assert [query(settings, each) for each in (sql, listed, markets)] == before


@pytest.mark.usefixtures("views")
@pytest.mark.parametrize("name", ["positions", pytest.param("loans", marks=pytest.mark.slow)])
def test_of_what_is_made_from_earlier_snapshots_only_the_newest_go(
    store: Store, settings: Settings, tmp_path: Path, name: str
) -> None:
    source = SimulatedSource("1")
    for dataset in ("prices", "markets"):
        take_snapshot(JOBS[dataset], source, store, NOW)
    for hour in range(3):
        take_snapshot(JOBS[name], source, store, NOW + hour * 24 * HOUR)
    tables = {"positions": "position_now", "loans": "events"}
    sql = f"SELECT * FROM {tables[name]} ORDER BY ALL"
    before = query(settings, sql)
    middle = removed(settings, tmp_path, name, "--start", format_instant(NOW), "--end", format_instant(NOW + 24 * HOUR))
    assert (middle.exit_code, "Leave out --end" in middle.output) == (2, True)
    result = removed(settings, tmp_path, name, "--start", format_instant(NOW + 24 * HOUR))
    assert f"Removed 2 snapshots of {name}" in result.output
    assert read_heads(store)[name].instant == NOW
    assert query(settings, sql) != before
    for hour in (1, 2):
        take_snapshot(JOBS[name], source, store, NOW + hour * 24 * HOUR)
    assert query(settings, sql) == before


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
    job, start = JOBS["positions"], NOW + HOUR

    def take(hours: int, *amounts: int) -> None:
        wallet = tuple(Balance(f"native;{number}", amount) for number, amount in enumerate(amounts))
        take_snapshot(job, HandMade(positions_=[Position(ALICE, wallet=wallet)]), store, NOW + hours * HOUR)

    def beside(statement: Statement) -> None:
        if statement.name.startswith("DELETE FROM snapshot") and not taken:
            taken.append(2)
            take(2, 2, 1)

    taken: list[int] = []
    take(0, 1, 1)
    take(1, 2, 2)
    with closing(WatchedStore(settings, before=beside)) as watched:
        remove(watched, Removal("positions", None, unix_second(start), FOREVER), tmp_path, Silent())
    assert taken
    take(3, 2, 1)
    items = read_items(store, [ALICE], unix_second(NOW + 3 * HOUR)).sort("asset_id")
    assert [int(amount) for amount in items["amount"]] == [2, 1]


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
