"""Errors of the commands: a line on standard error and an exit code."""

from typing import Any

import click

from analytics_service.errors import AnalyticsError
from analytics_service.logs import is_json, tell


class Commands(click.Group):
    """Commands whose AnalyticsErrors become a line on standard error and an exit code, never a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except AnalyticsError as error:
            tell(str(error), is_error=True)
            ctx.exit(error.exit_code)
        except click.ClickException as error:
            # click prints several lines.
            if not is_json():
                raise
            tell(error.format_message(), is_error=True)
            ctx.exit(error.exit_code)
