"""Backups of the real server: what a restored one has, what is refused, and what a restore that was killed leaves."""

import io
import re
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from decimal import Decimal
from itertools import count
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from analytics_service.admin import backup
from analytics_service.admin.backup import DATABASE, FIRST, SECOND, back_up
from analytics_service.admin.restore import RESTORING, drop_database, restore
from analytics_service.cli.main import cli
from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.embedded.folder import DataFolder
from analytics_service.errors import OperationFailed, UserError
from analytics_service.store.ledger import new_version, read_heads, record_rewrite
from analytics_service.store.migrations import migrate
from analytics_service.store.rewrite import correction
from analytics_service.store.write_lock import ALL
from jobs.registry import JOBS
from jobs.runner import take_snapshot
from tests.clickhouse import client
from tests.doubles import Silent
from tests.files import no_file_larger_than
from tests.integration.databases import database
from tests.integration.lending import Lending
from tests.integration.pages import commit, write
from tests.integration.routes import KINDS, NOON, at, client_of, get
from tests.processes import until

SOURCE = Lending(NOON - 600)
ONE = [("token;a", 100, Decimal(1))]
TWO = [("token;a", 100, Decimal(2)), ("token;b", 50, Decimal("0.000000000000000001"))]


@pytest.fixture
def folder(server: Settings) -> Path:
    """Where backups are written before they are packed."""
    return DataFolder(server.data_dir).unfinished


@pytest.fixture(scope="module")
def of_two(server: Settings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of a store with two prices."""
    with database(replace(server, clickhouse_database="test_backup_of_two")) as store:
        commit(store, {"token;a": [(100, Decimal(2))], "token;b": [(50, Decimal("0.000000000000000001"))]})
        path = tmp_path_factory.mktemp("two") / "two.backup"
        back_up(store, path, DataFolder(server.data_dir).unfinished, Silent())
        return path


@pytest.fixture
def old(store: Store) -> Store:
    """A store with one price, which is restored into."""
    commit(store, {"token;a": [(100, Decimal(1))]})
    return store


def prices(store: Store) -> list[tuple[str, int, Decimal]]:
    """The prices of a store, by asset and time, as researchers see them."""
    with client(store._settings) as own:
        query = "SELECT asset_id, toUnixTimestamp(observed_at), value_exact FROM price ORDER BY ALL"
        return [tuple(row) for row in own.query(query).result_rows]


def databases(store: Store) -> set[str]:
    """The databases of a store, and beside it."""
    with client(replace(store._settings, clickhouse_database="default")) as own:
        rows = own.query("SELECT name FROM system.databases").result_rows
    return {name for (name,) in rows if name.startswith(store.database)}


def answers(store: Store, now: int) -> dict[str, tuple[int, bytes]]:
    """The status and the body of each kind of answer that depends on what is stored."""
    fresh = client_of(store._settings, store, now)
    paths = [path for kind, path in KINDS.items() if kind not in ("probe", "document", "documentation")]
    return {path: (answer.status_code, answer.content) for path in paths for answer in [get(fresh, path)]}


@contextmanager
def snapshots_taken(store: Store) -> Iterator[list[int]]:
    """Snapshots of prices, one after the other for as long as the block lasts: their instants (unix seconds)."""
    taken: list[int] = []
    ended = threading.Event()

    def take() -> None:
        for second in count(NOON + 60, 60):
            if ended.is_set():
                return
            take_snapshot(JOBS["prices"], SOURCE, store, at(second))
            taken.append(second)
            ended.wait(0.3)

    thread = threading.Thread(target=take)
    thread.start()
    try:
        yield taken
    finally:
        ended.set()
        thread.join()


def test_a_backup_under_load_answers_the_same_elsewhere(store: Store, folder: Path, tmp_path: Path) -> None:
    """A restored store goes on with the snapshot after its newest."""
    path = tmp_path / "lending.backup"
    for job in JOBS.values():
        take_snapshot(job, SOURCE, store, at(NOON))
    with snapshots_taken(store) as taken:
        until(lambda: len(taken) > 1)
        back_up(store, path, folder, Silent())
        before = len(taken)
        until(lambda: len(taken) > before + 1)
    assert path.stat().st_mode & 0o777 == 0o600
    with closing(store.sibling(f"{store.database}_elsewhere")) as other:
        restore(other, path, folder, Silent(), replace=False)
        assert NOON + 60 < read_heads(other)["prices"].at < taken[-1]
        for second in taken:
            take_snapshot(JOBS["prices"], SOURCE, other, at(second))
        expected = answers(store, taken[-1] + 30)
        assert {status for status, _ in expected.values()} == {200}
        assert answers(other, taken[-1] + 30) == expected
        assert databases(other) == {other.database}
        drop_database(store, other.database)
    assert not folder.exists()


def test_a_store_with_data_is_replaced_as_a_whole_and_only_if_asked(old: Store, of_two: Path, folder: Path) -> None:
    with pytest.raises(UserError, match=r"The store has data\. With --replace"):
        restore(old, of_two, folder, Silent(), replace=False)
    assert prices(old) == ONE
    # A restore that was killed left these.
    old.command(f"CREATE DATABASE {old.database}{RESTORING}", in_database=False)
    old.command(f"CREATE TABLE {old.database}{RESTORING}.snapshot (a Int8) ENGINE = Memory", in_database=False)
    folder.mkdir(parents=True)
    restore(old, of_two, folder, Silent(), replace=True)
    assert prices(old) == TWO
    assert databases(old) == {old.database}
    # The view feeds the heads of this database, once.
    commit(old, {"token;a": [(260, Decimal(4))]})
    head = read_heads(old)["prices"]
    assert (head.at, head.runs) == (260, 2)


class Meanwhile(Silent):
    """Does something once while a backup is copied."""

    def __init__(self, act: Callable[[], object]) -> None:
        self._acts = [act]

    def advance(self, count: int) -> None:
        if self._acts:
            self._acts.pop()()


def test_a_backup_begins_again_when_history_is_rewritten_meanwhile(
    store: Store, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a few times. Rows of a commit that has not ended are not shown."""
    commit(store, {"token;a": [(100, Decimal(1))]})

    def rewrite() -> None:
        commit(store, {"token;a": [(700, Decimal(1))]})
        record_rewrite(store, ["prices"], new_version(store), finished=1)
        write(store, {"token;a": [(760, Decimal(7))]}, new_version(store))

    back_up(store, tmp_path / "backup", folder, Meanwhile(rewrite))
    with closing(store.sibling(f"{store.database}_again")) as other:
        restore(other, tmp_path / "backup", folder, Silent(), replace=False)
        head = read_heads(other)["prices"]
        assert (head.at, head.last_observed_at) == (700, 700)
        drop_database(store, other.database)
    monkeypatch.setattr(backup, "_ATTEMPTS", 1)
    with pytest.raises(OperationFailed, match="rewritten during every attempt"):
        back_up(store, tmp_path / "other", folder, Meanwhile(rewrite))
    assert [path.name for path in tmp_path.iterdir()] == ["backup"]


class BetweenParts(Silent):
    """Does something before the second part of a backup is copied."""

    def __init__(self, act: Callable[[], object]) -> None:
        self._acts = [lambda: None, act, lambda: None]

    def stage(self, label: str, total: int) -> None:
        self._acts.pop(0)()


def test_a_backup_has_no_commit_of_meanwhile_and_does_not_lock_what_it_is_restored_into(
    store: Store, folder: Path, tmp_path: Path
) -> None:
    """The ledger is copied first, so that the tables have all that it lists."""
    commit(store, {"token;a": [(100, Decimal(1))]})
    later = BetweenParts(lambda: commit(store, {"token;a": [(700, Decimal(2))]}))
    back_up(store, tmp_path / "backup", folder, later)
    with closing(store.sibling(f"{store.database}_restored")) as other:
        restore(other, tmp_path / "backup", folder, Silent(), replace=False)
        head = read_heads(other)["prices"]
        assert (head.at, head.last_observed_at) == (100, 100)
        with correction(other, ALL, "import"):
            drop_database(store, other.database)


def test_a_backup_is_a_new_file_or_none(store: Store, folder: Path, tmp_path: Path) -> None:
    commit(store, {"token;a": [(100, Decimal(1))]})
    (tmp_path / "mine").write_text("mine", "utf-8")
    with pytest.raises(UserError, match=r"mine exists\. Name another file"):
        back_up(store, tmp_path / "mine", folder, Silent())
    # Larger than what ClickHouse writes, which has its own limits.
    with pytest.raises(OperationFailed, match=r"cannot be written \(File too large\)"), no_file_larger_than(20_000):
        back_up(store, tmp_path / "full", folder, Silent())
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert not folder.exists()


def rewritten(path: Path, other: Path, change: Callable[[str, bytes], bytes]) -> Path:
    """The same backup with other content of its members."""
    with tarfile.open(path) as before, tarfile.open(other, "w") as after:
        for member in before:
            file = before.extractfile(member)
            assert file is not None
            content = change(member.name, file.read())
            member.size = len(content)
            after.addfile(member, io.BytesIO(content))
    return other


def flipped(member: str, content: bytes) -> bytes:
    """A byte of the prices is another one."""
    if re.search(r"/observation/.*/data\.bin$", member):
        return content[:-1] + bytes([content[-1] ^ 1])
    return content


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (flipped, "the files of table observation differ from what was written"),
        (lambda name, content: b"" if name == "tables/.backup" else content, "ClickHouse reports an error: "),
    ],
    ids=["byte", "list"],
)
def test_what_cannot_be_restored_is_refused_and_leaves_the_store_as_it_was(
    old: Store, of_two: Path, folder: Path, tmp_path: Path, change: Callable[[str, bytes], bytes], message: str
) -> None:
    path = rewritten(of_two, tmp_path / "backup", change)
    with pytest.raises((UserError, OperationFailed), match=message):
        restore(old, path, folder, Silent(), replace=True)
    assert prices(old) == ONE
    assert databases(old) == {old.database}
    assert not folder.exists()


def test_a_backup_of_a_newer_version_is_refused(store: Store, server: Settings, folder: Path, tmp_path: Path) -> None:
    with database(replace(server, clickhouse_database="test_backup_of_later")) as later:
        row = {"number": 999, "name": "0999_later.sql", "checksum": "0" * 64}
        later.insert("schema_migration", pl.DataFrame([row], schema_overrides={"number": pl.UInt16}))
        back_up(later, tmp_path / "backup", folder, Silent())
    with pytest.raises(UserError, match=r"another version:.*0999_later\.sql.*newer version"):
        restore(store, tmp_path / "backup", folder, Silent(), replace=True)
    assert databases(store) == {store.database}


def test_a_file_that_is_cut_off_or_something_else_is_refused(
    old: Store, of_two: Path, folder: Path, tmp_path: Path
) -> None:
    whole = of_two.read_bytes()
    with tarfile.open(of_two) as archive:
        offsets = [member.offset for member in archive]
    for number, length in enumerate([0, offsets[1], offsets[-1] + 512, len(whole) // 2]):
        cut = tmp_path / f"{number}"
        cut.write_bytes(whole[:length])
        with pytest.raises(UserError, match="not a complete backup of this service"):
            restore(old, cut, folder, Silent(), replace=True)
    with pytest.raises(UserError, match="is not a file"):
        restore(old, tmp_path, folder, Silent(), replace=True)
    assert prices(old) == ONE


def test_members_that_would_leave_the_folder_are_refused(
    old: Store, of_two: Path, folder: Path, tmp_path: Path
) -> None:
    path = tmp_path / "backup"
    for name in ("../outside", "tables/link"):
        with tarfile.open(of_two) as before, tarfile.open(path, "w") as after:
            foreign = tarfile.TarInfo(name)
            if name == "tables/link":
                foreign.type, foreign.linkname = tarfile.SYMTYPE, "/etc"
            after.addfile(foreign)
            for member in before:
                after.addfile(member, before.extractfile(member))
        with pytest.raises(UserError, match="not a complete backup of this service"):
            restore(old, path, folder, Silent(), replace=True)
    assert prices(old) == ONE
    assert not (folder.parent / "outside").exists()


def test_a_server_is_backed_up_and_restored_by_the_statements_that_backup_shows(store: Store, tmp_path: Path) -> None:
    commit(store, {"token;a": [(100, Decimal(1))]})
    environ = store._settings.to_environment({})
    shown = CliRunner().invoke(cli, ["backup", str(tmp_path / "backup")], env=environ)
    assert (shown.exit_code, "server writes and restores its backups itself" in shown.output) == (2, True)
    on_disk = re.sub(r"S3\('[^']+/NAME/(\w+)'[^)]*\)", rf"Disk('backups', '{store.database}/\1')", shown.output)
    statements = re.findall(r"^    (.+);$", on_disk, re.MULTILINE)
    assert [statement.split()[0] for statement in statements] == ["BACKUP", "BACKUP", "RESTORE", "RESTORE"]
    for statement in statements[:2]:
        store.command(statement)
    drop_database(store, store.database)
    for statement in statements[2:]:
        store.command(statement, in_database=False)
    migrate(store)
    assert prices(store) == ONE
    commit(store, {"token;a": [(160, Decimal(4))]})
    assert read_heads(store)["prices"].runs == 2


def test_a_backup_of_a_folder_can_be_unpacked_for_a_server(server: Settings, of_two: Path, folder: Path) -> None:
    unpacked = folder.with_name("moved")
    with tarfile.open(of_two) as archive:
        archive.extractall(unpacked, filter="data")
    with closing(Store(replace(server, clickhouse_database=DATABASE))) as store:
        store.command(f"CREATE DATABASE {DATABASE}", in_database=False)
        for part in (FIRST, SECOND):
            store.command(f"RESTORE ALL FROM Disk('backups', 'moved/{part}')", in_database=False)
        migrate(store, is_alone=True)
        assert prices(store) == TWO
        assert read_heads(store)["prices"].runs == 1
        drop_database(store, store.database)
