"""The root command: it lists the others and imports each when needed."""

import os
import signal
import sys
import threading
from functools import cache
from importlib import import_module
from typing import Any

import click

from analytics_service import logs
from analytics_service.cli.signals import quiet_interrupt, terminate
from analytics_service.errors import AnalyticsError

# Every command in the order of the help, as module:name.
_COMMANDS = {
    "assets": "assets:assets",
    "backup": "backups:backup",
    "example": "example:example",
    "export": "exports:export_command",
    "import": "imports:import_group",
    "jobs": "jobs:jobs",
    "keys": "keys:keys",
    "migrate": "migrate:migrate",
    "remove": "remove:remove_command",
    "restore": "backups:restore",
    "serve": "services:serve",
    "settings": "example:settings",
    "source": "sources:source",
    "status": "migrate:status",
    "up": "services:up",
}


class _Root(click.Group):
    """Imports a command only when it is run or listed, so that no command loads the libraries of another.

    Prints an AnalyticsError as a line on standard error, without a traceback, and exits with its code.
    """

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except AnalyticsError as error:
            logs.echo(str(error), is_error=True)
            ctx.exit(error.exit_code)
        except click.ClickException as error:
            # click prints several lines.
            if not logs.is_json():
                raise
            logs.echo(error.format_message(), is_error=True)
            ctx.exit(error.exit_code)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = _COMMANDS.get(cmd_name)
        return None if entry is None else _imported(entry)


@cache
def _imported(entry: str) -> click.Command:
    module, _, name = entry.partition(":")
    command: click.Command = getattr(import_module(f"{__package__}.{module}"), name)
    return command


@click.group(cls=_Root, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="analytics-service", prog_name="analytics-service")
def cli() -> None:
    """Time-series analytics of a lending-and-borrowing protocol.

    Run everything on this machine with made-up data, at http://127.0.0.1:8000:

    \b
        analytics-service up

    Settings are environment variables; `analytics-service settings` lists them. Exit code 2 means that the command, a
    setting or an imported file is wrong and that no data was written. Exit code 1 is any other failure.
    """


def main() -> None:
    logs.begin_logging(os.environ)
    signal.signal(signal.SIGTERM, terminate)
    threading.excepthook = sys.unraisablehook = quiet_interrupt
    cli(prog_name="analytics-service")
