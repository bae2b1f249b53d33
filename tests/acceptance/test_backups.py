"""`backup` and `restore` as an operator uses them: from a folder to a server and back."""

from dataclasses import replace
from pathlib import Path

import pytest

from analytics_service.config.settings import Settings
from analytics_service.embedded.folder import DataFolder
from analytics_service.store.server import PASSWORD
from tests.acceptance.conftest import Service, stop
from tests.clickhouse import by_url, client, contents
from tests.processes import all_stopped, descendants, until

HISTORY = "/api/v1/assets/price-history?start=1700000000&end=1700003600&period=h"


def test_a_backup_of_a_running_service_is_restored_as_a_whole(imported: Service, own: Service, tmp_path: Path) -> None:
    """Here into another database of the same server."""
    code, output = imported.done("backup", str(tmp_path / "backup"))
    assert code == 0, output
    assert f"to {tmp_path / 'backup'} (" in output
    server = by_url(Settings(data_dir=imported.data_dir))
    own.source = None
    own.environ = {
        "ANALYTICS_CLICKHOUSE_URL": str(server.clickhouse_url),
        "ANALYTICS_CLICKHOUSE_USER": server.clickhouse_user,
        "ANALYTICS_CLICKHOUSE_PASSWORD": server.clickhouse_password,
        "ANALYTICS_CLICKHOUSE_DATABASE": "elsewhere",
    }
    code, output = own.done("restore", str(tmp_path / "backup"))
    assert code == 0, output
    assert f"into {server.clickhouse_url}, database elsewhere." in output
    with client(server) as one:
        before = contents(one)
    with client(replace(server, clickhouse_database="elsewhere")) as one:
        restored = contents(one)
        one.command("DROP DATABASE elsewhere SYNC")
    # These tell of the two stores, and not of what is in them.
    for table in ("rewrite", "schema_migration", "snapshot_head"):
        del before[table], restored[table]
    assert restored == before
    assert len(before["observation"]) == 28


@pytest.mark.slow
def test_data_moves_from_a_folder_to_a_server_and_back(own: Service, tmp_path: Path) -> None:
    """The server is the embedded one of another folder, reached by its URL as any server is."""
    own.source = None
    prices, assets, backup, moved = (tmp_path / name for name in ("prices.csv", "assets.csv", "backup", "moved"))
    prices.write_text("symbol,timestamp,USD_price\nAAA,1700000000,1.5\nAAA,1700003600,2\n")
    assets.write_text("symbol,address,decimals\nAAA,0xa,6\n")
    assert own.done("import", "prices", str(prices), "--assets", str(assets))[0] == 0

    serving = own.serve()
    until(lambda: own.get(HISTORY)[0] == 200)
    before, started = own.get(HISTORY), descendants(serving.pid)
    code, output = own.done("backup", str(backup))
    assert code == 0, output
    assert f"to {backup} (" in output
    code, output = own.done("backup", str(backup))
    assert (code, "--force" in output) == (2, True)
    code, output = own.done("restore", str(backup), "--replace")
    assert code == 1
    assert f"is in use by process {serving.pid}" in output
    assert own.get(HISTORY) == before

    # A server: another database of the one that runs.
    folder = DataFolder(own.data_dir)
    running = folder.running()
    assert running is not None
    own.environ = {
        "ANALYTICS_CLICKHOUSE_URL": running.url,
        "ANALYTICS_CLICKHOUSE_USER": running.user,
        "ANALYTICS_CLICKHOUSE_PASSWORD": folder.password(PASSWORD),
        "ANALYTICS_CLICKHOUSE_DATABASE": "elsewhere",
    }
    code, output = own.done("restore", str(backup))
    assert code == 0, output
    assert f"into {running.url}, database elsewhere." in output
    code, output = own.done("restore", str(backup))
    assert (code, "--replace" in output) == (2, True)
    code, output = own.done("backup", str(moved))
    assert code == 0, output
    own.environ = {}
    assert stop(serving) == 0
    assert all_stopped(started)

    own.data_dir = tmp_path / "other"
    code, output = own.done("restore", str(moved))
    assert code == 0, output
    serving = own.serve()
    until(lambda: own.get("/healthz")[0] == 200)
    assert own.get(HISTORY) == before
    assert stop(serving) == 0
    assert not list(tmp_path.glob("*.part"))
