"""Threads of a worker share one heap of glibc. Each would keep as much as the largest page that it ever freed."""

import platform
import re
from pathlib import Path

import pytest

from tests.acceptance.conftest import Service
from tests.processes import command_line, descendants

_HEAP = 64 * 2**20
_MAPPING = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ 0 *$")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no such heaps")
def test_no_worker_has_a_heap_for_each_thread(service: Service) -> None:
    for hours in range(1, 20):
        assert service.get(f"/api/v1/assets/price-history?start=now-{hours}h&end=now&period=min&limit=2000")[0] == 200
    (up,) = (one.pid for one in service.started if one.poll() is None)
    gunicorns = [pid for pid in descendants(up) if "gunicorn" in command_line(pid)]
    assert len(gunicorns) == 1 + service.workers
    assert {pid: heaps(pid) for pid in gunicorns} == dict.fromkeys(gunicorns, 0)


def heaps(pid: int) -> int:
    """Heaps beside the main one: 64 MiB, of which one part or several are used and the rest is reserved."""
    lines = Path(f"/proc/{pid}/maps").read_text("utf-8").splitlines()
    found = begin = end = 0
    for first, last, mode in [(int(m[1], 16), int(m[2], 16), m[3]) for m in map(_MAPPING.match, lines) if m]:
        if mode.startswith("rw"):
            begin, end = begin if first == end else first, last
        else:
            found += first == end and last == begin + _HEAP and begin % _HEAP == 0
    return found
