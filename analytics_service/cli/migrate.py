"""`migrate`, which brings the schema up to date, and `status` of the service."""

import os
import sys
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import click

from analytics_service.cli.context import command_line, load_settings
from analytics_service.cli.options import bind_option, data_dir_option, value_type
from analytics_service.cli.report import as_json, as_text, collect_report
from analytics_service.clickhouse.connection import Store
from analytics_service.config.parsers import user_name
from analytics_service.embedded.clickhouse import clickhouse
from analytics_service.errors import SettingError
from analytics_service.store import migrations
from analytics_service.store.researcher import make_researcher
from analytics_service.store.schema import require_all_tables


@click.command()
@data_dir_option
@click.option(
    "--researcher",
    type=value_type(user_name),
    metavar="NAME",
    help="Also make this read-only user on the server of ANALYTICS_CLICKHOUSE_URL, as in sql/researcher.sql.",
)
def migrate(researcher: str | None, **overrides: Any) -> None:
    """Bring the schema of the database up to date.

    Applies the numbered scripts that the database lacks; running it again changes nothing. Exits with 1 if a table or
    view was deleted. Example:

    \b
        ANALYTICS_CLICKHOUSE_URL=http://clickhouse:8123 analytics-service migrate
    """
    settings = load_settings(**overrides)
    if researcher and settings.clickhouse_url is None:
        raise SettingError(
            "--researcher is for a server of your own, which ANALYTICS_CLICKHOUSE_URL names. The embedded server "
            "already has the user researcher; `analytics-service status` says where its password is."
        )
    with clickhouse(settings, command_line()) as reached, closing(Store(reached, author=command_line())) as store:
        applied = migrations.migrate(store)
        require_all_tables(store)
        password = make_researcher(store, researcher) if researcher else None
    for migration in applied:
        click.echo(f"Applied {migration.name}.")
    if not applied:
        click.echo("The schema is up to date.")
    if password:
        click.echo(f"Made the user {researcher}. The password is {password}; it will not be shown again.")
    elif researcher:
        click.echo(
            f"Renewed the limits and grants of the user {researcher}; the password stays. For a new password, "
            f"`DROP USER {researcher}` and run this again."
        )


@click.command()
@click.option("--json", "is_json", is_flag=True, help="Print one JSON document.")
@bind_option
@data_dir_option
def status(is_json: bool, **overrides: Any) -> None:
    """Show the state of the service: ClickHouse, HTTP service, schedulers and datasets.

    Exits with 1 if something is wrong; lines that begin with `Problem` say what. Gaps are scheduled instants of the
    last 24 hours without a snapshot. Example:

    \b
        analytics-service status --json
    """
    settings = load_settings(**overrides)
    bind = overrides["bind"] or (settings.bind if "ANALYTICS_BIND" in os.environ else None)
    report = collect_report(settings, datetime.now(UTC), bind)
    click.echo(as_json(report.status) if is_json else as_text(report))
    if not report.status.healthy:
        sys.exit(1)
