"""The file of a backup: nothing half-written stays, and nothing damaged is taken for whole."""

import os
import zipfile
from pathlib import Path

import pytest

from analytics_service.backups.archive import (
    FORMAT,
    ArchiveReader,
    ArchiveWriter,
    Manifest,
    TableContent,
    require_writable,
    writing,
)
from analytics_service.errors import BackupFailed, BackupRefused
from tests.doubles import Silent
from tests.files import no_file_larger_than

ROWS = bytes(range(256)) * 40


def fill(archive: ArchiveWriter) -> None:
    size, digest = archive.add("price", iter([ROWS, ROWS]), Silent())
    archive.finish(Manifest(FORMAT, 0, "", "", [], [], {}, {"price": TableContent(7, size, digest)}))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with writing(tmp_path / "backup") as archive:
        fill(archive)
    return tmp_path / "backup"


def test_what_was_written_is_read_again(path: Path) -> None:
    reader = ArchiveReader(path)
    reader.check(Silent())
    assert reader.manifest.tables["price"].bytes == 2 * len(ROWS)
    assert b"".join(reader.chunks("price")) == ROWS + ROWS
    assert [each.name for each in path.parent.iterdir()] == ["backup"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_that_was_cut_short_is_refused(path: Path) -> None:
    whole = path.read_bytes()
    for length in (0, 10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(BackupRefused, match="damaged"):
            ArchiveReader(path)


def test_a_changed_byte_is_found(path: Path) -> None:
    """Bytes of a table's rows: those of names and sizes are found, too, or change nothing."""
    whole = path.read_bytes()
    start = whole.index(b"price.native") + len("price.native") + 40
    for place in range(start, start + 100, 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(BackupRefused, match="damaged"):
            ArchiveReader(path).check(Silent())


def test_any_other_file_is_refused(tmp_path: Path) -> None:
    for content in (b"", b"hello", b"PK\x05\x06" + bytes(18)):
        (tmp_path / "other").write_bytes(content)
        with pytest.raises(BackupRefused, match="no backup"):
            ArchiveReader(tmp_path / "other")
    with pytest.raises(BackupRefused, match="No such file"):
        ArchiveReader(tmp_path / "nothing")
    # Nobody writes to it, so opening it would wait for ever.
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BackupRefused, match="not a file"):
        ArchiveReader(tmp_path / "pipe")


def test_a_manifest_without_end_is_refused(tmp_path: Path) -> None:
    """It would be a gigabyte in memory, and is a megabyte in the file."""
    with zipfile.ZipFile(tmp_path / "bomb", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("manifest.json", b'{"format":' + b" " * 2**20 + b"2}")
    with pytest.raises(BackupRefused, match="is no backup of this service"):
        ArchiveReader(tmp_path / "bomb")


def test_a_file_that_seems_to_be_encrypted_is_refused(path: Path) -> None:
    """Bit 0 of an entry's flags says so; they are 8 bytes after the signature in the directory at the end."""
    content = bytearray(path.read_bytes())
    directory = content.find(b"PK\x01\x02")
    while directory >= 0:
        content[directory + 8] |= 1
        directory = content.find(b"PK\x01\x02", directory + 1)
    path.write_bytes(content)
    with pytest.raises(BackupRefused, match="damaged"):
        ArchiveReader(path)


def test_a_disk_that_is_full_is_one_clear_line_and_leaves_no_file(path: Path) -> None:
    """Nor does it touch the backup that has the name already."""
    before = path.read_bytes()
    with (
        pytest.raises(BackupFailed, match=r"cannot be written \(File too large\)"),
        no_file_larger_than(50),
        writing(path) as archive,
    ):
        fill(archive)
    assert path.read_bytes() == before
    assert len(list(path.parent.iterdir())) == 1


def test_only_a_file_is_overwritten_and_only_if_asked(path: Path) -> None:
    """Not a pipe or a device: a file would take its place."""
    pipe = path.with_name("pipe")
    os.mkfifo(pipe)
    with pytest.raises(BackupRefused, match="--force"):
        require_writable(path, overwrite=False)
    with pytest.raises(BackupRefused, match="not a file"):
        require_writable(pipe, overwrite=True)
    require_writable(path, overwrite=True)
    require_writable(path.with_name("new"), overwrite=False)


def test_a_backup_that_fails_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), writing(tmp_path / "backup") as archive:
        archive.add("price", iter([ROWS]), Silent())
        raise ZeroDivisionError
    assert not list(tmp_path.iterdir())


def test_of_two_backups_at_the_same_time_the_one_that_ends_last_has_the_name(tmp_path: Path) -> None:
    """Neither writes into the other's file."""
    path = tmp_path / "backup"
    with writing(path) as last:
        with writing(path) as first:
            fill(first)
        ArchiveReader(path).check(Silent())
        ended_first = path.read_bytes()
        last.add("rate", iter([ROWS] * 3), Silent())
        assert path.read_bytes() == ended_first
        fill(last)
    ArchiveReader(path).check(Silent())
    assert b"".join(ArchiveReader(path).chunks("rate")) == ROWS * 3
    assert [each.name for each in tmp_path.iterdir()] == ["backup"]
