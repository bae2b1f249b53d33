"""Cleans up after a `backup` or `restore` that was killed.

A restore fills a new database, renames the old one, gives the new one its name, renames the old one again, and drops
it. Until then, the old database is whole under one of two names.
"""

import logging
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from analytics_service.clickhouse.connection import Store

log = logging.getLogger(__name__)

# Suffixes of databases: being restored; the old one, which may come back; the old one, which may be dropped.
RESTORING, REPLACED, DROPPED = "_restoring", "_replaced", "_dropped"


def clear_leftovers(store: Store) -> None:
    """Undo a restore that did not end. Only for the process that runs the server."""
    restoring, replaced, dropped = (store.database + suffix for suffix in (RESTORING, REPLACED, DROPPED))
    # The store's own database may be missing.
    with closing(store.sibling("default")) as server:
        present = {*server.query("list_databases")["name"]}
    if replaced in present:
        drop_database(store, store.database)
        rename_database(store, replaced, store.database)
        log.warning("A restore was interrupted. The store is as it was before.")
    for name in {restoring, dropped} & present:
        drop_database(store, name)


def drop_database(store: Store, name: str) -> None:
    store.command(f"DROP DATABASE IF EXISTS `{name}` SYNC", in_database=False)


def rename_database(store: Store, old: str, new: str) -> None:
    """Rename a database. Its views still name the old one."""
    store.command(f"RENAME DATABASE `{old}` TO `{new}`", in_database=False)


@contextmanager
def empty_folder(folder: Path) -> Iterator[None]:
    """Remove a folder before and after the block."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)
