"""The process in which the embedded ClickHouse runs: `python -m` this module, with the server's folder as argument.

It serves until its standard input ends, which is also when the process that started it is gone.
"""

import importlib
import os
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NoReturn

# The version whose entry point and configuration were tried; setup.cfg pins the same.
VERSION = "26.9.0"
# sysexits.h: starting again without a change to the installation will not help.
UNUSABLE = 78
INSTALL = "Install it with `pip install 'analytics-service[embedded]'`, or set ANALYTICS_CLICKHOUSE_URL."
# A query that never ends on its own keeps the listeners open. HTTP comes last, so a server that answers it is complete.
_SERVE = (
    "SYSTEM START LISTEN TCP; SYSTEM START LISTEN HTTP; SELECT * FROM file('/dev/stdin', 'LineAsString') FORMAT Null"
)


def main(folder: str) -> None:
    """Serve from a folder made by embedded_config.write_configuration."""
    # The configuration is read from the working directory, also while chdb is imported.
    os.chdir(folder)
    # Other formats make the server unreadable for clients.
    _entry_point()(_SERVE, "TabSeparated", path="data")


def _entry_point() -> Any:
    try:
        installed = version("chdb-core")
    except PackageNotFoundError:
        _give_up(f"the package chdb-core is not installed. {INSTALL}")
    if installed != VERSION:
        _give_up(f"chdb-core is {installed}, and only {VERSION} is known to work. {INSTALL}")
    try:
        query = importlib.import_module("chdb._chdb").query
    except (ImportError, AttributeError) as error:
        _give_up(f"chdb-core {installed} cannot be used here ({error}). {INSTALL}")
    return query


def _give_up(reason: str) -> NoReturn:
    print(reason, file=sys.stderr)
    sys.exit(UNUSABLE)


if __name__ == "__main__":
    main(sys.argv[1])
