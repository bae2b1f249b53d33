"""The file of API keys: what is in it, who changes it, and when the service reads it again."""

import fcntl
import logging
import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import pytest

from analytics_service.errors import SettingError
from analytics_service.http import api_keys
from analytics_service.http.api_keys import ApiKeys, add_key, key_name, read_keys, remove_key

DIGEST = sha256(b"secret").hexdigest()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "keys.txt"


class Clock:
    second = 0.0

    def __call__(self) -> float:
        return self.second


def test_a_new_key_has_256_bits_and_only_its_digest_is_stored(file: Path) -> None:
    key = add_key(file, "alice")
    # 43 characters of 6 bits each.
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", key)
    assert file.read_text() == f"alice {sha256(key.encode()).hexdigest()}\n"
    assert add_key(file, "bob") != key


def test_a_new_file_is_for_its_owner_only_and_a_replaced_one_keeps_its_mode_and_comments(file: Path) -> None:
    add_key(file, "alice")
    assert file.stat().st_mode & 0o777 == 0o600
    file.chmod(0o640)
    file.write_text(f"# Keys of the team.\n\n{file.read_text().strip()}")
    add_key(file, "bob")
    remove_key(file, "alice")
    assert file.stat().st_mode & 0o777 == 0o640
    comment, empty, last = file.read_text().splitlines()
    assert (comment, empty, last.split()[0]) == ("# Keys of the team.", "", "bob")
    assert [each.name for each in file.parent.iterdir()] == [file.name]


def test_a_link_to_the_file_stays_a_link(file: Path) -> None:
    link = file.with_name("link.txt")
    link.symlink_to(file)
    add_key(link, "alice")
    add_key(link, "bob")
    assert link.is_symlink()
    assert [*read_keys(file)] == ["alice", "bob"]


def test_a_name_that_is_taken_and_one_that_is_not_there_are_refused(file: Path) -> None:
    add_key(file, "alice")
    before = file.read_text()
    with pytest.raises(SettingError, match="There is a key called alice in "):
        add_key(file, "alice")
    with pytest.raises(SettingError, match="There is no key called bob in "):
        remove_key(file, "bob")
    assert file.read_text() == before


def test_a_change_waits_for_the_end_of_another_one(file: Path) -> None:
    """The lock is held by this test, which stands for another process."""
    folder = os.open(file.parent, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    adding = threading.Thread(target=add_key, args=(file, "bob"))
    adding.start()
    adding.join(0.1)
    waits = adding.is_alive()
    file.write_text(f"alice {DIGEST}\n")
    os.close(folder)
    adding.join(60)
    assert waits
    assert [*read_keys(file)] == ["alice", "bob"]


@pytest.mark.parametrize("name", ["", "#a", "a" * 65, "ä", "a\nb"])
def test_a_malformed_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="must be 1 to 64 letters"):
        key_name(name)


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
    with pytest.raises(SettingError, match=r"cannot be opened \(No such file or directory\)"):
        add_key(file / "keys.txt", "alice")


def test_each_key_has_its_name_and_others_have_none(file: Path) -> None:
    alice, bob = add_key(file, "alice"), add_key(file, "bob")
    keys = ApiKeys(file, Clock())
    assert ApiKeys(file.with_name("none"), Clock()).name_of("") is None
    assert [keys.name_of(one) for one in (alice, bob, "", "alice", bob + "=")] == ["alice", "bob", None, None, None]


def test_a_file_that_has_changed_is_read_again_a_second_after_the_last_look(file: Path) -> None:
    alice, clock = add_key(file, "alice"), Clock()
    keys = ApiKeys(file, clock)
    assert keys.name_of(alice) == "alice"
    bob = add_key(file, "bob")
    remove_key(file, "alice")
    clock.second = 0.9
    assert (keys.name_of(alice), keys.name_of(bob)) == ("alice", None)
    clock.second = 1.0
    assert (keys.name_of(alice), keys.name_of(bob)) == (None, "bob")


def test_a_file_that_replaces_one_of_the_same_size_and_time_is_read(file: Path) -> None:
    other, clock = file.with_name("other.txt"), Clock()
    alice, carol = add_key(file, "alice"), add_key(other, "carol")
    keys = ApiKeys(file, clock)
    assert keys.name_of(alice) == "alice"
    before = file.stat()
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(file)
    clock.second = 1.0
    assert (keys.name_of(alice), keys.name_of(carol)) == (None, "carol")


@pytest.mark.parametrize("harm", [lambda file: file.unlink(), lambda file: file.write_text("nonsense")])
def test_keys_hold_while_their_file_is_missing_or_malformed_and_one_error_says_so(
    file: Path, harm: object, caplog: pytest.LogCaptureFixture
) -> None:
    alice, clock = add_key(file, "alice"), Clock()
    keys = ApiKeys(file, clock)
    assert keys.name_of(alice) == "alice"
    harm(file)  # type: ignore[operator]
    with caplog.at_level(logging.ERROR):
        for clock.second in (1.0, 2.0, 3.0):
            assert keys.name_of(alice) == "alice"
    assert len(caplog.messages) == 1
    assert str(file) in caplog.text


def test_the_first_requests_wait_until_the_file_is_read(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alice, meeting = add_key(file, "alice"), threading.Barrier(2, timeout=0.2)

    def read_slowly(path: Path) -> dict[str, bytes]:
        with suppress(threading.BrokenBarrierError):
            meeting.wait()
        return read_keys(path)

    monkeypatch.setattr(api_keys, "read_keys", read_slowly)
    keys = ApiKeys(file, Clock())
    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(keys.name_of, [alice] * 4)] == ["alice"] * 4
