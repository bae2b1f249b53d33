"""The file of API keys: what is in it, and what changes it."""

import re
from hashlib import sha256
from pathlib import Path

import pytest

from analytics_service.errors import SettingError
from analytics_service.http.api_keys import add_key, digest, read_keys, remove_key

DIGEST = sha256(b"secret").hexdigest()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "keys.txt"


def test_a_new_key_has_256_bits_and_only_its_digest_is_stored(file: Path) -> None:
    key = add_key(file, "alice")
    # 43 characters of 6 bits each.
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", key)
    assert file.read_text() == f"alice {sha256(key.encode()).hexdigest()}\n"
    other = add_key(file, "bob")
    assert read_keys(file) == {digest(key): "alice", digest(other): "bob"}


def test_a_new_file_is_for_its_owner_only_and_a_changed_one_keeps_its_mode_and_comments(file: Path) -> None:
    add_key(file, "alice")
    assert file.stat().st_mode & 0o777 == 0o600
    file.chmod(0o640)
    file.write_text(f"# Keys of the team.\n\n{file.read_text().strip()}")
    add_key(file, "bob")
    remove_key(file, "alice")
    assert file.stat().st_mode & 0o777 == 0o640
    comment, empty, last = file.read_text().splitlines()
    assert (comment, empty, last.split()[0]) == ("# Keys of the team.", "", "bob")


def test_a_name_that_is_taken_and_one_that_is_not_there_are_refused(file: Path) -> None:
    add_key(file, "alice")
    before = file.read_text()
    with pytest.raises(SettingError, match="already has a key called alice"):
        add_key(file, "alice")
    with pytest.raises(SettingError, match="has no key called bob"):
        remove_key(file, "bob")
    assert file.read_text() == before


@pytest.mark.parametrize("name", ["", "#a", "a" * 65, "ä", "a\nb"])
def test_a_malformed_name_is_refused(file: Path, name: str) -> None:
    with pytest.raises(SettingError, match="must be 1 to 64 letters"):
        add_key(file, name)
    assert not file.exists()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("alice", "line 1 is not a name and a SHA-256"),
        (f"# fine\nalice {DIGEST[1:]}", "line 2 is not a name and a SHA-256"),
        (f"alice {DIGEST} more", "line 1 is not a name and a SHA-256"),
        (f"alice {DIGEST.upper()}", "line 1 is not a name and a SHA-256"),
        (f"alice {DIGEST}\nalice {DIGEST}", "line 2 repeats the name alice"),
    ],
)
def test_a_malformed_file_is_refused_with_the_line_that_is_wrong_but_without_its_text(
    file: Path, text: str, reason: str
) -> None:
    file.write_text(text)
    with pytest.raises(SettingError, match=f"is malformed: {reason}") as error:
        read_keys(file)
    assert DIGEST[1:] not in str(error.value)


def test_a_missing_file_is_refused_with_the_command_that_makes_one(file: Path) -> None:
    with pytest.raises(
        SettingError, match=r"cannot be read \(No such file or directory\). `analytics-service keys add"
    ):
        read_keys(file)
    with pytest.raises(SettingError, match=r"cannot be written \(No such file or directory\)"):
        add_key(file / "keys.txt", "alice")
