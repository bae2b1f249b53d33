"""What `backup` and `restore` put beside the store of a data folder, and what is done about it after they were killed.

A restore fills a new database, renames the old one, gives the new one its name, and renames the old one again before it
is dropped. Until then, the old database is whole under one of two names.
"""

import logging
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from analytics_service.clickhouse.connection import Store

log = logging.getLogger(__name__)

# Suffixes of databases: one that is being restored, the old one while it may come back, and once it may be dropped.
RESTORING, REPLACED, DROPPED = "_restoring", "_replaced", "_dropped"


def clear_leftovers(store: Store) -> None:
    """Make the store what it was before a restore that did not end. Only for the process that runs the server."""
    restoring, replaced, dropped = (store.database + suffix for suffix in (RESTORING, REPLACED, DROPPED))
    # The store's own database may be missing.
    with closing(store.sibling("default")) as server:
        present = {*server.query("list_databases")["name"]}
    if replaced in present:
        drop_database(store, store.database)
        rename_database(store, replaced, store.database)
        log.warning("A restore did not end. The store is as it was before.")
    for name in {restoring, dropped} & present:
        drop_database(store, name)


def drop_database(store: Store, name: str) -> None:
    """Drop a database, if it is there."""
    store.command(f"DROP DATABASE IF EXISTS `{name}` SYNC", in_database=False)


def rename_database(store: Store, old: str, new: str) -> None:
    """Rename a database. Its views still name the old one."""
    store.command(f"RENAME DATABASE `{old}` TO `{new}`", in_database=False)


@contextmanager
def empty_folder(folder: Path) -> Iterator[None]:
    """Remove a folder before the block, and after it."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)
