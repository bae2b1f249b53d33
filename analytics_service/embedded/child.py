"""The process of the embedded ClickHouse: `python -m analytics_service.embedded.child FOLDER`.

It serves until its standard input ends, which also happens when its parent process is gone. It then ends at once, as in
a crash; acknowledged data is not lost. An orderly end would be unsafe: ClickHouse would end its own session before it
stops listening, and that session's user needs no password.
"""

import ctypes
import errno
import importlib
import os
import platform
import shutil
import struct
import sys
import threading
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NoReturn

# The entry point and the configuration are known to work with this version, which setup.cfg pins.
VERSION = "26.9.0"
# EX_CONFIG of sysexits.h: a restart does not help until the installation changes.
UNUSABLE = 78
INSTALL = "Install it with `pip install 'analytics-service[embedded]'`, or set ANALYTICS_CLICKHOUSE_URL."
# The number of the system call openat on Linux.
_OPENAT = {"x86_64": 257, "aarch64": 56}
# linux/prctl.h: a filter of system calls, which requires "no new privileges".
_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 38, 22, 2
# A query that never ends keeps the listeners open. HTTP starts last, so a server that answers HTTP is complete. The
# query has no priority: with the service's, researchers' queries would wait for it, a second at each block.
_SERVE = (
    "SYSTEM START LISTEN TCP; SYSTEM START LISTEN HTTP; "
    "SELECT sleepEachRow(3) FROM numbers(1000000000) "
    "SETTINGS max_block_size = 1, function_sleep_max_microseconds_per_block = 0 FORMAT Null"
)


def main(folder: str) -> None:
    """Serve from a folder that `write_configuration` filled."""
    # The configuration is read from the working directory, also while chdb is imported.
    os.chdir(folder)
    threading.Thread(target=_end_with_input, daemon=True).start()
    os.environ["TMPDIR"] = str(_empty(Path(folder, "tmp")))
    _require_version()
    _refuse_sqlite()
    chdb = _chdb()
    # SQL's function `file` would let anybody read what this process can, and hang on a pipe. This function replaces it
    # and takes no argument, so every call is refused before it reaches Python.
    chdb.create_function("file", lambda: "", [], "String")
    # Clients cannot read answers in other formats. ClickHouse cannot sync folders with a relative path.
    chdb.query(_SERVE, "TabSeparated", path=str(Path("data").absolute()))


def _empty(folder: Path) -> Path:
    """The folder, emptied of files that a killed server left."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _refuse_sqlite() -> None:
    """Forbid opening files with O_NOFOLLOW, which only SQLite does. SQL's `sqlite` creates its file before ClickHouse
    checks grants, and such a file among ClickHouse's own would keep it from starting."""
    if sys.platform != "linux" or platform.machine() not in _OPENAT:
        return
    # Instructions of the kernel's packet filter: code, jumps if true and false, operand. Folders may still be opened.
    code = (
        (0x20, 0, 0, 0),  # Load the number of the call.
        (0x15, 0, 4, _OPENAT[platform.machine()]),
        (0x20, 0, 0, 32),  # Load its third argument, the flags.
        (0x54, 0, 0, os.O_NOFOLLOW | os.O_DIRECTORY),
        (0x15, 0, 1, os.O_NOFOLLOW),
        (0x06, 0, 0, 0x00050000 | errno.EACCES),  # The call fails.
        (0x06, 0, 0, 0x7FFF0000),  # The call is made.
    )
    filter_ = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in code))
    program = struct.pack("HP", len(code), ctypes.addressof(filter_))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.prctl(_SET_SECCOMP, _FILTER, program):
        raise OSError(ctypes.get_errno(), "system calls cannot be filtered (seccomp)")


def _end_with_input() -> None:
    while os.read(0, 4096):
        pass
    os._exit(0)


def _require_version() -> None:
    try:
        installed = version("chdb-core")
    except PackageNotFoundError:
        _refuse(f"the package chdb-core is not installed. {INSTALL}")
    if installed != VERSION:
        _refuse(f"chdb-core has version {installed}; only {VERSION} is known to work. {INSTALL}")


def _chdb() -> Any:
    try:
        return importlib.import_module("chdb._chdb")
    except ImportError as error:
        _refuse(f"chdb-core {VERSION} cannot be used here ({error}). {INSTALL}")


def _refuse(reason: str) -> NoReturn:
    print(reason, file=sys.stderr)
    sys.exit(UNUSABLE)


if __name__ == "__main__":
    main(sys.argv[1])
