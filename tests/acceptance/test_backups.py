"""`backup` and `restore` as an operator uses them, and a `restore` that is killed."""

import random
import shutil
import time
from pathlib import Path

import pytest

from analytics_service.config.settings import Settings
from tests.acceptance.conftest import Service, stop
from tests.clickhouse import by_url, client, contents
from tests.processes import until

HISTORY = "/api/v1/assets/price-history?start=1700000000&end=1700003600&period=h"
# Tables that tell of the store, and not of what is in it.
_OWN = ("rewrite", "schema_migration", "snapshot_head", "write_lock")


def served(own: Service) -> object:
    """What `serve` answers for a store, and all of its rows."""
    serving = own.serve()
    until(lambda: own.get("/healthz")[0] == 200)
    answer = own.get(HISTORY)
    with client(by_url(Settings(data_dir=own.data_dir))) as one:
        rows = {name: found for name, found in contents(one).items() if name not in _OWN}
    assert stop(serving) == 0
    return answer, rows


def test_a_backup_of_a_running_service_is_restored_into_another_folder(
    imported: Service, own: Service, tmp_path: Path
) -> None:
    file = tmp_path / "backup"
    code, output = imported.done("backup", str(file))
    assert code == 0, output
    assert f"Wrote {file} (" in output
    code, output = imported.done("restore", str(file), "--replace")
    assert (code, "is in use by process" in output) == (1, True)
    own.source = None
    code, output = own.done("restore", str(file))
    assert code == 0, output
    assert f"into the data folder {own.data_dir}." in output
    answer, rows = served(own)
    assert answer == imported.get(HISTORY)
    with client(by_url(Settings(data_dir=imported.data_dir))) as one:
        assert rows == {name: found for name, found in contents(one).items() if name not in _OWN}
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".part"] == []


@pytest.mark.slow
def test_a_restore_that_is_killed_at_any_moment_leaves_the_old_store_or_the_new_one(
    own: Service, imported: Service, tmp_path: Path, draw: random.Random
) -> None:
    """Its server is killed with it. The next start has one of both, whole, and the next restore works."""
    own.source = None
    file, old = tmp_path / "backup", tmp_path / "old"
    prices, assets = tmp_path / "prices.csv", tmp_path / "assets.csv"
    prices.write_text("asset,time,value\nAAA,1700000000,1.5\n")
    assets.write_text("symbol,address,decimals\nAAA,0xa,6\n")
    assert own.done("import", "price", str(prices), "--assets", str(assets))[0] == 0
    assert imported.done("backup", str(file))[0] == 0
    before = served(own)
    shutil.copytree(own.data_dir, old, symlinks=True)
    begun = time.monotonic()
    assert own.done("restore", str(file), "--replace")[0] == 0
    seconds = time.monotonic() - begun
    after = served(own)
    assert before != after
    left = set[bool]()
    for _ in range(5):
        shutil.rmtree(own.data_dir)
        shutil.copytree(old, own.data_dir, symlinks=True)
        restoring = own.command("restore", str(file), "--replace")
        time.sleep(draw.uniform(0.3, 1) * seconds)
        restoring.kill()
        restoring.wait()
        now = served(own)
        assert now in (before, after)
        left.add(now == after)
        names = {path.name for path in (own.data_dir / "clickhouse" / "data" / "metadata").iterdir()}
        assert not [name for name in names if name.endswith(("_restoring.sql", "_replaced.sql", "_dropped.sql"))]
    assert False in left
    assert own.done("restore", str(file), "--replace")[0] == 0
    assert served(own) == after
