"""`settings`: every setting with its value."""

import click

from analytics_service.cli.context import load_settings
from analytics_service.config import table


@click.command()
def settings() -> None:
    """List all settings: environment variable, value now, default and meaning.

    Options of a command go before them. Example:

    \b
        ANALYTICS_TZ=Europe/London analytics-service settings
    """
    loaded = load_settings()
    for row in table():
        value, default = getattr(loaded, row.name), "unset" if row.default in (None, "") else row.default
        shown = "(hidden)" if "password" in row.name and value else "unset" if value in (None, "") else _text(value)
        click.echo(f"{row.variable}={shown}\n    {row.help} Default: {default}.\n")


def _text(value: object) -> str:
    """A value as a variable has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
