"""Rewrites that take out observations and runs: afterwards the store is as if they had never been there."""

import random
from collections.abc import Iterable, Sequence
from contextlib import closing
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.errors import StoreUnavailable
from analytics_service.market.kinds import DECIMAL
from analytics_service.market.prices import Price
from analytics_service.sources.simulated.source import SimulatedSource
from analytics_service.store import ledger
from analytics_service.store.ledger import LedgerRow, parse_ledger_rows, read_heads, read_ledger
from analytics_service.store.rewrite import complete_interrupted, publish, staging
from jobs.registry import JOBS
from jobs.runner import take_snapshot
from tests import oracle
from tests.doubles import Statement, WatchedStore
from tests.integration.imports import IDS, NOW, observations, prices_file, query, run
from tests.integration.test_rollups import drawn, second, stored_rollups, take

DAY, HOUR = 86_400, timedelta(hours=1)
Key = tuple[str, int]
KEYS = {"history": pl.String, "asset_id": pl.String, "observed_at": pl.UInt32}


def take_out(
    store: Store, keys: Iterable[Key], runs: Sequence[LedgerRow] = (), added: pl.DataFrame | None = None
) -> None:
    version = ledger.new_version(store)
    rows = pl.DataFrame([*keys], {"asset_id": pl.String, "observed_at": pl.UInt32}, orient="row")
    with staging(store, "prices", version, what="remove") as staged:
        staged.remove(rows.with_columns(history=pl.lit("price")))
        staged.forget(runs)
        if added is not None:
            staged.insert("observation", added.with_columns(version=pl.lit(version)))
        publish(store, staged, [])


def test_observations_that_are_taken_out_leave_neither_rollups_nor_a_later_head(
    store: Store, settings: Settings, tmp_path: Path, draw: random.Random
) -> None:
    """Of an import and of ticks after it, at random; then the newest; then all."""
    newest = second(2024, 4, 4, 7)
    first = second(2024, 3, 20, 7, 30)
    known = {(draw.choice(IDS), draw.randint(first, newest)): drawn(draw) for _ in range(80)}
    known |= {(IDS[1], at): drawn(draw) for at in (newest, second(2024, 3, 31, 23, 59, 59))}
    run(store, prices_file(tmp_path, [(name, at, f"{usd:f}") for (name, at), usd in known.items()]))
    for at in (newest + DAY, newest + 12 * DAY):
        seen = {(name, at): drawn(draw) for name in IDS}
        take(store, at, [Price(name, oracle.instant(at), usd) for (name, at), usd in seen.items()])
        known |= seen
    ticks = [newest + DAY, newest + 12 * DAY]
    gone = [*draw.sample(sorted(key for key in known if key[1] < newest), 20), *((name, ticks[0]) for name in IDS)]
    for keys in (gone, [(name, ticks[1]) for name in IDS], [key for key in known if key[1] > newest - 9 * DAY]):
        take_out(store, keys)
        known = {key: usd for key, usd in known.items() if key not in keys}
        assert observations(settings) == known
        assert stored_rollups(settings) == oracle.rollups(known)
        assert read_heads(store)["prices"].last_observed_at == max(at for _, at in known)
    assert ledger.first_moment(store, "prices") == min(at for _, at in known)
    take(store, ticks[1] + DAY, [Price(IDS[0], oracle.instant(ticks[1] + DAY), Decimal(7))])
    known[IDS[0], ticks[1] + DAY] = Decimal(7)
    assert stored_rollups(settings) == oracle.rollups(known)


def test_what_a_rewrite_adds_stays_and_is_there_before_the_others_go(store: Store, settings: Settings) -> None:
    """A job that reads beside a rewrite must not find neither, and make its sums without."""
    at = second(2025, 1, 20, 8)
    take(store, at, [Price(name, oracle.instant(at), Decimal(1)) for name in IDS])
    rows = [("price", name, at, Decimal(5)) for name in (IDS[0], "token;other")]
    added, seen = pl.DataFrame(rows, {**KEYS, "value": DECIMAL}, orient="row"), []

    def look(statement: Statement) -> None:
        if statement.name.startswith("DELETE FROM observation"):
            seen.append({asset_id for asset_id, _ in observations(settings)})

    with closing(WatchedStore(settings, before=look)) as watched:
        take_out(watched, [(name, at) for name in IDS[:2]], added=added)
    assert seen == [{*IDS, "token;other"}]
    left = {IDS[0]: Decimal(5), IDS[2]: Decimal(1), "token;other": Decimal(5)}
    assert observations(settings) == {(name, at): usd for name, usd in left.items()}


def test_rows_are_taken_out_once_however_often_the_steps_are_repeated(store: Store, settings: Settings) -> None:
    """A mutation looks at all parts of a table, so whoever completes a rewrite begins none that is done."""
    at = second(2025, 1, 20, 8)
    take(store, at, [Price(name, oracle.instant(at), Decimal(1)) for name in IDS])
    mutations = "SELECT table, count() FROM system.mutations WHERE database = currentDatabase() GROUP BY 1 ORDER BY 1"

    def die(statement: Statement) -> None:
        if statement.name.startswith("INSERT INTO snapshot"):
            raise StoreUnavailable("ClickHouse is gone.")

    with closing(WatchedStore(settings, before=die)) as broken, pytest.raises(StoreUnavailable):
        take_out(broken, [(IDS[0], at)])
    before = query(settings, mutations)
    assert before == [("observation", 1), ("rollup", 1)]
    complete_interrupted(store)
    assert not read_ledger(store).open
    assert query(settings, mutations) == before
    assert observations(settings) == {(name, at): Decimal(1) for name in IDS[1:]}


def test_of_an_import_remains_what_its_observations_are(store: Store, settings: Settings, tmp_path: Path) -> None:
    """Its row in the ledger covers what is left, and goes with the last."""
    rows = [(IDS[0], second(2025, 1, day), "1") for day in range(1, 11)]
    run(store, prices_file(tmp_path, rows))
    spans = "SELECT toDayOfMonth(first_observed_at), toDayOfMonth(at), rows FROM snapshot WHERE kind = 'import'"
    for days, left in (((1, 9, 10), [(2, 8, 7)]), (range(2, 9), [])):
        take_out(store, [(IDS[0], second(2025, 1, day)) for day in days])
        assert query(settings, spans) == left
    assert read_heads(store) == {}
    assert query(settings, "SELECT count() FROM rollup") == [(0,)]


def test_without_its_newest_snapshots_a_dataset_goes_on_from_those_before(store: Store, settings: Settings) -> None:
    """To none, and back."""
    source, first = SimulatedSource("1"), int(NOW.timestamp())
    for hour in range(2):
        assert take_snapshot(JOBS["prices"], source, store, NOW + hour * HOUR)
    before = observations(settings)
    for removed, reach in ((first + 3600, [(first, first)]), (first, [])):
        runs = parse_ledger_rows(store.query("read_staged_runs", table="snapshot"))
        keys = [key for key in observations(settings) if key[1] > removed - 3600]
        take_out(store, keys, [each for each in runs if each.at == removed])
        assert [(head.at, head.last_observed_at) for head in read_heads(store).values()] == reach
    assert query(settings, "SELECT count() FROM snapshot FINAL") == [(0,)]
    for hour in range(2):
        assert take_snapshot(JOBS["prices"], source, store, NOW + hour * HOUR)
    assert observations(settings) == before
    assert stored_rollups(settings) == oracle.rollups(before)
    assert read_heads(store)["prices"].at == first + 3600
