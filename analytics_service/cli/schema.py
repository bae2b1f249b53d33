"""`migrate` and `status`: the database's schema, and how the service's data is."""

import sys
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import click

from analytics_service.cli.context import command_line, load_settings
from analytics_service.cli.options import data_dir_option
from analytics_service.cli.report import report
from analytics_service.embedded.clickhouse import clickhouse
from analytics_service.store import migrations
from analytics_service.store.assets import ids_in_several_cases
from analytics_service.store.connection import Store


@click.command()
@data_dir_option
def migrate(**overrides: Any) -> None:
    """Bring the schema of the database up to date.

    Applies the numbered scripts that the database has not seen; running it again changes nothing. Names asset ids that
    are stored in several cases. Example:

    \b
        ANALYTICS_CLICKHOUSE_URL=http://clickhouse:8123 analytics-service migrate
    """
    with clickhouse(load_settings(**overrides), command_line()) as reached, closing(Store(reached)) as store:
        applied = migrations.migrate(store)
        doubled = ids_in_several_cases(store)
    for migration in applied:
        click.echo(f"Applied {migration.name}.")
    if not applied:
        click.echo("The schema is up to date.")
    for spellings in doubled:
        click.echo(
            f"One asset id is stored in several cases: {', '.join(spellings)}. Each has rows of its own. Import them "
            "all under one case, and delete the rows of the others."
        )


@click.command()
@data_dir_option
def status(**overrides: Any) -> None:
    """Say where ClickHouse is, whether its schema is up to date, and how old the newest data is.

    Exit code 1 when ClickHouse does not answer or migrations are pending. Example:

    \b
        analytics-service status
    """
    lines, healthy = report(load_settings(**overrides), datetime.now(UTC))
    click.echo("\n".join(lines))
    if not healthy:
        sys.exit(1)
