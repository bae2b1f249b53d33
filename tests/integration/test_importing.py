"""Imports of price files into ClickHouse: what they write, and what they report."""

import csv
import gzip
import os
import random
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from itertools import islice
from pathlib import Path

import pytest

from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.errors import UserError
from analytics_service.importing.history import load_history
from analytics_service.importing.time_parsing import TimeRules
from analytics_service.market.assets import Asset, AssetGroup
from analytics_service.market.kinds import PriceType
from analytics_service.store.datasets.assets import read_assets
from analytics_service.store.datasets.histories import PRICES
from analytics_service.store.ledger import read_heads
from tests import oracle
from tests.integration.imports import (
    CONTENTS,
    IDS,
    NOW,
    Observations,
    Progress,
    asked,
    assets_file,
    contents,
    counted,
    import_files,
    many,
    observations,
    outcome,
    prices_file,
    query,
    run,
)
from tests.integration.pages import commit
from tests.stored import write_assets


def test_history_may_begin_with_the_first_second_of_1970(store: Store, settings: Settings, tmp_path: Path) -> None:
    """And end there: the second series has no other observation."""
    rows = [(IDS[0], 0, "5"), (IDS[1], 0, "7"), (IDS[0], 1_600_000_100, "6")]
    run(store, prices_file(tmp_path, rows))
    rollups = query(settings, "SELECT asset_id, width, toString(close) FROM rollup FINAL WHERE start = 0 ORDER BY ALL")
    assert rollups == [(one, width, close) for one, _, close in rows[:2] for width in ("15min", "day", "month")]


def test_a_trial_counts_what_an_import_writes_and_writes_nothing(
    store: Store, settings: Settings, tmp_path: Path
) -> None:
    """Of six rows, two are bad, and the last one replaces the one before it."""
    assets_file(tmp_path)
    rows = [(IDS[0], 100, "4"), (IDS[0], 101, "5"), (IDS[2], 100, "-1"), ("x", 1, "1"), (IDS[1], 7, "1")]
    file = prices_file(tmp_path, [*rows, (IDS[1], 7, "2")], "more.csv")
    before, files = contents(settings), sorted(tmp_path.iterdir())
    request = asked(PRICES, file, assets=tmp_path / "assets.csv", skip_invalid=True)
    for present in (store, None):
        assert counted(load_history(present, request, NOW, Progress())) == (6, 3, 2, 0)
    with pytest.raises(UserError, match="line 4, column value: '-1' is not a plain decimal from 0"):
        load_history(store, replace(request, skip_invalid=False), NOW, Progress())
    assert (contents(settings), sorted(tmp_path.iterdir())) == (before, files)
    done = import_files(store, request, NOW, Progress())
    assert counted(done) == (6, 3, 2, 0)
    assert observations(settings) == {
        (IDS[0], 100): Decimal(4),
        (IDS[0], 101): Decimal(5),
        (IDS[1], 7): Decimal(2),
    }
    assert [text.partition(f"{file}, ")[2] for text in done.rejections] == [
        "line 4, column value: '-1' is not a plain decimal from 0 to 10^20; correct it, add --decimal, "
        "or see the recipes.",
        "line 5, column asset: 'x' is an unknown asset; add it with --new-assets, or describe it with --assets.",
    ]


def test_imports_have_a_row_each_in_the_ledger(store: Store, settings: Settings, tmp_path: Path) -> None:
    """Although they end alike, as with a file for each asset, or a folder: which of them brought what can still be
    told."""
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    one = prices_file(tmp_path / "a", [(IDS[0], 100, "1"), (IDS[0], 900, "1")], "one.csv")
    two = prices_file(tmp_path / "a", [(IDS[1], 200, "2"), (IDS[1], 900, "2")], "two.csv")
    three = prices_file(tmp_path / "b", [(IDS[2], 300, "3"), (IDS[2], 900, "3")], "one.csv")
    for files in ((one,), (three,), (one, two), (two, one)):
        run(store, *files)
    listed = (
        "SELECT dataset, toUnixTimestamp(at), kind, source, toUnixTimestamp(first_observed_at), "
        "toUnixTimestamp(last_observed_at), rows FROM snapshot FINAL ORDER BY version"
    )
    expected = [("one.csv", 100, 2), ("one.csv", 300, 2), ("one.csv, two.csv", 100, 4), ("two.csv, one.csv", 100, 4)]
    assert query(settings, listed) == [
        ("prices", 900, "import", source, first, 900, count) for source, first, count in expected
    ]
    newest = query(settings, "SELECT max(version) FROM observation")[0][0]
    assert read_heads(store)["prices"].version >= int(str(newest))


def test_assets_are_registered_once_and_never_redefined(store: Store, settings: Settings, tmp_path: Path) -> None:
    """Only those that have values."""
    mine = Asset(AssetGroup.TOKEN, "0xb", "Bee", "BEE", "bee", 6, 2)
    write_assets(store, [mine], 1)
    path = prices_file(tmp_path, [(name, 100, "1") for name in IDS[:2]])
    run(store, path)
    run(store, path)
    registered = read_assets(store)
    assert list(registered) == list(IDS[:2])
    assert registered[IDS[0]] == Asset(AssetGroup.TOKEN, "0xa", "AAA", "AAA", "aaa", 18, 6)
    assert registered[IDS[1]] == mine
    assert query(settings, "SELECT count() FROM asset_definition") == [(2,)]


def test_prices_of_an_asset_that_is_stored_in_two_cases_are_kept_apart(
    store: Store, settings: Settings, tmp_path: Path
) -> None:
    write_assets(store, [Asset(AssetGroup.TOKEN, key, key, key, key, 6, 2) for key in ("0xA", "0xa")], 1)
    rows = [("token;0xA", 100, "1"), ("token;0xa", 100, "2")]
    run(store, prices_file(tmp_path, rows))
    assert observations(settings) == {("token;0xA", 100): Decimal(1), ("token;0xa", 100): Decimal(2)}
    assert list(read_assets(store)) == ["token;0xA", "token;0xa"]


def test_an_import_replaces_what_was_written_while_the_clock_was_ahead(
    store: Store, settings: Settings, tmp_path: Path
) -> None:
    """Of two rows for one second the one with the greater version wins, and versions come from the clock."""
    ahead = int(datetime(2100, 1, 1, tzinfo=UTC).timestamp()) * 1000
    commit(store, {IDS[0]: [(100, Decimal(1))]}, version=ahead)
    run(store, prices_file(tmp_path, [(IDS[0], 100, "2"), (IDS[1], 100, "3")]))
    assert observations(settings) == {(IDS[0], 100): Decimal(2), (IDS[1], 100): Decimal(3)}
    head = read_heads(store)["prices"]
    assert head.version > ahead
    assert list(read_assets(store, head.version)) == list(IDS[:2])


def test_rollups_sum_up_the_prices_after_repeats_and_corrections(
    store: Store, settings: Settings, tmp_path: Path, draw: random.Random
) -> None:
    rows = many(500, 1, seed=2)
    corrections = [(asset, second, f"1{price}") for asset, second, price in rows[::7]]
    draw.shuffle(corrections)
    dense = [(IDS[0], 1_700_000_000 + second, str(second)) for second in range(2_500, 0, -1)]
    imports = [rows, [*corrections, *dense]]
    for batch in imports:
        run(store, prices_file(tmp_path, batch))
    expected = outcome(*imports)
    assert observations(settings) == expected
    assert set(query(settings, CONTENTS["rollups"])) == oracle.rollups(expected)
    before = contents(settings)
    run(store, tmp_path / "prices.csv")
    assert contents(settings) == before


@pytest.mark.skipif("ANALYTICS_TEST_DATA" not in os.environ, reason="ANALYTICS_TEST_DATA names no folder of real data")
@pytest.mark.parametrize("lines", [10_000, pytest.param(None, marks=pytest.mark.slow)])
def test_real_prices_are_stored_as_python_reads_them(
    store: Store, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: int | None
) -> None:
    """The first lines are written in several batches, as all of them are."""
    if lines:
        monkeypatch.setattr("analytics_service.importing.publication._BATCH_ROWS", lines // 4)
    folder, prices = Path(os.environ["ANALYTICS_TEST_DATA"]), tmp_path / "prices_hourly.csv.gz"
    with gzip.open(folder / prices.name) as whole, gzip.open(prices, "wb", compresslevel=1) as part:
        part.writelines(islice(whole, lines))
    assets = folder / "assets.csv"
    with assets.open(newline="") as lines:
        ids = {row["symbol"]: f"token;{row['address']}" for row in csv.DictReader(lines)}
    expected: Observations = {}
    read = 0
    with gzip.open(prices, "rt", newline="") as packed:
        for row in csv.DictReader(packed):
            read += 1
            key = (ids[row["symbol"]], int(row["timestamp"]) // 1000)
            expected[key] = PriceType.encode(Decimal(row["USD_price"]))
    columns = {"time": "timestamp", "asset_column": "symbol", "value": "USD_price"}
    request = replace(asked(PRICES, prices, assets=assets, **columns), times=TimeRules(unit="ms"))
    done = import_files(store, request, datetime.now(UTC), Progress())
    assert counted(done) == (read, len(expected), 0, 0)
    assert observations(settings) == expected
    assert set(read_assets(store)) == {asset_id for asset_id, _ in expected}


def test_an_import_finds_assets_in_any_case_and_adds_none(store: Store, settings: Settings, tmp_path: Path) -> None:
    """The store has 0xa; the assets file lists it as 0xA, and the file of prices writes both."""
    write_assets(store, [Asset(AssetGroup.TOKEN, "0xa", "AAA", "AAA", "aaa", 18, 6)], 1)
    listed = tmp_path / "listed.csv"
    listed.write_text("symbol,address,decimals\nAAA,0xA,18\n")
    prices = prices_file(tmp_path, [("token;0xA", 100, "1"), ("token;0xa", 101, "2"), ("token;0XA", 102, "3")])
    import_files(store, asked(PRICES, prices, assets=listed), NOW, Progress())
    assert {asset_id for asset_id, _ in observations(settings)} == {"token;0xa"}
    assert list(read_assets(store)) == ["token;0xa"]
