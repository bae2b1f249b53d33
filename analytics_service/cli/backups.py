"""`backup` and `restore`: write the store of a data folder into a file, and read it back."""

from contextlib import closing
from pathlib import Path
from typing import Any

import click

from analytics_service.admin.backup import FIRST, SECOND, back_up
from analytics_service.admin.restore import restore as restore_store
from analytics_service.cli.context import (
    ProgressBars,
    command_line,
    filled_store,
    load_settings,
    store_location,
    waiting_for_store,
)
from analytics_service.cli.options import data_dir_option
from analytics_service.cli.signals import explaining_stop
from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.embedded.clickhouse import clickhouse
from analytics_service.embedded.folder import DataFolder
from analytics_service.errors import UserError
from analytics_service.store.ledger import HEADS, HEADS_VIEW, LEDGER


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@data_dir_option
def backup(file: Path, **overrides: Any) -> None:
    """Write the whole store of the data folder into FILE, while the service runs.

    FILE must be new; only its owner can read it. This and newer versions can restore it. Corrections, such as imports,
    are refused meanwhile. The disk of the data folder needs room for a copy of the store. Your own ClickHouse server
    writes its own backups; the command then prints the statements. Example:

    \b
        analytics-service backup analytics.backup
    """
    settings = waiting_for_store(load_settings(**overrides))
    _require_embedded(settings)
    with (
        filled_store(settings, dry_run=True) as store,
        closing(ProgressBars()) as bars,
        explaining_stop(f"The backup was stopped. {file} was not written."),
    ):
        back_up(store, file, DataFolder(settings.data_dir).unfinished, bars)
    click.echo(f"Wrote {file} ({file.stat().st_size:,} bytes).")


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--replace", "replaces", is_flag=True, help="Replace all data of a store that is not empty.")
@data_dir_option
def restore(file: Path, replaces: bool, **overrides: Any) -> None:
    """Restore the store from FILE, which `backup` wrote.

    First stop everything that uses the data folder: `up`, `serve`, `jobs run` and imports. The disk needs room for two
    copies of FILE. A FILE that cannot be restored changes nothing. Example:

    \b
        analytics-service restore analytics.backup --data-dir ./data
    """
    settings = waiting_for_store(load_settings(**overrides))
    _require_embedded(settings)
    with (
        explaining_stop("The restore was stopped. Run it again with --replace."),
        clickhouse(settings, command_line(), attach=False) as reached,
        closing(Store(reached)) as store,
        closing(ProgressBars()) as bars,
    ):
        restore_store(store, file, DataFolder(settings.data_dir).unfinished, bars, replace=replaces)
    click.echo(f"Restored {file} into {store_location(settings)}.")


def _require_embedded(settings: Settings) -> None:
    """UserError for a server, which backs itself up: the message has the statements."""
    if settings.clickhouse_url is None:
        return
    name, where = settings.clickhouse_database, f" ON CLUSTER '{settings.clickhouse_cluster}'"
    everywhere = where if settings.clickhouse_cluster else ""
    first, second = (f"S3('https://BUCKET.s3.amazonaws.com/NAME/{part}', 'KEY', 'SECRET')" for part in (FIRST, SECOND))
    derived = ", ".join(f"{name}.{table}" for table in (LEDGER, HEADS, HEADS_VIEW))
    raise UserError(
        f"{store_location(settings)}: a ClickHouse server writes and restores its backups itself. Stop imports, and "
        f"send it these statements. For a disk of the server, write Disk('backups', 'NAME/{FIRST}').\n"
        f"    BACKUP TABLE {name}.{LEDGER}{everywhere} TO {first};\n"
        f"    BACKUP DATABASE {name}{everywhere} EXCEPT TABLES {derived} TO {second};\n"
        f"To restore, stop the service, drop the database {name}, send these statements, and run `analytics-service "
        "migrate`.\n"
        f"    RESTORE DATABASE {name}{everywhere} FROM {second};\n"
        f"    RESTORE TABLE {name}.{LEDGER}{everywhere} FROM {first};"
    )
