"""Ends services that use the embedded ClickHouse of another command when that does not come back."""

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from analytics_service.config.settings import Settings
from analytics_service.embedded.clickhouse import FOUND
from analytics_service.embedded.folder import DataFolder, Holder
from analytics_service.errors import EmbeddedServerError
from analytics_service.processes.watch import running

log = logging.getLogger(__name__)

# Seconds that the data folder may be free. During this time the command can be restarted.
_PATIENCE = 30.0
# Seconds between two looks.
_PAUSE = 1.0


@contextmanager
def ending_with_holder(
    settings: Settings, on_failure: Callable[[], None], patience: float = _PATIENCE
) -> Iterator[None]:
    """Watch the command that runs a service's embedded ClickHouse, for the duration of the block.

    `settings` are those with which a ClickHouse was found. `on_failure` is called from another thread when no command
    has held the data folder for `patience` seconds; the block's end then raises EmbeddedServerError. No watch is needed
    for a service on its own server, a part of `up`, or a service on a server that is named by URL.
    """
    folder = DataFolder(settings.data_dir)
    holder = None if settings.clickhouse_url is not None or FOUND in os.environ else folder.holder()
    if holder is None or holder.pid == os.getpid():
        yield
        return
    log.warning(
        "ClickHouse is run by process %d (`%s`) in the data folder %s. When that ends, so does this service.",
        holder.pid,
        holder.command,
        folder.root,
    )
    with running([_Presence(folder, holder, patience)], on_failure):
        yield


class _Presence:
    """Whether any command holds the data folder, for a watch."""

    def __init__(self, folder: DataFolder, holder: Holder, patience: float) -> None:
        self._folder = folder
        self._holder = holder
        self._patience = patience
        self._held_at = self._looked_at = time.monotonic()

    def start(self) -> None:
        """Does nothing, because the command already runs."""

    def check(self) -> None:
        """EmbeddedServerError when the folder has been free for too long."""
        now = time.monotonic()
        if now < self._looked_at + _PAUSE:
            return
        self._looked_at = now
        if self._folder.locked():
            self._held_at = now
        elif now > self._held_at + self._patience:
            raise EmbeddedServerError(
                f"Process {self._holder.pid} (`{self._holder.command}`) has ended, and with it the ClickHouse in the "
                f"data folder {self._folder.root}. Start this service again: it then runs one of its own."
            )

    def stop(self) -> None:
        """Does nothing, because the command does not belong to this service."""
