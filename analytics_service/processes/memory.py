"""Measures the memory of a process, and bounds the freed memory that it keeps."""

import ctypes
import os
from pathlib import Path

_PROC = Path("/proc")
# Parameters of mallopt, from malloc.h.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8
_MIB = 2**20


def resident_bytes(pid: int) -> int | None:
    """The memory of a process that is not swapped out, with shared libraries; None where the system does not tell."""
    try:
        pages = (_PROC / str(pid) / "statm").read_text("ascii").split()[1]
    except (OSError, IndexError):
        return None
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def bound_idle_memory() -> None:
    """Have glibc give freed memory back to the system, except for 4 MiB that it keeps for the next pages. Applies to
    this process and those that it forks, if no other thread has allocated yet.

    By default each thread has a heap, which keeps as much as the largest page it ever freed. If none were kept, getting
    memory for a page would take twice as long as encoding it. Threads can share one heap, because they hold Python's
    lock while they allocate, and Polars has an allocator of its own. Other C libraries have no such options.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)
        mallopt(_M_MMAP_THRESHOLD, _MIB)
        mallopt(_M_TRIM_THRESHOLD, 4 * _MIB)
