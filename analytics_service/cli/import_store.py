"""The store of an import command."""

from collections.abc import Iterator
from contextlib import contextmanager

from analytics_service.cli.context import open_store, open_store_to_read
from analytics_service.cli.signals import explaining_stop
from analytics_service.config.settings import Settings
from analytics_service.store.connection import Store

_STOPPED = (
    "The import was stopped. Either nothing was written or, if its rows were being put in place, the service or the "
    "next command completes it. The same command may be run again: it ends in the same state."
)


@contextmanager
def import_store(settings: Settings, *, dry_run: bool) -> Iterator[Store | None]:
    """The store to write to; for a dry run the one to compare with, None for a data folder without data."""
    if dry_run:
        with open_store_to_read(settings) as existing:
            yield existing
    else:
        with open_store(settings) as store, explaining_stop(_STOPPED):
            yield store
