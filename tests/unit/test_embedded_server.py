"""The embedded ClickHouse as a program: its choice of ports, and how it explains why it ended."""

import json
import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from analytics_service.config.settings import Settings
from analytics_service.embedded.child import UNUSABLE
from analytics_service.embedded.configuration import configured_port
from analytics_service.embedded.folder import DataFolder, FolderHolder
from analytics_service.embedded.server import EmbeddedServer, read_lost_writes
from analytics_service.errors import ProcessError, SettingError, StoreUnavailable
from tests.processes import free_port


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    """A data folder that no server runs in."""
    folder = DataFolder(tmp_path / "data")
    folder.create()
    return folder


@pytest.fixture
def server(folder: DataFolder) -> Iterator[EmbeddedServer]:
    lock = folder.lock("pytest")
    assert lock is not None
    yield EmbeddedServer(folder, lock, Settings())
    os.close(lock)


def printed(folder: DataFolder, *lines: str) -> None:
    """Pretend that the server's last start has printed these lines."""
    (folder.server / "start.log").write_text("".join(f"{line}\n" for line in lines), "utf-8")


def test_the_holder_of_a_folder_may_be_of_another_version(folder: DataFolder) -> None:
    """Which says more of itself, or less."""
    for said in ({"pid": 7, "command": "up", "bind": "b", "began": 1}, {"pid": 7, "command": "up"}):
        (folder.root / "lock").write_text(json.dumps(said))
        assert folder.holder() == FolderHolder(7, "up", str(said.get("bind", "")))


def test_a_server_has_the_ports_of_the_settings_or_says_which_is_taken(folder: DataFolder) -> None:
    lock, port = folder.lock("pytest"), free_port()
    assert lock is not None
    own = Settings(sql_port=port)
    try:
        server = EmbeddedServer(folder, lock, own)
        assert configured_port(folder.server) == port
        printed(folder, "Listen [127.0.0.1] failed: Address already in use")
        taken = rf"ANALYTICS_SQL_PORT={port} is not usable.* port {port + 1} of 127.0.0.1.* name another port"
        with socket.create_server(("127.0.0.1", port + 1)):
            with pytest.raises(SettingError, match=taken):
                EmbeddedServer(folder, lock, own)
            with pytest.raises(ProcessError, match=taken):
                server.adapt()
        assert server.adapt()
    finally:
        os.close(lock)


def test_without_one_a_server_has_the_ports_that_it_had_last(server: EmbeddedServer, folder: DataFolder) -> None:
    """A connection that waits for its last packets is no reason to change them."""
    last = configured_port(folder.server)
    assert last
    with (
        socket.create_server(("127.0.0.1", last)) as listening,
        socket.create_connection(("127.0.0.1", last)) as client,
    ):
        accepted, _ = listening.accept()
        # Whoever closes first waits.
        accepted.close()
        assert client.recv(1) == b""
    lock = os.open(folder.root / "lock", os.O_RDONLY)
    try:
        EmbeddedServer(folder, lock, Settings())
    finally:
        os.close(lock)
    assert configured_port(folder.server) == last


def test_another_user_who_has_the_port_is_not_sent_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        accepted = pool.submit(listener.accept)
        with pytest.raises(StoreUnavailable, match="A process of another user listens"):
            read_lost_writes(listener.getsockname()[1], "secret", 5)
        connection, _ = accepted.result()
        with connection:
            assert connection.recv(1) == b""


@pytest.mark.parametrize(
    ("lines", "code", "reason"),
    [
        # The last line that says more than every start.
        (
            ["Cannot open users.xml", "Logging information to server.log", "Initializing subsystem x"],
            1,
            "ended with exit code 1. It printed 'Cannot open users.xml'.",
        ),
        ([], -11, "was killed by signal 11."),
        ([], -9, "was killed by signal 9, possibly because memory ran out."),
        (["chdb-core is not installed."], UNUSABLE, "cannot be started: chdb-core is not installed."),
    ],
)
def test_an_end_is_explained_by_what_was_printed_and_by_its_code(
    server: EmbeddedServer, folder: DataFolder, lines: list[str], code: int, reason: str
) -> None:
    printed(folder, *lines)
    logs = "" if code == UNUSABLE else f" Its logs are in {folder.server}."
    assert server.explain(code) == f"The embedded ClickHouse {reason}{logs}"
