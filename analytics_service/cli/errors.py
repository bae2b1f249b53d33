"""Errors of the commands: a line on standard error and an exit code."""

from typing import Any

import click

from analytics_service.errors import (
    AnalyticsError,
    BackupRefused,
    ExportRefused,
    ImportRefused,
    SettingError,
    SnapshotRefused,
    SourceRefused,
)

_USAGE = (SettingError, SnapshotRefused, SourceRefused, ImportRefused, ExportRefused, BackupRefused)


class Commands(click.Group):
    """Commands whose AnalyticsErrors become a line on standard error and an exit code, never a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. Exit code 2 means that the user can correct the call; 1 is for everything else."""
        try:
            return super().invoke(ctx)
        except AnalyticsError as error:
            click.echo(f"Error: {error}", err=True)
            ctx.exit(2 if isinstance(error, _USAGE) else 1)
