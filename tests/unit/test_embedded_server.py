"""The embedded ClickHouse as a program: its choice of ports, and how it explains why it ended."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from analytics_service.embedded.child import UNUSABLE
from analytics_service.embedded.folder import DataFolder, Holder
from analytics_service.embedded.server import EmbeddedServer


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    """A data folder that no server runs in."""
    folder = DataFolder(tmp_path / "data")
    folder.create()
    return folder


@pytest.fixture
def server(folder: DataFolder) -> Iterator[EmbeddedServer]:
    """A server that is not started."""
    lock = folder.lock("pytest")
    assert lock is not None
    yield EmbeddedServer(folder, lock, "analytics")
    os.close(lock)


def printed(folder: DataFolder, *lines: str) -> None:
    """Pretend that the server's last start has printed these lines."""
    (folder.server / "start.log").write_text("".join(f"{line}\n" for line in lines), "utf-8")


def configured_port(folder: DataFolder) -> int:
    """The port for HTTP in the server's configuration file."""
    found = re.search("<http_port>(.*)</http_port>", (folder.server / "config.xml").read_text("utf-8"))
    assert found
    return int(found[1])


def test_the_holder_of_a_folder_may_be_of_another_version(folder: DataFolder) -> None:
    """Which says more of itself, or less."""
    for said in ({"pid": 7, "command": "up", "bind": "b", "began": 1}, {"pid": 7, "command": "up"}):
        (folder.root / "lock").write_text(json.dumps(said))
        assert folder.holder() == Holder(7, "up", str(said.get("bind", "")))


def test_a_server_that_does_not_run_is_not_ready(server: EmbeddedServer) -> None:
    assert not server.is_ready()


def test_other_ports_are_chosen_when_one_was_taken(server: EmbeddedServer, folder: DataFolder) -> None:
    printed(folder, "Listen [127.0.0.1]:20001 failed: Address already in use")
    first = configured_port(folder)
    assert server.adapt()
    assert configured_port(folder) != first


def test_ports_are_kept_when_a_start_fails_for_another_reason(server: EmbeddedServer, folder: DataFolder) -> None:
    printed(folder, "Cannot open users.xml")
    first = configured_port(folder)
    assert not server.adapt()
    assert configured_port(folder) == first


def test_the_last_line_that_says_more_than_every_start_is_part_of_the_reason(
    server: EmbeddedServer, folder: DataFolder
) -> None:
    printed(folder, "Cannot open users.xml", "Logging information to server.log", "Initializing subsystem x")
    assert server.explain(1) == (
        "The embedded ClickHouse ended with exit code 1. It printed 'Cannot open users.xml'. "
        f"Its logs are in {folder.server}."
    )


def test_a_server_that_printed_nothing_is_explained_by_its_signal(server: EmbeddedServer, folder: DataFolder) -> None:
    printed(folder)
    assert server.explain(-9) == (f"The embedded ClickHouse was killed by signal 9. Its logs are in {folder.server}.")


def test_an_unusable_installation_is_explained_by_what_it_printed(server: EmbeddedServer, folder: DataFolder) -> None:
    printed(folder, "the package chdb-core is not installed.")
    assert UNUSABLE in server.hopeless
    assert server.explain(UNUSABLE) == (
        "The embedded ClickHouse cannot be started: the package chdb-core is not installed."
    )
