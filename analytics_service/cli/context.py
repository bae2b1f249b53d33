"""The context of commands: settings, a source, a store, progress."""

import logging
import math
import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from itertools import count
from typing import Any

import click

from analytics_service import logs
from analytics_service.cli.signals import explaining_stop
from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.errors import ONCE, Retries
from analytics_service.config.settings import Settings
from analytics_service.embedded.clickhouse import FOUND, clickhouse
from analytics_service.embedded.folder import DataFolder
from analytics_service.errors import SettingError
from analytics_service.sources.base import Source
from analytics_service.sources.registry import NONE, choose_source
from analytics_service.store.migrations import migrate
from analytics_service.store.schema import require_current

log = logging.getLogger(__name__)

# Seconds. Statements over the whole store may take longer than requests of the service wait.
_PATIENCE = 600
# For a part of `up`. While ClickHouse restarts, the part must not end, which would count as its own failure.
_UNTIL_CLICKHOUSE_ANSWERS = Retries(
    math.inf,
    longest_pause=5.0,
    on_retry=lambda error, pause: log.warning("%s Trying again until it answers.", error),
)

_IMPORT_STOPPED = (
    "The import was stopped. Either nothing was written or, if its rows were being put in place, the service or the "
    "next command completes it. The same command may be run again: it ends in the same state."
)


def load_settings(**overrides: object) -> Settings:
    """The settings from the environment and from options. Also sets up logging."""
    settings = Settings.from_environment(os.environ, **overrides)
    logs.set_up_logging(settings.log_level, settings.log_format)
    return settings


def waiting_for_store(settings: Settings) -> Settings:
    """The settings of a command that reads or writes the whole store."""
    return replace(settings, query_timeout=max(settings.query_timeout, _PATIENCE))


def load_job_settings(**overrides: object) -> Settings:
    """The settings of a command that takes snapshots. SettingError if they rule out a source."""
    settings = load_settings(**overrides)
    if settings.source == NONE:
        raise SettingError("The source is none, so there is nothing to take snapshots of. Name one with --source.")
    return settings


def require_source(settings: Settings, store: Store, *, replace_source: bool = False) -> Source:
    """The source that the settings name, or else the store's own. SettingError if there is none."""
    choice = choose_source(store, settings, replace_source=replace_source)
    if choice.source is None:
        raise SettingError(choice.reason)
    return choice.source


@contextmanager
def open_store(settings: Settings) -> Iterator[Store]:
    """A store to write to. The schema of an embedded server is migrated; that of another server only by `migrate`.

    StoreUnavailable if ClickHouse does not answer; a part of `up` waits for it instead.
    """
    prepare = migrate if settings.clickhouse_url is None else require_current
    retries = _UNTIL_CLICKHOUSE_ANSWERS if FOUND in os.environ else ONCE
    with (
        clickhouse(settings, command_line()) as reached,
        closing(Store(reached, author=command_line())) as store,
    ):
        retries(lambda: prepare(store))
        yield store


@contextmanager
def open_store_to_read(settings: Settings) -> Iterator[Store | None]:
    """A store with a current schema, which is not migrated here. None for a data folder without data."""
    folder = DataFolder(settings.data_dir)
    if settings.clickhouse_url is None and not folder.has_data():
        yield None
        return
    with clickhouse(settings, command_line()) as reached, closing(Store(reached, author=command_line())) as store:
        require_current(store)
        yield store


@contextmanager
def filled_store(settings: Settings, *, dry_run: bool) -> Iterator[Store]:
    """The store to write to, or for a dry run to read. SettingError for a data folder without data then."""
    with open_store_to_read(settings) if dry_run else open_store(settings) as store:
        if store is None:
            raise SettingError(f"There is no data in {store_location(settings)}.")
        yield store


@contextmanager
def import_store(settings: Settings, *, dry_run: bool) -> Iterator[Store | None]:
    """The store to write to; for a dry run the one to compare with, None for a data folder without data."""
    if dry_run:
        with open_store_to_read(settings) as existing:
            yield existing
    else:
        with open_store(settings) as store, explaining_stop(_IMPORT_STOPPED):
            yield store


def store_location(settings: Settings) -> str:
    """Where the store is, in words."""
    if settings.clickhouse_url is None:
        return f"the data folder {settings.data_dir.absolute()}"
    return f"{settings.clickhouse_url}, database {settings.clickhouse_database}"


def command_line() -> str:
    """This command as its user typed it."""
    return shlex.join(["analytics-service", *sys.argv[1:]])


class ProgressBars:
    """Shows each stage of a long operation as a progress bar."""

    def __init__(self) -> None:
        self._stage = ExitStack()
        self._bar: Any = None

    def stage(self, label: str, total: int) -> None:
        self._stage.close()
        # Of some stages nobody knows the length.
        bar = click.progressbar(length=total, label=label) if total else click.progressbar(count(), label=label)
        self._bar = self._stage.enter_context(bar)

    def advance(self, count: int) -> None:
        self._bar.update(count)

    def close(self) -> None:
        self._stage.close()
