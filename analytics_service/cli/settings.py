"""`settings`: every setting with its value."""

import click

from analytics_service.cli.context import load_settings
from analytics_service.config.settings import table


@click.command()
def settings() -> None:
    """List all settings: environment variable, value now, default and meaning.

    A command's options override them. Example:

    \b
        ANALYTICS_TZ=Europe/London analytics-service settings
    """
    values = load_settings().to_environment()
    for row in table():
        value = values.get(row.variable)
        shown = "(hidden)" if "password" in row.name and value else value or "unset"
        click.echo(f"{row.variable}={shown}\n    {row.help} Default: {row.default or 'unset'}.\n")
