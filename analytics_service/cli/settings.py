"""`settings`: every setting with its value."""

import os

import click

from analytics_service.cli.context import load_settings
from analytics_service.config.settings import table, without_credentials


@click.command()
def settings() -> None:
    """List all settings: environment variable, value now, default and meaning.

    A command's options override them. Example:

    \b
        ANALYTICS_TZ=Europe/London analytics-service settings
    """
    for row in table():
        value = without_credentials(os.environ.get(row.variable, row.default or ""))
        shown = "(hidden)" if "password" in row.name and value else value or "unset"
        click.echo(f"{row.variable}={shown}\n    {row.help} Default: {row.default or 'unset'}.\n")
    # What is wrong with them is said last, below the list that its message names.
    load_settings()
