"""The process that runs the embedded ClickHouse: `python -m` this module, with the server's folder as its argument.

It serves until its standard input ends, which also happens when its parent process is gone. Then it ends at once, as in
a crash; acknowledged data is not lost. An orderly end is not possible: ClickHouse would end its own session before it
stops listening, and that session's user needs no password.
"""

import importlib
import os
import shutil
import sys
import sysconfig
import threading
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

from analytics_service.embedded.confinement import confine, refuse_sqlite

# The entry point and the configuration are known to work with this version; setup.cfg pins the same version.
VERSION = "26.9.0"
# EX_CONFIG of sysexits.h: restarting does not help until the installation changes.
UNUSABLE = 78
INSTALL = "Install it with `pip install 'analytics-service[embedded]'`, or set ANALYTICS_CLICKHOUSE_URL."
# Files that ClickHouse reads besides its own folder: libraries, zones, and information about processes and devices.
_SYSTEM = (
    *("/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/dev/urandom", "/sys"),
    # Nothing of other processes, in particular not their environments.
    *(f"/proc/{name}" for name in ("self", "cpuinfo", "loadavg", "meminfo", "stat", "sys", "uptime")),
)
# A query that never ends keeps the listeners open. HTTP comes last, so a server that answers it is complete. The query
# has no priority: with that of the service, researchers' queries would wait for it, a second at each block.
_SERVE = (
    "SYSTEM START LISTEN TCP; SYSTEM START LISTEN HTTP; "
    "SELECT sleepEachRow(3) FROM numbers(1000000000) "
    "SETTINGS max_block_size = 1, function_sleep_max_microseconds_per_block = 0 FORMAT Null"
)


def main(folder: str) -> None:
    """Serve from a folder made by configuration.write_configuration."""
    # The configuration is read from the working directory, also while chdb is imported.
    os.chdir(folder)
    threading.Thread(target=_end_with_input, daemon=True).start()
    os.environ["TMPDIR"] = str(_empty(Path(folder, "tmp")))
    _require_version()
    _confine(Path(folder))
    refuse_sqlite()
    chdb = _chdb()
    # SQL's function `file` would read whatever this process can, for anybody, and from a pipe wait for ever. This one
    # takes its name, and no argument, so every call is refused before Python is asked.
    chdb.create_function("file", lambda: "", [], "String")
    # With other formats clients cannot read the server's answers. ClickHouse cannot sync folders of a relative path.
    chdb.query(_SERVE, "TabSeparated", path=str(Path("data").absolute()))


def _empty(folder: Path) -> Path:
    """The folder, without files that a killed server has left behind."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _confine(folder: Path) -> None:
    """Restrict ClickHouse to its own files and the system's. Called before it is imported, because that starts
    threads."""
    package = find_spec("chdb")
    installed = [*(package.submodule_search_locations or ())] if package else []
    python = {sys.base_prefix, *sysconfig.get_paths().values(), *(str(Path(location).parent) for location in installed)}
    if not confine([folder, Path("/dev/null")], map(Path, (*python, *_SYSTEM))):
        print("The kernel has no Landlock: ClickHouse itself can access all files of this user.", file=sys.stderr)


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
        _refuse(f"chdb-core is {installed}, and only {VERSION} is known to work. {INSTALL}")


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
