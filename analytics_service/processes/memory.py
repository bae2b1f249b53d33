"""Measures the memory of a process, bounds the freed memory that it keeps, and imports what stays in it."""

import ctypes
import gc
import os
from importlib import import_module
from pathlib import Path
from types import ModuleType

_PROC = Path("/proc")
# Parameters of mallopt, from malloc.h.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8
_MIB = 2**20
# What Polars' allocator, jemalloc, reads when it is loaded. By default it has four heaps for each processor, and pages
# that were freed count as in use for a second longer.
_POLARS = ("_RJEM_MALLOC_CONF", "narenas:1,muzzy_decay_ms:0")


def resident_bytes(pid: int) -> int | None:
    """The memory of a process that is not swapped out, with shared libraries; None where the system does not tell."""
    try:
        pages = (_PROC / str(pid) / "statm").read_text("ascii").split()[1]
    except (OSError, IndexError):
        return None
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def bound_idle_memory() -> None:
    """Have glibc and Polars give freed memory back to the system, and keep only a little of it for the next pages.
    Applies to this process and those that it forks, if no other thread has allocated yet and Polars is not loaded.

    By default threads have heaps of their own, each of which keeps as much as the largest page it ever freed. If none
    were kept, getting memory for a page would take twice as long as encoding it. Threads can share one heap, because
    most hold Python's lock while they allocate. Other C libraries have no such options.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)
        mallopt(_M_MMAP_THRESHOLD, _MIB)
        mallopt(_M_TRIM_THRESHOLD, 4 * _MIB)
    # An operator's own choice goes before this one.
    os.environ.setdefault(*_POLARS)


def imported_for_good(name: str) -> ModuleType:
    """A module, imported with the garbage collector at rest: nothing of it is ever garbage, here or in processes that
    are forked from this one."""
    gc.disable()
    try:
        module = import_module(name)
        gc.freeze()
    finally:
        gc.enable()
    return module
