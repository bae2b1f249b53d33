"""Opens a file in the format that its content shows."""

import os
import resource
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from analytics_service.errors import ImportRefused
from analytics_service.imports.columnar import ARROW_STREAM, arrow_table, parquet_table
from analytics_service.imports.files import unpacked
from analytics_service.imports.records import json_table
from analytics_service.imports.tables import Table, require_content
from analytics_service.imports.text import text_table

_START = 4096


# Bytes of memory in which a Parquet or Arrow file must be readable: what they unpack to has no bound.
_MEMORY = 768 * 2**20


def within_memory(paths: Sequence[Path]) -> Sequence[Path]:
    """The same paths. ImportRefused for a Parquet or Arrow file that needs too much memory, which is tried in a process
    of its own: Polars ends its process when it gets none."""
    typed = [path for path in paths if _start(path)[1] in (parquet_table, arrow_table)]
    if not typed:
        return paths
    command, environment = [sys.executable, "-P", "-m", __name__], os.environ | {"POLARS_MAX_THREADS": "1"}
    tried = subprocess.run(command, input="\0".join(map(str, typed)).encode(), capture_output=True, env=environment)
    if tried.returncode:
        path = typed[tried.stdout.count(b"\n")]
        raise ImportRefused(
            f"{path} cannot be read within {_MEMORY // 2**20} MiB of memory. Write it again in smaller row groups or "
            "batches, or as CSV."
        )
    return paths


def _read_all() -> None:
    """Read the files that stdin names, with a line for each that is over. What is wrong with one is found again."""
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
    for name in sys.stdin.buffer.read().split(b"\0"):
        with suppress(ImportRefused):
            deque(open_table(Path(name.decode())).blocks(), maxlen=0)
        print(flush=True)


def open_table(path: Path) -> Table:
    """The table of a file, whatever its format. ImportRefused when it is missing, empty or unreadable, and at the end
    of its blocks when it changed meanwhile."""
    start, reader = _start(path)
    return reader(path, start).watched()


def _start(path: Path) -> tuple[bytes, Callable[[Path, bytes], Table]]:
    """The first bytes of a file, unpacked, and what reads its format."""
    require_content(path)
    with unpacked(path) as (_, stream):
        start = stream.read(_START)
    if start.startswith(b"PAR1") or path.suffix == ".parquet":
        return start, parquet_table
    if start.startswith((b"ARROW1", ARROW_STREAM)):
        return start, arrow_table
    is_json = start.removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b"{", b"["))
    return start, json_table if is_json else text_table


if __name__ == "__main__":
    _read_all()
