"""Breaks parts of tables as a failing disk does: their files are empty, or gone, when ClickHouse loads the table."""

import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import DatabaseError

from analytics_service.config.settings import Settings

_ATTEMPTS, _PAUSE = 100, 0.05
_PARTS = """
SELECT path FROM system.parts
WHERE database = currentDatabase() AND table = {table:String} AND active AND rows > 0
ORDER BY partition_id, name
"""


def parts_of(own: Client, table: str) -> list[str]:
    """The folder of each part of a table."""
    return [str(path) for (path,) in own.query(_PARTS, parameters={"table": table}).result_rows]


def break_parts(settings: Settings, own: Client, table: str, parts: Sequence[str], *, gone: bool = False) -> None:
    """Empty the data of some parts, or remove them, and have ClickHouse load the table again, as when it starts."""
    root = _root(settings)
    own.command(f"DETACH TABLE {table}")
    for part in parts:
        if gone:
            shutil.rmtree(root / part)
        else:
            for file in (root / part).glob("*.bin"):
                file.write_bytes(b"")
    for attempt in range(_ATTEMPTS):
        try:
            own.command(f"ATTACH TABLE {table}")
            break
        except DatabaseError:
            # A query that was answered may still hold the table for a moment.
            if attempt == _ATTEMPTS - 1:
                raise
            time.sleep(_PAUSE)


def delete_broken(settings: Settings, own: Client) -> None:
    """Delete the folders of all broken parts of a database, as an operator does in the end."""
    for folder in _broken(settings, own):
        shutil.rmtree(folder)


def _broken(settings: Settings, own: Client) -> list[Path]:
    paths = own.query("SELECT path FROM system.detached_parts WHERE database = currentDatabase()").result_rows
    return [_root(settings) / str(path) for (path,) in paths]


def _root(settings: Settings) -> Path:
    """The folder that ClickHouse's paths begin in."""
    return next(Path(settings.data_dir).rglob("data/store")).parents[1]
