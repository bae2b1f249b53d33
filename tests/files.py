"""Files that this process has open, and a limit of their size."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def opened(folder: Path) -> list[Path]:
    """The files of a folder that this process has open, by paths which lead to them though they have no name."""
    found = []
    for link in Path("/proc/self/fd").iterdir():
        # The folder of these links is open while they are read, and closed afterwards.
        if link.is_symlink() and link.readlink().is_relative_to(folder):
            found.append(link)
    return found


@contextmanager
def no_file_larger_than(size: int) -> Iterator[None]:
    """Writes beyond so many bytes of a file fail, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
