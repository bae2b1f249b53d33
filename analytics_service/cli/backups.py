"""`backup` and `restore`: the complete store as a file, and back."""

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from analytics_service.backups.archive import ArchiveReader, Manifest, require_writable
from analytics_service.backups.restoring import require_restorable
from analytics_service.backups.restoring import restore as restore_store
from analytics_service.backups.taking import back_up
from analytics_service.cli.context import (
    ProgressBars,
    command_line,
    load_settings,
    open_store_to_read,
    patient,
    store_location,
)
from analytics_service.cli.options import data_dir_option
from analytics_service.cli.signals import explaining_stop
from analytics_service.embedded.clickhouse import clickhouse
from analytics_service.errors import BackupRefused
from analytics_service.market.instants import instant, shown
from analytics_service.store.connection import Store
from analytics_service.store.migrations import create

_STOPPED = (
    "The restore was stopped. The store is as it was or, if that was at the very end, has all of the backup once the "
    "same command is run again."
)


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
@data_dir_option
def backup(file: Path, force: bool, **overrides: Any) -> None:
    """Write everything in the store into FILE, on this machine, while the service runs.

    FILE fits any store of this or a newer version, embedded or on a server. Only its owner may read it. Example:

    \b
        analytics-service backup analytics.backup
    """
    require_writable(file, overwrite=force)
    settings = patient(load_settings(**overrides))
    with open_store_to_read(settings) as store, closing(ProgressBars()) as bars:
        if store is None:
            raise BackupRefused(f"There is no data in {store_location(settings)}.")
        with explaining_stop(f"The backup was stopped. {file} was not written."):
            manifest = back_up(store, file, datetime.now(UTC), bars)
    click.echo(f"Wrote {_contents(manifest)} to {file} ({file.stat().st_size:,} bytes).")


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--replace", "replaces", is_flag=True, help="Replace all data of a store that is not empty.")
@data_dir_option
def restore(file: Path, replaces: bool, **overrides: Any) -> None:
    """Bring back what `backup` wrote into FILE: all of it, or nothing.

    First stop everything that writes to the store: `up`, `jobs run`, imports, backfills. Example:

    \b
        analytics-service restore analytics.backup --data-dir ./data
    """
    settings = patient(load_settings(**overrides))
    archive = ArchiveReader(file)
    require_restorable(archive.manifest)
    with (
        clickhouse(settings, command_line(), attach=False) as reached,
        closing(Store(reached)) as store,
        closing(ProgressBars()) as bars,
    ):
        create(store, is_own=settings.clickhouse_url is None)
        with explaining_stop(_STOPPED):
            restore_store(store, archive, bars, replace=replaces, location=store_location(settings))
    taken = shown(instant(archive.manifest.taken_at))
    click.echo(f"Restored {_contents(archive.manifest)}, as of {taken}, into {store_location(settings)}.")


def _contents(manifest: Manifest) -> str:
    rows = sum(table.rows for table in manifest.tables.values())
    return f"{rows:,} rows of {len(manifest.tables)} tables"
