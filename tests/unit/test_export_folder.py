"""The folder of an export: it lists whole files only, and nothing of others is overwritten."""

import json
from pathlib import Path

import pytest

from analytics_service.errors import ExportFailed, ExportRefused
from analytics_service.exports.folder import MANIFEST, ExportFolder, FileContent
from tests.files import no_file_larger_than

NAME = "price/2026-01.parquet"
CONTENT = FileContent(0, 100, 7, {"prices": (2**63, 5)})


def add(folder: ExportFolder, content: FileContent = CONTENT) -> None:
    with folder.writing(NAME, content) as file:
        file.write(b"rows")


def test_what_a_file_has_is_known_to_the_next_export(tmp_path: Path) -> None:
    add(ExportFolder(tmp_path / "new" / "folder"))
    again = ExportFolder(tmp_path / "new" / "folder")
    assert (again.content(NAME), again.content("price/2026-02.parquet")) == (CONTENT, None)
    assert again.listed("price", ".parquet") == {NAME: CONTENT}
    assert again.listed("price", ".csv") == again.listed("pric", ".parquet") == {}
    again.remove(NAME)
    assert ExportFolder(tmp_path / "new" / "folder").listed("price", ".parquet") == {}
    assert not (tmp_path / "new" / "folder" / NAME).exists()


def test_a_file_that_fails_half_way_leaves_what_was_there(tmp_path: Path) -> None:
    folder = ExportFolder(tmp_path)
    add(folder)
    other = FileContent(0, 200, 7, {})
    with (
        pytest.raises(ExportFailed, match=r"2026-01.parquet cannot be written \(File too large\)"),
        no_file_larger_than(2**10),
        folder.writing(NAME, other) as file,
    ):
        file.write(bytes(2**20))
    assert folder.content(NAME) == ExportFolder(tmp_path).content(NAME) == CONTENT
    assert [path.name for path in (tmp_path / "price").iterdir()] == ["2026-01.parquet"]


@pytest.mark.parametrize("document", ["", "[]", '{"files": []}', '{"files": {"a": {}}}', '{"files": {"a": 1}}'])
def test_a_damaged_list_is_refused(tmp_path: Path, document: str) -> None:
    (tmp_path / MANIFEST).write_text(document)
    with pytest.raises(ExportRefused, match=r"export\.json is damaged, or of something else\. Name another folder"):
        ExportFolder(tmp_path)
    assert (tmp_path / MANIFEST).read_text() == document


@pytest.mark.parametrize("name", ["price/../../victim.csv", "/victim.csv", "price/2026-01/x.csv", "price/a.csv"])
def test_a_list_with_names_that_no_export_has_is_refused(tmp_path: Path, name: str) -> None:
    add(ExportFolder(tmp_path))
    (tmp_path / MANIFEST).write_text((tmp_path / MANIFEST).read_text().replace(NAME, name))
    with pytest.raises(ExportRefused, match="damaged"):
        ExportFolder(tmp_path)


def test_a_link_to_another_folder_is_not_followed(tmp_path: Path) -> None:
    folder = ExportFolder(tmp_path / "out")
    add(folder)
    (tmp_path / "out" / "price").rename(tmp_path / "victim")
    (tmp_path / "out" / "price").symlink_to(tmp_path / "victim")
    for act in (add, lambda folder: folder.remove(NAME)):
        with pytest.raises(ExportRefused, match="out/price is a link to another folder"):
            act(folder)
    assert [path.name for path in (tmp_path / "victim").iterdir()] == ["2026-01.parquet"]


def test_a_folder_that_is_reached_by_a_link_is_as_good_as_any(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "real")
    add(ExportFolder(tmp_path / "out"))
    assert (tmp_path / "real" / NAME).read_bytes() == b"rows"


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "price").mkdir()
    with pytest.raises(ExportRefused, match="has files, and none of them is the export"):
        ExportFolder(tmp_path)


def test_a_folder_that_cannot_be_written_to_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ExportRefused, match=r"cannot be written to \(Not a directory\)\. Name another folder"):
        ExportFolder(tmp_path / "file" / "folder")


def test_the_list_is_for_readers_too(tmp_path: Path) -> None:
    add(ExportFolder(tmp_path))
    fields = {"bytes": 4, "start": 0, "end": 100, "definitions": 7, "heads": {"prices": [2**63, 5]}, "columns": 0}
    assert json.loads((tmp_path / MANIFEST).read_text()) == {"files": {NAME: fields}}
