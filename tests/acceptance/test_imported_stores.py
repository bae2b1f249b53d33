"""Imported history and simulated data as operators meet them: each in a store of its own."""

import signal
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.embedded.clickhouse import attach, clickhouse
from analytics_service.store.ledger import read_ledger
from tests.acceptance.conftest import Service, stop
from tests.clickhouse import by_url, client, contents
from tests.processes import PATIENCE, children, command_line, until


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, ...]:
    """The arguments that import two prices."""
    prices, assets = tmp_path / "prices.csv", tmp_path / "assets.csv"
    prices.write_text("asset,time,value\nAAA,1700000000,1.5\nAAA,1700003600,2\n")
    assets.write_text("symbol,address,decimals\nAAA,0xa,6\n")
    return ("import", "price", str(prices), "--assets", str(assets))


def test_an_import_that_is_stopped_says_what_was_written(own: Service, files: tuple[str, ...]) -> None:
    long = Path(files[2])
    long.write_text("asset,time,value\n" + "".join(f"AAA,{at},1\n" for at in range(10**9, 10**9 + 2 * 10**5)))
    process = own.command(*files)
    assert process.stdout is not None
    assert any("Reading" in line for line in process.stdout)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert "The import was stopped. Either nothing was written, or" in output
    assert "Traceback" not in output


def rows(data_dir: Path) -> dict[str, object]:
    """The rows of a store whose ClickHouse runs, without the tables that tell of the store itself."""
    own = ("rewrite", "schema_migration", "snapshot_head", "write_lock")
    with client(by_url(Settings(data_dir=data_dir))) as one:
        return {name: found for name, found in contents(one).items() if name not in own}


def test_an_imported_store_is_served_backed_up_and_restored_into_another_folder(
    own: Service, files: tuple[str, ...], tmp_path: Path
) -> None:
    """No source is named, neither for the import nor for `up`. A correction is soon shown, and one whose writer was
    killed is completed within a minute."""
    own.source = None
    other = tmp_path / "other"
    code, output = own.done_here(*files, "--data-dir", str(other))
    assert code == 0, output
    assert "Read 2 rows: 2 values, 0 rejected, 0 without a value." in output
    assert f"Written into the data folder {other}." in output
    assert not own.data_dir.exists()
    own.data_dir = other

    process = own.up()
    printed = own.printed()
    assert "imported history only and has no source, so no snapshots are taken" in printed
    assert not any("jobs run" in command_line(pid) for pid in children(process.pid))
    assert own.get("/readyz")[0] == 200
    assert own.get("/api/v1/status/health")[1]["data"]["simulated"] is False
    status, prices = own.get("/api/v1/assets/prices")
    assert (status, [asset["price"]["price"] for asset in prices["data"]]) == (200, ["2"])
    Path(files[2]).write_text("asset,time,value\nAAA,1700003600,3\n")
    own.bring(*files[1:])
    until(lambda: own.get("/api/v1/assets/prices")[1]["data"][0]["price"]["price"] == "3")

    file, before = tmp_path / "backup", rows(other)
    code, output = own.done_here("backup", str(file))
    assert code == 0, output
    assert f"Wrote {file} (" in output
    code, output = own.done_here("restore", str(file), "--replace")
    assert (code, "is in use by process" in output) == (1, True)
    settings = attach(replace(Settings(), data_dir=other))
    assert settings is not None
    with closing(Store(settings)) as store:
        store.execute("INSERT INTO rewrite (dataset, version, operation) VALUES ('prices', 7, 'import')")
        assert read_ledger(store).open == {"prices": [7]}
        own.data_dir = tmp_path / "restored"
        code, output = own.done_here("restore", str(file))
        assert code == 0, output
        assert f"into the data folder {own.data_dir}." in output
        with clickhouse(Settings(data_dir=own.data_dir), "pytest"):
            assert rows(own.data_dir) == before
        # It took a part of the time that passes until the service looks for such a rewrite.
        until(lambda: not read_ledger(store).open, every=0.5)
    assert stop(process) == 0
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".part"] == []
