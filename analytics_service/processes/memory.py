"""How much memory a process takes. Linux tells in /proc."""

import os
from pathlib import Path

_PROC = Path("/proc")


def resident_bytes(pid: int) -> int | None:
    """The memory of a process that is not swapped out, with shared libraries; None where the system does not tell."""
    try:
        pages = (_PROC / str(pid) / "statm").read_text("ascii").split()[1]
    except (OSError, IndexError):
        return None
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
