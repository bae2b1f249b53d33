"""What commands share: settings, a source, a store and progress bars."""

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

# Seconds. Statements over the whole store may take longer than a request waits.
_WHOLE_STORE_TIMEOUT = 600
# For a child process of `up`: it must not exit while ClickHouse restarts.
_UNTIL_CLICKHOUSE_ANSWERS = Retries(
    math.inf,
    longest_pause=5.0,
    on_retry=lambda error: log.warning("%s Trying again until it answers.", error),
)

_IMPORT_STOPPED = (
    "The import was stopped. Either nothing was written, or the service or the next command completes it. You can run "
    "the same command again; the result is the same."
)


def load_settings(**overrides: object) -> Settings:
    """Read the settings from the environment and the options, and set up logging."""
    settings = Settings.from_environment(os.environ, **overrides)
    logs.set_up_logging(settings.log_level, settings.log_format)
    return settings


def waiting_for_store(settings: Settings) -> Settings:
    """The settings with a query time-out for commands that read or write the whole store."""
    return replace(settings, query_timeout=max(settings.query_timeout, _WHOLE_STORE_TIMEOUT))


def load_job_settings(**overrides: object) -> Settings:
    """The settings of a command that takes snapshots. SettingError if the source is `none`."""
    settings = load_settings(**overrides)
    if settings.source == NONE:
        raise SettingError("The source is none, so no snapshots can be taken. Name a source with --source.")
    return settings


def require_source(settings: Settings, store: Store, *, replace_source: bool = False) -> Source:
    """The source that the settings name, or else the store's own. SettingError if there is none."""
    choice = choose_source(store, settings, replace_source=replace_source)
    if choice.source is None:
        raise SettingError(choice.reason)
    return choice.source


@contextmanager
def open_store(settings: Settings) -> Iterator[Store]:
    """A store to write to. Migrates the schema of an embedded server; other servers need the command `migrate`.

    StoreUnavailable if ClickHouse does not answer; a child process of `up` waits instead.
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
    """A store to read, which is not migrated. SchemaError if it is not current; None for a data folder without data."""
    folder = DataFolder(settings.data_dir)
    if settings.clickhouse_url is None and not folder.has_data():
        yield None
        return
    with clickhouse(settings, command_line()) as reached, closing(Store(reached, author=command_line())) as store:
        require_current(store)
        yield store


@contextmanager
def filled_store(settings: Settings, *, dry_run: bool) -> Iterator[Store]:
    """The store to write to, or to read in a dry run. A dry run raises SettingError for a data folder without data."""
    with open_store_to_read(settings) if dry_run else open_store(settings) as store:
        if store is None:
            raise SettingError(f"There is no data in {store_location(settings)}.")
        yield store


@contextmanager
def import_store(settings: Settings, *, dry_run: bool) -> Iterator[Store | None]:
    """The store to write to. In a dry run: the store to compare with, or None for a data folder without data."""
    if dry_run:
        with open_store_to_read(settings) as existing:
            yield existing
    else:
        with open_store(settings) as store, explaining_stop(_IMPORT_STOPPED):
            yield store


def store_location(settings: Settings) -> str:
    if settings.clickhouse_url is None:
        return f"the data folder {settings.data_dir.absolute()}"
    return f"{settings.clickhouse_url}, database {settings.clickhouse_database}"


def command_line() -> str:
    """This command, quoted for a shell."""
    return shlex.join(["analytics-service", *sys.argv[1:]])


def follow_up(arguments: str) -> str:
    """A command to run next, in the data folder of this one."""
    context = click.get_current_context(silent=True)
    folder = context.params.get("data_dir") if context else None
    return f"analytics-service {arguments}{f' --data-dir {shlex.quote(str(folder))}' if folder else ''}"


class ProgressBars:
    """Shows each stage of a long operation as a progress bar."""

    def __init__(self) -> None:
        self._stage = ExitStack()
        self._bar: Any = None

    def stage(self, label: str, total: int) -> None:
        self._stage.close()
        # A total of 0 means that the length is unknown.
        bar = click.progressbar(length=total, label=label) if total else click.progressbar(count(), label=label)
        self._bar = self._stage.enter_context(bar)

    def advance(self, count: int) -> None:
        self._bar.update(count)

    def close(self) -> None:
        self._stage.close()
