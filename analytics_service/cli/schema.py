"""`migrate` and `status`: the database's schema, and the state of the service."""

import os
import sys
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import click

from analytics_service.cli.context import command_line, load_settings
from analytics_service.cli.options import bind_option, data_dir_option
from analytics_service.cli.report import collect_report
from analytics_service.cli.report_forms import as_json, as_text
from analytics_service.embedded.clickhouse import clickhouse
from analytics_service.errors import SchemaError
from analytics_service.store import migrations
from analytics_service.store.assets import ids_in_several_cases
from analytics_service.store.connection import Store
from analytics_service.store.schema import missing, missing_message


@click.command()
@data_dir_option
def migrate(**overrides: Any) -> None:
    """Bring the schema of the database up to date.

    Applies the numbered scripts that the database has not seen; running it again changes nothing. Names asset ids that
    are stored in several cases. Exit code 1 when a table or view is missing that was made before. Example:

    \b
        ANALYTICS_CLICKHOUSE_URL=http://clickhouse:8123 analytics-service migrate
    """
    with clickhouse(load_settings(**overrides), command_line()) as reached, closing(Store(reached)) as store:
        applied = migrations.migrate(store)
        if absent := missing(store):
            raise SchemaError(missing_message(absent))
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
@click.option("--json", "is_json", is_flag=True, help="Print one JSON document.")
@bind_option
@data_dir_option
def status(is_json: bool, **overrides: Any) -> None:
    """Show the state of every part of the service: ClickHouse, HTTP service, scheduler, families of data, tables.

    Exit code 1 when something is wrong; the lines `Problem` say what. Gaps are the scheduled instants of the last 24
    hours that have no snapshot. Example:

    \b
        analytics-service status --json
    """
    settings = load_settings(**overrides)
    bind = overrides["bind"] or (settings.bind if "ANALYTICS_BIND" in os.environ else None)
    report = collect_report(settings, datetime.now(UTC), bind)
    click.echo(as_json(report) if is_json else as_text(report))
    if not report.healthy:
        sys.exit(1)
