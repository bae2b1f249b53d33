"""Errors of the commands: a line on standard error and an exit code."""

from typing import Any

import click

from analytics_service.errors import AnalyticsError


class Commands(click.Group):
    """Commands whose AnalyticsErrors become a line on standard error and an exit code, never a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except AnalyticsError as error:
            click.echo(f"Error: {error}", err=True)
            ctx.exit(error.exit_code)
