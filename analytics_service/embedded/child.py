"""The process that runs the embedded ClickHouse: `python -m` this module, with the server's folder as its argument.

It serves until its standard input ends, which also happens when the process that started it is gone. Then it ends at
once, as it would in a crash, which loses nothing that was acknowledged. An orderly end is no option: ClickHouse would
end its own session before it stops listening, and that session's user needs no password.
"""

import importlib
import os
import sys
import threading
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NoReturn

# The entry point and the configuration are known to work with this version; setup.cfg pins the same one.
VERSION = "26.9.0"
# EX_CONFIG of sysexits.h: another start will not help until the installation changes.
UNUSABLE = 78
INSTALL = "Install it with `pip install 'analytics-service[embedded]'`, or set ANALYTICS_CLICKHOUSE_URL."
# A query that never ends keeps the listeners open. HTTP comes last, so a server that answers it is complete.
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
    # With other formats clients cannot read the server's answers.
    _entry_point()(_SERVE, "TabSeparated", path="data")


def _end_with_input() -> None:
    while os.read(0, 4096):
        pass
    os._exit(0)


def _entry_point() -> Any:
    try:
        installed = version("chdb-core")
    except PackageNotFoundError:
        _refuse(f"the package chdb-core is not installed. {INSTALL}")
    if installed != VERSION:
        _refuse(f"chdb-core is {installed}, and only {VERSION} is known to work. {INSTALL}")
    try:
        query = importlib.import_module("chdb._chdb").query
    except (ImportError, AttributeError) as error:
        _refuse(f"chdb-core {installed} cannot be used here ({error}). {INSTALL}")
    return query


def _refuse(reason: str) -> NoReturn:
    print(reason, file=sys.stderr)
    sys.exit(UNUSABLE)


if __name__ == "__main__":
    main(sys.argv[1])
