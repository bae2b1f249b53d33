"""Provides the ClickHouse of a command: a server by URL, another process's server, or a server started here."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from analytics_service.config.settings import Settings
from analytics_service.embedded.folder import DataFolder, FolderHolder
from analytics_service.embedded.server import EmbeddedServer
from analytics_service.errors import ProcessError
from analytics_service.supervisor import Supervisor, run_children

# Seconds to wait for a folder whose holder has ended but whose server still runs, and for a holder that starts its
# server, which takes long after a crash.
_LOCK_SECONDS = 30.0
_START_SECONDS = EmbeddedServer.ready_seconds + 10
# Set in the environment of a service's child processes once it has found its ClickHouse. They start even if ClickHouse
# is away, and never start one themselves: it would take the data folder from this service, or from the next service.
FOUND = "_ANALYTICS_CLICKHOUSE_FOUND"


@contextmanager
def clickhouse(settings: Settings, command: str, *, attach: bool = True) -> Iterator[Settings]:
    """Settings with which a Store reaches a running ClickHouse during the block.

    ClickHouse is the server of ANALYTICS_CLICKHOUSE_URL, or another process's server in the data folder, or a server
    started here for `command` and stopped at the end. ProcessError if another process's server may end first,
    or with `attach` false. Child processes of a service use its server.
    """
    if settings.clickhouse_url is not None or FOUND in os.environ:
        yield settings
        return
    folder = DataFolder(settings.data_dir)
    folder.create()
    lock = _lock(folder, command, settings, attach)
    reached = replace(settings, data_dir=folder.root)
    if lock is None:
        yield reached
        return
    try:
        with serve_clickhouse(folder, lock, settings):
            yield reached
    finally:
        os.close(lock)


def runs_here(settings: Settings) -> bool:
    """Whether this process runs the ClickHouse that `clickhouse` has found or started."""
    holder = None if settings.clickhouse_url is not None else DataFolder(settings.data_dir).holder()
    return holder is not None and holder.pid == os.getpid()


def attach(settings: Settings) -> Settings | None:
    """The settings, if their ClickHouse is named by URL or already runs in another process; else None."""
    if settings.clickhouse_url is not None:
        return settings
    folder = DataFolder(settings.data_dir)
    return replace(settings, data_dir=folder.root) if folder.locked() and folder.running() else None


def require_attachable(settings: Settings) -> Settings:
    """Like `attach`, but ProcessError if no ClickHouse runs, unless gunicorn was started with one."""
    reached = attach(settings)
    if reached is None and FOUND not in os.environ:
        raise ProcessError(
            f"No ClickHouse is running in the data folder {settings.data_dir.absolute()}. Start one with "
            "`analytics-service up`, name another folder with ANALYTICS_DATA_DIR, or set ANALYTICS_CLICKHOUSE_URL."
        )
    return reached or settings


@contextmanager
def serve_clickhouse(folder: DataFolder, lock: int, settings: Settings) -> Iterator[None]:
    """Run an embedded server in a locked folder during the block, announced to other commands."""
    with run_children([Supervisor(EmbeddedServer(folder, lock, settings))]):
        try:
            yield
        finally:
            # On a full disk the announcement stays. It names a process that is ending, so it soon counts as outdated.
            with suppress(OSError):
                folder.announce(None)


def _lock(folder: DataFolder, command: str, settings: Settings, attach: bool) -> int | None:
    """The folder's lock; None if the command may attach to another process's server."""
    started = time.monotonic()
    while True:
        lock = folder.lock(command, settings.bind, settings.source)
        if lock is not None:
            return lock
        holder = folder.holder()
        if holder is not None and holder.alive:
            if not attach or holder.is_brief:
                raise ProcessError(_in_use(folder, holder))
            if folder.running() is not None:
                return None
        patience = _START_SECONDS if holder is not None and holder.alive else _LOCK_SECONDS
        if time.monotonic() > started + patience:
            raise ProcessError(_in_use(folder, holder))
        time.sleep(0.05)


def _in_use(folder: DataFolder, holder: FolderHolder | None) -> str:
    who = f"process {holder.pid} (`{holder.command}`)" if holder else "another process"
    stop = f" with `kill {holder.pid}`" if holder else ""
    return (
        f"The data folder {folder.root} is in use by {who}. "
        f"Stop it{stop}, or name another folder with --data-dir or ANALYTICS_DATA_DIR."
    )
