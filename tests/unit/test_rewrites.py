"""Rewrites of history, step by step: what a writer does, and what becomes of it when it is killed, stopped or
overtaken at any step. A double stands for ClickHouse; the same orders of events are tried on a real one elsewhere."""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime

import polars as pl
import pytest

from analytics_service.errors import BackupFailed, SchemaError, StoreFailure, StoreUnavailable
from analytics_service.store.announcements import REWRITE, announced
from analytics_service.store.applied import Migration, shipped
from analytics_service.store.columns import TEXT
from analytics_service.store.connection import Store
from analytics_service.store.ledger import Head, Ledger, Origin, Run, Versions, read_ledger
from analytics_service.store.rewrite import (
    Recovery,
    appends,
    complete_appends,
    publish,
    recover,
    settle,
    settled,
    staging,
)
from analytics_service.store.snapshot_table import SnapshotTable
from analytics_service.store.staging import Staging
from jobs.scheduler import recover_until
from jobs.snapshot import Snapshot, Taking, commit
from tests.doubles import NOON, LedgerStore, Statement

TABLES = ["asset", "price"]
PLACES = {"asset": {7}, "price": {7}, "price_cell": {7}}
BEFORE = Head("prices", NOON, NOON, 1, 1)
PRICE = SnapshotTable("price", {"price": TEXT})
AFTER = Head("prices", NOON, NOON, 7, 2, rewrites=1)
# Statements of `rewrite` up to the first one about cells, up to its announcement, and all of them.
COMPUTED, ANNOUNCED, ALL = 7, 9, 18


class Killed(BaseException):
    """The process ends here."""


@pytest.fixture
def store() -> LedgerStore:
    return LedgerStore("prices", "rates")


def run(first: int = NOON - 60, last: int = NOON, version: int = 7, family: str = "prices") -> Run:
    return Run(family, last, "import", first, last, 2, "test", version)


def rewrite(store: LedgerStore, version: int = 7, family: str = "prices") -> None:
    """Rewrite the past of a family."""
    write(store, run(version=version, family=family))


def append(store: LedgerStore) -> None:
    """Import prices that are later than all others."""
    write(store, run(NOON + 60, NOON + 60))


def write(store: LedgerStore, one: Run) -> None:
    """Stage rows of a run, and publish it."""
    with staging(store, one.family, TABLES, one.version) as staged:
        for table in TABLES:
            staged.insert(table, pl.DataFrame({"version": [one.version]}))
        publish(store, staged, [one])


def at(n: int, act: Callable[[], object]) -> Callable[[Statement], None]:
    """A hook that acts before the n-th statement (from 1)."""
    seen = 0

    def before(statement: Statement) -> None:
        nonlocal seen
        seen += 1
        if seen == n:
            act()

    return before


def from_on(n: int, error: type[BaseException]) -> Callable[[Statement], None]:
    """A hook that raises an error before the n-th statement (from 1) and before all that follow."""
    seen = 0

    def before(statement: Statement) -> None:
        nonlocal seen
        seen += 1
        if seen >= n:
            raise error("no further")

    return before


def rolled_forward(store: LedgerStore) -> Callable[[], None]:
    """Three seconds of silence pass, and somebody else looks."""

    def act() -> None:
        before, store.before = store.before, lambda statement: None
        store.fall_silent()
        recover(store)
        store.before = before

    return act


def test_nothing_is_written_under_the_schema_of_another_version(store: LedgerStore) -> None:
    """What this version leaves out might be what readers of the newer schema need."""
    later = Migration(999, "0999_later.sql", "")
    for migrations, message in (((*shipped(), later), "newer version"), (shipped()[:-1], "run `analytics-service mig")):
        store.migrations = migrations
        with pytest.raises(SchemaError, match=message):
            append(store)
        assert (store.in_place, store.appended, store.tables) == ({}, {}, {})


# What is announced.


@pytest.mark.parametrize(
    ("first", "version", "answer"),
    [
        (NOON + 1, 2, True),
        # A row at the very second that the head shows last.
        (NOON, 2, False),
        (NOON - 1, 2, False),
        # A version that the head has already, or a lower one.
        (NOON + 1, 1, False),
        (NOON + 1, 0, False),
    ],
)
def test_only_what_lies_after_the_head_in_time_and_version_is_an_append(first: int, version: int, answer: bool) -> None:
    assert appends(BEFORE, [run(NOON + 9, NOON + 9, 9), run(first, NOON + 5, version)]) is answer


def test_the_first_run_of_a_family_is_an_append() -> None:
    assert appends(None, [run()])


def snapshot(second: int) -> Snapshot:
    return Snapshot(datetime.fromtimestamp(second, UTC), {PRICE: [{"price": "1"}]})


@pytest.mark.parametrize(("second", "rewrites"), [(NOON, 1), (NOON + 1, 0)])
def test_a_job_announces_what_does_not_append(store: LedgerStore, second: int, rewrites: int) -> None:
    commit(store, [snapshot(second)], Taking("prices", "job", Origin("test")), 7)
    assert store.heads["prices"] == Head("prices", second, second, 7, 2, rewrites)
    assert ("append_run" in store.statements) is (rewrites == 0)
    assert ("publication" in store.statements) is (rewrites == 1)
    assert not store.open


def test_a_job_that_was_overtaken_while_it_wrote_announces_its_rows(store: LedgerStore) -> None:
    """Its rows landed among those that readers were shown meanwhile, so what they read must be read again."""

    def overtake() -> None:
        store.before = lambda statement: None
        commit(store, [snapshot(NOON + 120)], Taking("prices", "job", Origin("test")), 8)

    store.before = at(1, overtake)
    commit(store, [snapshot(NOON + 60)], Taking("prices", "job", Origin("test")), 7)
    assert store.heads["prices"] == Head("prices", NOON + 120, NOON + 120, 8, 3, rewrites=1)
    assert not store.open
    assert not store.tables


# Runs that append.

APPENDED = 10
"""Statements of `tick`."""


def tick(store: LedgerStore, second: int = NOON + 60, version: int = 7) -> None:
    commit(store, [snapshot(second)], Taking("prices", "job", Origin("test")), version)


@pytest.mark.parametrize("n", range(1, APPENDED))
def test_a_tick_that_is_killed_leaves_nothing_or_comes_before_the_next_one(store: LedgerStore, n: int) -> None:
    """No head passes an instant of which some rows are in place and others are not."""
    heads: list[int] = []
    store.before = from_on(n, Killed)
    with suppress(Killed):
        tick(store)
    store.before = lambda statement: heads.append(store.heads["prices"].at)
    announced_before = bool(store.appended)
    tick(store, NOON + 120, 8)
    expected = [NOON, NOON + 60, NOON + 120] if announced_before else [NOON, NOON + 120]
    assert sorted({*heads, store.heads["prices"].at} | ({NOON} if n > 1 else set())) == expected
    assert store.in_place["price"] == ({7, 8} if announced_before else {8})
    assert store.heads["prices"].rewrites == 0
    assert all(store.appended.values())


@pytest.mark.parametrize("n", range(1, APPENDED))
def test_a_tick_that_was_paused_while_the_next_one_came_rewrites_or_was_completed(store: LedgerStore, n: int) -> None:
    """What it adds below the head that readers were shown meanwhile is announced to them."""
    store.before = at(n, lambda: tick(store, NOON + 120, 8))
    tick(store)
    head = store.heads["prices"]
    assert (head.at, head.version, head.rewrites) == (NOON + 120, 8, 0 if n > store_announcement() else 1)
    assert store.in_place["price"] == {7, 8}
    assert (store.open, store.tables) == (set(), {})
    assert all(store.appended.values())


def store_announcement() -> int:
    """The number of the statement by which a tick is announced."""
    store = LedgerStore("prices")
    tick(store)
    assert len(store.statements) == APPENDED - 1
    return store.statements.index("append_run") + 1


def test_of_two_schedulers_that_take_the_same_snapshot_one_withdraws(store: LedgerStore) -> None:
    """Else each tick of two schedulers were a rewrite, for which readers wait."""
    store.before = at(store_announcement() + 1, lambda: tick(store, version=8))
    tick(store)
    assert (store.heads["prices"].at, store.heads["prices"].version, store.heads["prices"].rewrites) == (
        NOON + 60,
        7,
        0,
    )
    assert store.in_place["price"] == {7}
    assert (store.open, store.tables) == (set(), {})


def test_no_snapshot_is_taken_while_the_one_before_it_cannot_be_completed(store: LedgerStore) -> None:
    """It is completed as soon as that is possible, and none is lost."""
    full = [True]

    def fail(statement: Statement) -> None:
        if full[0] and statement.name.startswith("ALTER TABLE price "):
            raise StoreUnavailable("disk full")

    store.before = fail
    with pytest.raises(StoreUnavailable, match="disk full"):
        tick(store)
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="disk full"):
            complete_appends(store, "prices")
    assert store.heads["prices"] == BEFORE
    full[0] = False
    complete_appends(store, "prices")
    assert store.heads["prices"] == Head("prices", NOON + 60, NOON + 60, 7, 2)
    complete_appends(store, "prices")
    assert store.heads["prices"].runs == 2


def test_a_tick_of_another_scheduler_that_ends_while_it_is_looked_at_is_left_alone(store: LedgerStore) -> None:
    """Its tables are gone when its turn comes."""
    store.tell("append_run", ("prices", 6), finished=False)
    tick(store)
    assert store.heads["prices"] == Head("prices", NOON + 60, NOON + 60, 7, 2)
    assert store.appended == {("prices", 6): True, ("prices", 7): True}


def test_a_silent_tick_is_completed_by_whoever_notices(store: LedgerStore) -> None:
    store.before = from_on(store_announcement() + 1, Killed)
    with pytest.raises(Killed):
        tick(store)
    rolled_forward(store)()
    assert store.heads["prices"] == Head("prices", NOON + 60, NOON + 60, 7, 2)
    assert (store.tables, store.appended) == ({}, {("prices", 7): True})


@pytest.mark.parametrize("n", range(1, 30))
def test_two_may_complete_a_tick_at_a_time(store: LedgerStore, n: int) -> None:
    """The next tick, and somebody else who is faster at any of its steps, and drops what was staged."""
    store.before = from_on(store_announcement() + 1, Killed)
    with pytest.raises(Killed):
        tick(store)
    store.before = act = at(n, lambda: complete_appends(store, "prices"))
    store.on_look = lambda: act(Statement("query", "ledger"))
    tick(store, NOON + 120, 8)
    assert (store.heads["prices"].at, store.in_place["price"]) == (NOON + 120, {7, 8})
    assert (store.open, store.tables, store.appended.keys()) == (set(), {}, {("prices", 7), ("prices", 8)})
    assert all(store.appended.values())


@pytest.mark.parametrize("n", range(1, 20))
def test_an_import_that_appends_and_is_stopped_goes_on_well_after_others_have_completed_it(
    store: LedgerStore, n: int
) -> None:
    store.before = act = at(n, rolled_forward(store))
    store.on_look = lambda: act(Statement("query", "ledger"))
    append(store)
    assert (store.heads["prices"].at, store.in_place) == (NOON + 60, {"asset": {7}, "price": {7}})
    assert (store.open, store.tables, store.appended) == (set(), {}, {("prices", 7): True})


def test_an_import_may_be_completed_just_before_it_is_announced_as_a_rewrite(store: LedgerStore) -> None:
    """With two more runs it does not know whether it is the first. Who comes later finds it alone."""

    def overtake(statement: Statement) -> None:
        if statement.name == "publication":
            store.before = lambda statement: None
            complete_appends(store, "prices")

    for version in (5, 6):
        store.tell("append_run", ("prices", version), finished=False)
    store.before = overtake
    append(store)
    assert (store.heads["prices"].at, store.heads["prices"].version) == (NOON + 60, 7)
    assert (store.open, store.tables, store.finished) == (set(), {}, {("prices", 7): True})
    assert all(store.appended.values())


def test_what_another_process_still_completes_stays_in_staging(store: LedgerStore) -> None:
    """It has announced a run as a rewrite, whose writer finishes it meanwhile, and is killed then."""
    store.before = at(APPENDED - 2, lambda: store.tell("publication", ("prices", 7), finished=False))
    tick(store)
    assert store.appended == {("prices", 7): True}
    assert store.tables.keys() == {"snapshot_staging_7", "price_staging_7"}
    rolled_forward(store)()
    assert (store.open, store.tables) == (set(), {})


# The steps of a writer.


def test_the_steps_of_a_rewrite(store: LedgerStore) -> None:
    rewrite(store)
    shortened = [" ".join(one.replace("IF NOT EXISTS ", "").split()[:3]) for one in store.statements]
    assert shortened == [
        "CREATE TABLE snapshot_staging_7",
        "CREATE TABLE asset_staging_7",
        "CREATE TABLE price_staging_7",
        "asset_staging_7",
        "price_staging_7",
        # What others need to roll it forward is staged before it is announced.
        "snapshot_staging_7",
        # So are the cells that it changes, for which readers would wait.
        "CREATE TABLE price_cell_staging_7",
        "fill_cells price_cell_staging_7",
        "publication",
        "ALTER TABLE asset",
        "ALTER TABLE price",
        "ALTER TABLE price_cell",
        # The ledger's row is the last thing that is put in place. Then others' definitions may be shown.
        "INSERT INTO snapshot",
        "show_assets",
        "announce_assets",
        "publication",
        "DROP TABLE IF",
    ]
    # Without the ledger's table nobody puts anything in place any more, so it goes first.
    assert store.statements[16].startswith("DROP TABLE IF EXISTS snapshot_staging_7, ")
    assert shortened.index("publication") == ANNOUNCED - 1
    assert len(shortened) == ALL - 1
    assert (store.heads["prices"], store.in_place, store.tables) == (AFTER, PLACES, {})


@pytest.mark.parametrize("n", range(COMPUTED, ANNOUNCED + 5))
@pytest.mark.parametrize("is_tick", [False, True])
def test_cells_are_computed_again_when_another_run_came_in_between(store: LedgerStore, n: int, is_tick: bool) -> None:
    """Those in staging count for nothing then. One of both runs computes cells once all rows are in place."""

    def overtake() -> None:
        store.before = lambda statement: None
        tick(store, version=8) if is_tick else rewrite(store, version=8)

    store.before = at(n, overtake)
    rewrite(store)
    computed = [k for k, one in enumerate(store.statements) if one == "fill_cells price_cell"]
    attached = [k for k, one in enumerate(store.statements) if one.startswith("ALTER TABLE price ")]
    assert max(attached) < max(computed)
    assert (store.in_place["price"], store.open, store.tables) == ({7, 8}, set(), {})


def test_assets_of_other_families_get_versions_that_no_reader_has_seen(store: LedgerStore) -> None:
    """Readers see assets as of the head of prices. Definitions written since the run began are not replaced."""
    rewrite(store, family="rates")
    (statement,) = [one for one in store.statements if one.startswith("INSERT INTO asset")]
    version = int(statement.partition("REPLACE (")[2].partition(" ")[0])
    assert version > 1_700_000_000_000
    assert "WHERE id NOT IN (SELECT id FROM asset WHERE version > 7)" in statement
    # The head of prices names them last.
    begun = [one for one in store.statements if one.startswith(("INSERT INTO asset", "INSERT INTO snapshot", "show"))]
    columns = "family, at, kind, first_observed_at, last_observed_at, rows, source, version, simulated, files"
    listing = f"INSERT INTO snapshot ({columns}) SELECT {columns} FROM snapshot_staging_7 FINAL"
    assert begun == [statement, listing, "show_assets"]
    assert store.heads["prices"].version > version


def test_assets_are_shown_by_whoever_completes_a_run_that_was_killed_before(store: LedgerStore) -> None:
    before = store.heads["prices"]

    def kill(statement: Statement) -> None:
        if statement.name == "show_assets":
            raise Killed

    store.before = kill
    with pytest.raises(Killed):
        rewrite(store, family="rates")
    assert store.heads["prices"] == before
    store.before = lambda statement: None
    rolled_forward(store)()
    assert store.heads["prices"].version > before.version


# A writer is killed, stopped or fails at any step.


@pytest.mark.parametrize("n", range(1, ALL + 1))
def test_a_writer_that_is_killed_leaves_nothing_or_is_completed(store: LedgerStore, n: int) -> None:
    store.before = from_on(n, Killed)
    if n < ALL:
        with pytest.raises(Killed):
            rewrite(store)
    store.before = lambda statement: None
    if n <= ANNOUNCED:
        assert (store.heads["prices"], store.in_place) == (BEFORE, {})
        return
    rolled_forward(store)()
    assert not store.open
    if n < ALL:
        assert (store.heads["prices"].version, store.in_place) == (7, PLACES)
    if n < ALL - 1:
        assert not store.tables


@pytest.mark.parametrize("n", range(1, ALL))
def test_a_writer_that_is_stopped_goes_on_well_after_others_have_completed_its_work(store: LedgerStore, n: int) -> None:
    store.before = at(n, rolled_forward(store))
    rewrite(store)
    assert (store.heads["prices"].version, store.heads["prices"].rewrites) == (7, 1)
    assert (store.open, store.in_place, store.tables) == (set(), PLACES, {})


@pytest.mark.parametrize("n", range(1, 9))
def test_two_may_roll_a_rewrite_forward_at_a_time(store: LedgerStore, n: int) -> None:
    store.before = from_on(ANNOUNCED + 2, Killed)
    with pytest.raises(Killed):
        rewrite(store)
    store.before = at(n, rolled_forward(store))
    store.fall_silent()
    recover(store)
    assert store.heads["prices"].version == 7
    assert (store.open, store.in_place, store.tables) == (set(), PLACES, {})


@pytest.mark.parametrize("n", range(1, 9))
def test_who_rolls_forward_may_be_killed_too(store: LedgerStore, n: int) -> None:
    store.before = from_on(ANNOUNCED + 1, Killed)
    with pytest.raises(Killed):
        rewrite(store)
    store.before = from_on(n, Killed)
    store.fall_silent()
    with pytest.raises(Killed):
        recover(store)
    store.before = lambda statement: None
    rolled_forward(store)()
    assert (store.heads["prices"].version, store.open, store.in_place) == (7, set(), PLACES)


@pytest.mark.parametrize("error", [StoreUnavailable, StoreFailure, KeyboardInterrupt, ZeroDivisionError])
@pytest.mark.parametrize("n", [ANNOUNCED + 1, ANNOUNCED + 3])
def test_an_interrupted_announcement_does_not_stay_open(store: LedgerStore, error: type[BaseException], n: int) -> None:
    """Before the first change and after it. What is staged stays, so that somebody else can complete the rewrite."""

    def fail() -> None:
        raise error("interrupted")

    store.before = at(n, fail)
    with pytest.raises(error):
        rewrite(store)
    assert store.open == {"prices"}
    assert len(store.tables) == 4
    rolled_forward(store)()
    assert (store.heads["prices"], store.open, store.in_place, store.tables) == (AFTER, set(), PLACES, {})


@pytest.mark.parametrize("n", range(2, ANNOUNCED + 1))
def test_what_fails_before_its_announcement_leaves_nothing(store: LedgerStore, n: int) -> None:
    def fail() -> None:
        raise StoreFailure("interrupted")

    store.before = at(n, fail)
    with pytest.raises(StoreFailure):
        rewrite(store)
    assert (store.heads["prices"], store.open, store.in_place, store.tables) == (BEFORE, set(), {}, {})


def test_a_writer_tries_again_until_clickhouse_is_back(store: LedgerStore) -> None:
    failures = [StoreUnavailable("away")] * 3

    def fail(statement: Statement) -> None:
        if failures and statement.name.startswith(("ALTER", "INSERT")):
            raise failures.pop()

    def again(act):  # type: ignore[no-untyped-def]
        while True:
            try:
                return act()
            except StoreUnavailable:
                assert store.open == {"prices"}

    store.before = fail
    with staging(store, "prices", TABLES, 7, again) as staged:
        for table in TABLES:
            staged.insert(table, pl.DataFrame({"version": [7]}))
        publish(store, staged, [run()], again)
    assert (failures, store.heads["prices"], store.in_place, store.tables) == ([], AFTER, PLACES, {})


@pytest.mark.parametrize("first", [NOON - 60, NOON + 1], ids=["rewrite", "append"])
def test_a_writer_reads_again_what_it_could_not_read(store: LedgerStore, first: int) -> None:
    """Every look at the ledger fails once, after those that only complete the work of others."""
    failures: list[bool] = []

    def fail() -> None:
        failures.append(not failures or not failures[-1])
        if failures[-1]:
            raise StoreUnavailable("away")

    def again(act):  # type: ignore[no-untyped-def]
        while True:
            with suppress(StoreUnavailable):
                return act()

    with staging(store, "prices", TABLES, 7, again) as staged:
        for table in TABLES:
            staged.insert(table, pl.DataFrame({"version": [7]}))
        store.on_look = fail
        publish(store, staged, [run(first, NOON + 1)], again)
    assert True in failures
    places = PLACES if first < NOON else {"asset": {7}, "price": {7}}
    assert (store.heads["prices"].version, store.in_place, store.tables) == (7, places, {})


def test_an_announcement_whose_staging_tables_are_gone_is_finished(store: LedgerStore) -> None:
    store.before = from_on(ANNOUNCED + 1, Killed)
    with pytest.raises(Killed):
        rewrite(store)
    store.tables = {"price_staging_7": ""}
    rolled_forward(store)()
    assert (store.open, store.in_place, store.heads["prices"].runs, store.tables) == (set(), {}, 1, {})


# Several writers.


def test_a_tick_may_end_in_the_middle_of_a_rewrite(store: LedgerStore) -> None:
    def tick() -> None:
        commit(store, [snapshot(NOON + 60)], Taking("prices", "job", Origin("test")), 8)

    store.before = at(ANNOUNCED + 2, tick)
    rewrite(store)
    assert store.heads["prices"] == Head("prices", NOON + 60, NOON + 60, 8, 3, rewrites=1)
    assert not store.open


def test_a_family_is_open_until_all_of_its_rewrites_have_finished(store: LedgerStore) -> None:
    opened: list[Mapping[str, Sequence[int]]] = []

    def another() -> None:
        rewrite(store, version=8)
        opened.append(read_ledger(store).open)

    store.before = at(ANNOUNCED + 2, another)
    rewrite(store)
    assert opened == [{"prices": [7]}]
    assert not read_ledger(store).open
    assert store.heads["prices"] == Head("prices", NOON, NOON, 8, 3, rewrites=2)
    assert store.in_place["price"] == {7, 8}


def test_a_run_with_the_version_of_another_one_begins_again(store: LedgerStore) -> None:
    """Else the two would share staging tables, and show each other's rows."""
    with staging(store, "prices", TABLES, 7) as staged:
        theirs = dict(store.tables)
        with pytest.raises(StoreUnavailable, match="again"):
            rewrite(store, family="rates")
        assert store.tables == theirs
        staged.insert("price", pl.DataFrame({"version": [7]}))
        publish(store, staged, [run()])
    assert store.heads["prices"] == AFTER
    assert store.heads["rates"].runs == 1


def test_versions_are_unique_and_grow_even_when_the_clock_goes_back() -> None:
    times = iter([5_000_000, 5_000_001, 5_999_999, 4_000_000, 9_000_000])
    versions = Versions(lambda: next(times))
    assert [versions.new(after=0) for _ in range(5)] == [5, 6, 7, 8, 9]


def test_a_version_is_greater_than_those_of_a_clock_that_was_ahead() -> None:
    versions = Versions(lambda: 5_000_000)
    assert [versions.new(after) for after in (4, 100, 99)] == [5, 101, 102]


# Heartbeats.


def test_heartbeats_are_sent_until_the_writer_is_done(store: LedgerStore) -> None:
    sent = threading.Event()
    staged = Staging(store, "prices", 7)
    store.before = at(3, sent.set)
    with announced(store, staged, REWRITE, every=0.001):
        assert sent.wait(30)
    count = len(store.statements)
    assert not [thread for thread in threading.enumerate() if thread.name == "heartbeat"]
    assert store.statements == ["publication"] * count
    assert not store.open


def test_heartbeats_end_with_an_error_of_the_writer(store: LedgerStore) -> None:
    with pytest.raises(ZeroDivisionError), announced(store, Staging(store, "prices", 7), REWRITE, every=0.001):
        raise ZeroDivisionError
    assert not [thread for thread in threading.enumerate() if thread.name == "heartbeat"]
    assert store.open == {"prices"}


def test_heartbeats_do_not_reopen_a_finished_rewrite(store: LedgerStore) -> None:
    sent = threading.Event()
    with announced(store, Staging(store, "prices", 7), REWRITE, every=0.001):
        recovered = Staging(store, "prices", 7)
        with announced(store, recovered, REWRITE, every=60):
            pass
        assert not store.open
        store.before = at(2, sent.set)
        assert sent.wait(30)
        assert not store.open


def test_heartbeats_that_cannot_be_sent_are_logged_once(store: LedgerStore, caplog: pytest.LogCaptureFixture) -> None:
    tried = threading.Event()
    attempts = at(5, tried.set)

    def fail(statement: Statement) -> None:
        if threading.current_thread().name == "heartbeat":
            attempts(statement)
            raise StoreUnavailable("away")

    store.before = fail
    with announced(store, Staging(store, "prices", 7), REWRITE, every=0.001):
        assert tried.wait(30)
    assert [record.getMessage() for record in caplog.records] == ["Heartbeats cannot be sent: away"]


# Who notices.


def interrupted(store: LedgerStore) -> LedgerStore:
    """The store with a rewrite whose writer was killed right after its announcement, three seconds ago."""
    store.before = from_on(ANNOUNCED + 1, Killed)
    with pytest.raises(Killed):
        rewrite(store)
    store.before = lambda statement: None
    store.fall_silent()
    return store


def test_a_writer_that_still_sends_heartbeats_is_left_alone(store: LedgerStore) -> None:
    interrupted(store).silent = {}
    recover(store)
    assert store.open == {"prices"}


def test_the_next_job_completes_what_was_interrupted(store: LedgerStore) -> None:
    complete_appends(interrupted(store), "rates")
    assert not store.open
    assert store.heads["prices"] == AFTER


@pytest.mark.parametrize("error", [pl.exceptions.ComputeError("odd"), pl.exceptions.PanicException("no Exception")])
def test_the_scheduler_completes_it_beside_its_jobs_also_after_an_unexpected_error(
    store: LedgerStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    interrupted(store)
    looks: list[Ledger] = []

    def look(store: Store) -> Ledger:
        looks.append(read_ledger(store))
        if len(looks) == 1:
            raise error
        return looks[-1]

    monkeypatch.setattr("analytics_service.store.rewrite.read_ledger", look)
    stop = threading.Event()
    thread = threading.Thread(target=recover_until, args=(store, stop, 0.001))
    thread.start()
    try:
        for _ in range(30_000):
            if not store.open:
                break
            stop.wait(0.001)
    finally:
        stop.set()
        thread.join()
    assert (store.heads["prices"], store.open) == (AFTER, set())
    assert "Looking for interrupted runs failed unexpectedly" in caplog.messages


def test_a_failure_is_logged_once_for_each_rewrite_and_cause(
    store: LedgerStore, caplog: pytest.LogCaptureFixture
) -> None:
    interrupted(store)
    causes: list[BaseException] = [StoreFailure("disk full")] * 3 + [StoreUnavailable("away")] * 2
    causes += [ValueError("odd")] * 2 + [pl.exceptions.PanicException("no Exception")] * 2

    def fail(statement: Statement) -> None:
        if causes and statement.name.startswith("ALTER"):
            raise causes.pop(0)

    store.before = fail
    recovery = Recovery(store)
    for _ in range(10):
        store.fall_silent()
        recovery.look()
    messages = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert messages == [
        "An interrupted run of prices cannot be completed: disk full",
        "An interrupted run of prices cannot be completed: away",
        "An interrupted run of prices cannot be completed: odd",
        "An interrupted run of prices cannot be completed: no Exception",
        "A run of prices was interrupted; it is complete now.",
    ]
    assert [record.exc_info is not None for record in caplog.records] == [False, False, True, True, False]
    assert (store.heads["prices"], store.open) == (AFTER, set())


def test_a_failure_of_a_run_that_was_completed_since_is_logged_again(
    store: LedgerStore, caplog: pytest.LogCaptureFixture
) -> None:
    """What failed before takes no memory any more."""
    recovery = Recovery(store)
    for store.away in (True, False, True):
        recovery.roll_forward([("prices", 7)])
    failed = "An interrupted run of prices cannot be completed: away"
    assert caplog.messages == [failed, "A run of prices was interrupted; it is complete now.", failed]


def test_one_that_cannot_be_completed_does_not_keep_others_waiting(store: LedgerStore) -> None:
    interrupted(store)

    def fail(statement: Statement) -> None:
        if statement.name.startswith("ALTER") and statement.name.endswith("_7"):
            raise StoreFailure("disk full")

    store.before = fail
    complete_appends(store, "rates")
    rewrite(store, version=8, family="rates")
    assert store.open == {"prices"}
    assert store.heads["rates"].version == 8


@pytest.mark.parametrize("error", [StoreUnavailable, SchemaError])
def test_looking_fails_silently_while_there_is_no_ledger(
    store: LedgerStore, error: type[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise error("no ledger")

    store.on_look = fail
    recover(store)
    assert not caplog.records


def test_the_schema_does_not_change_while_a_rewrite_is_open(store: LedgerStore) -> None:
    """A writer that was killed just now is not silent yet."""
    interrupted(store).silent = {}
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 4:
            store.fall_silent()

    settle(store, pause)
    assert (len(pauses), store.open) == (5, set())


def test_a_writer_at_work_does_not_keep_the_schema_from_changing_for_ever(store: LedgerStore) -> None:
    interrupted(store).silent = {}
    pauses: list[float] = []
    settle(store, pauses.append)
    assert 5 <= sum(pauses) <= 10


def test_the_ledger_is_settled_once_no_rewrite_is_open(store: LedgerStore) -> None:
    interrupted(store)
    assert settled(store, pause=lambda seconds: None) == read_ledger(store)
    assert store.open == set()


def test_a_ledger_with_a_writer_at_work_is_not_settled(store: LedgerStore) -> None:
    interrupted(store).silent = {}
    with pytest.raises(BackupFailed, match=r"^prices: history is being rewritten\. Stop imports and backfills"):
        settled(store, pause=lambda seconds: None)
