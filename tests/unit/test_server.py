"""What a data folder tells of its server: files that are missing, empty or malformed included."""

import json
from collections.abc import Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import NoReturn

import pytest

from analytics_service.clickhouse.running import (
    PASSWORD,
    Running,
    Server,
    address_of,
    read_password,
    read_running,
    require_running,
    server_of,
)
from analytics_service.config.settings import Settings
from analytics_service.embedded.clickhouse import require_attachable
from analytics_service.embedded.folder import DataFolder
from analytics_service.errors import ProcessError, StoreUnavailable
from analytics_service.server.serve import _Gunicorn, serve
from analytics_service.supervisor import Supervisor

ANNOUNCED = Running(pid=1, server=2, port=20001, user="analytics")


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    folder = DataFolder(tmp_path / "data")
    folder.create()
    folder.announce(ANNOUNCED)
    return folder


def test_an_announced_server_is_found_with_its_password(folder: DataFolder) -> None:
    password = folder.password(PASSWORD)
    settings = Settings(data_dir=folder.root)
    assert server_of(settings) == Server("http://127.0.0.1:20001", "analytics", password, folder.root)
    assert address_of(settings) == "http://127.0.0.1:20001"


def test_a_server_named_by_url_is_reached_with_the_credentials_beside_it(folder: DataFolder) -> None:
    named = Settings(data_dir=folder.root, clickhouse_url="http://host:8123", clickhouse_user="me")
    assert server_of(named) == Server("http://host:8123", "me", "")
    assert address_of(named) == "http://host:8123"


@pytest.mark.parametrize("content", ["", "[]", "null", json.dumps({"pid": 1, "url": "http://127.0.0.1:1"})])
def test_a_folder_in_which_nothing_intelligible_is_announced_has_no_server(folder: DataFolder, content: str) -> None:
    (folder.root / "running.json").write_text(content)
    assert read_running(folder.root) is None
    with pytest.raises(StoreUnavailable, match="`analytics-service up`"):
        require_running(folder.root)
    assert address_of(Settings(data_dir=folder.root)) == str(folder.root)


def test_a_password_is_made_once(folder: DataFolder) -> None:
    password = folder.password(PASSWORD)
    assert folder.password(PASSWORD) == read_password(folder.root / PASSWORD) == password
    # 43 characters of base64 are 256 bits.
    assert len(password) == 43


@pytest.mark.parametrize("content", [b"", b"short", b"\xff" * 43, b"a b" * 15])
def test_a_password_file_without_a_password_is_refused_in_one_line(folder: DataFolder, content: bytes) -> None:
    path = folder.root / "password"
    path.write_bytes(content)
    with pytest.raises(ProcessError) as refused:
        folder.password(PASSWORD)
    assert f"The password file {path} holds no password." in str(refused.value)
    assert "delete the file" in str(refused.value)
    assert "\n" not in str(refused.value)
    assert path.read_bytes() == content


def test_a_password_file_that_cannot_be_read_is_refused_in_one_line(folder: DataFolder) -> None:
    path = folder.root / "password"
    path.mkdir()
    with pytest.raises(ProcessError, match=r"^The password file \S+ cannot be read \([^\n]+\)\.$"):
        folder.password(PASSWORD)
    with pytest.raises(StoreUnavailable, match=r"^The password file \S+ cannot be read \([^\n]+\)\.$"):
        read_password(folder.root / PASSWORD)


@pytest.mark.parametrize("mode", [0o644, 0o660, 0o400])
def test_the_mode_of_a_password_file_is_corrected(
    folder: DataFolder, mode: int, caplog: pytest.LogCaptureFixture
) -> None:
    password, path = folder.password(PASSWORD), folder.root / "password"
    path.chmod(mode)
    assert folder.password(PASSWORD) == password
    assert path.stat().st_mode & 0o777 == 0o600
    assert caplog.messages == [f"Changed the mode of {path} from {mode:04o} to 0600, for its owner only."]


def test_gunicorn_starts_although_its_clickhouse_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = Settings(data_dir=tmp_path)
    with pytest.raises(ProcessError, match="No ClickHouse is running"):
        require_attachable(own)
    for name, value in _Gunicorn(own, [], {})._environ.items():
        monkeypatch.setenv(name, value)
    assert require_attachable(own) == own


def test_serve_leaves_the_schema_of_a_clickhouse_that_it_does_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not ask it for anything before gunicorn starts."""

    def start(supervisors: Sequence[Supervisor]) -> NoReturn:
        raise InterruptedError

    monkeypatch.setattr("analytics_service.server.serve.run_children", start)
    away = Settings(clickhouse_url="http://127.0.0.1:1", bind=f"unix:{tmp_path}/http", metrics_bind="none")
    with pytest.raises(InterruptedError):
        serve(away, "pytest", SimpleQueue())
