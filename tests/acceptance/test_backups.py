"""`backup` and `restore` as an operator uses them, and a `restore` that is killed."""

from pathlib import Path

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
