"""Limits the freed memory that a process keeps."""

import ctypes
import os

# Parameters of mallopt, from malloc.h.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8
_MIB = 2**20
# Options of Polars' allocator, jemalloc, read when it is loaded. By default it has four heaps a processor, and counts
# freed pages as used for another second.
_POLARS = ("_RJEM_MALLOC_CONF", "narenas:1,muzzy_decay_ms:0")


def bound_idle_memory() -> None:
    """Make glibc and Polars return most freed memory to the system, in this process and its forks. Call it before
    another thread allocates and before Polars is loaded.

    By default each thread has its own heap, which keeps as much memory as the largest page that it ever freed. A little
    memory is kept, because otherwise allocating a page takes twice as long as encoding it. Threads can share a heap,
    because most hold Python's lock while they allocate. Other C libraries have no such options.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)
        mallopt(_M_MMAP_THRESHOLD, _MIB)
        mallopt(_M_TRIM_THRESHOLD, 4 * _MIB)
    # An operator's own choice takes precedence.
    os.environ.setdefault(*_POLARS)
