"""Cleans up after a `backup` or `restore` that was killed."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from analytics_service.clickhouse.connection import Store

# Suffix of the database that a restore fills.
RESTORING = "_restoring"


def clear_leftovers(store: Store) -> None:
    """Drop what a restore has filled. Only for the process that runs the server."""
    drop_database(store, store.database + RESTORING)


def drop_database(store: Store, name: str) -> None:
    store.command(f"DROP DATABASE IF EXISTS `{name}` SYNC", in_database=False)


@contextmanager
def empty_folder(folder: Path) -> Iterator[None]:
    """Remove a folder before and after the block."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)
