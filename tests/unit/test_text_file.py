"""Texts in a file are read as they were written, whatever was removed before, and nobody else can open the file."""

import os
import random
import stat
import threading
from pathlib import Path

import pytest

from analytics_service.history.text_file import TextFile
from tests.files import no_file_larger_than, opened

CHUNK = 2**16


def test_texts_are_read_as_they_were_written(draw: random.Random) -> None:
    """Some are shorter than a chunk, others fill chunks, or end a byte before or after one does."""
    file, there = TextFile(), []
    for _ in range(200):
        if there and draw.random() < 0.4:
            _, places = there.pop(draw.randrange(len(there)))
            file.remove(places)
        sizes = (1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, draw.randrange(1, 5 * CHUNK))
        texts = [draw.randbytes(draw.choice(sizes)) for _ in range(draw.randrange(1, 4))]
        there.append((texts, file.add(texts)))
        kept, places = draw.choice(there)
        for text, place in zip(kept, places, strict=True):
            begin = draw.randrange(len(text))
            end = draw.randrange(begin, len(text)) + 1
            assert file.read(place, begin, end) == text[begin:end]
            assert file.read(place, 0, place.size) == text


def test_a_removed_text_makes_room_for_another(temporary: Path) -> None:
    file = TextFile()
    for _ in range(50):
        places = file.add([bytes(2 * CHUNK), bytes(CHUNK // 2)])
        assert file.space(places) == 3 * CHUNK
        file.remove(places)
    (path,) = opened(temporary)
    assert path.stat().st_size <= 3 * CHUNK


def test_the_file_has_no_name_and_is_gone_when_nobody_uses_it(temporary: Path) -> None:
    file = TextFile()
    assert not opened(temporary)
    file.add([b"text"])
    (path,) = opened(temporary)
    assert (stat.S_IMODE(path.stat().st_mode), path.stat().st_nlink) == (0o600, 0)
    assert not [*temporary.iterdir()]
    del file
    assert not opened(temporary)


def test_of_texts_that_cannot_all_be_written_none_takes_room(temporary: Path) -> None:
    now = 0.0
    file = TextFile(lambda: now)
    (before,) = file.add([b"before"])
    with no_file_larger_than(3 * CHUNK), pytest.raises(OSError, match="File too large"):
        file.add([b"short", bytes(4 * CHUNK)])
    assert file.read(before, 0, 6) == b"before"
    for now, tries in ((0.0, False), (59.0, False), (60.0, True)):  # noqa: B007 - the clock tells it
        assert file.may_add() == tries
    short, long = file.add([b"short", b"long" * CHUNK])
    assert file.read(short, 0, 5) == b"short"
    assert file.read(long, 0, 4 * CHUNK) == b"long" * CHUNK
    (path,) = opened(temporary)
    assert path.stat().st_size <= 6 * CHUNK


def test_texts_are_removed_while_another_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is locked while they are removed: on a slow disk, all pages would wait."""
    file, pwrite = TextFile(), os.pwrite
    removing = threading.Thread(target=file.remove, args=[file.add([b"text"])])

    def slow(opened: int, part: bytes, start: int) -> int:
        removing.start()
        removing.join(10)
        assert not removing.is_alive()
        return pwrite(opened, part, start)

    monkeypatch.setattr(os, "pwrite", slow)
    (place,) = file.add([b"another"])
    assert file.read(place, 0, 7) == b"another"


def test_in_a_folder_that_cannot_be_used_nothing_is_written(temporary: Path) -> None:
    """And nowhere else: other folders may be in memory."""
    temporary.rmdir()
    file = TextFile()
    with pytest.raises(OSError, match="No such file or directory"):
        file.add([b"text"])
    assert not file.may_add()
    temporary.mkdir()
    (place,) = file.add([b"text"])
    assert file.read(place, 0, 4) == b"text"
    assert len(opened(temporary)) == 1


def test_what_is_no_longer_there_as_a_whole_cannot_be_read(temporary: Path) -> None:
    file = TextFile()
    (place,) = file.add([bytes(100)])
    (path,) = opened(temporary)
    os.truncate(path, 99)
    with pytest.raises(OSError, match="ends too soon"):
        file.read(place, 40, 100)
    assert file.read(place, 40, 99) == bytes(59)
