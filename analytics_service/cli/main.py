"""The root of the commands."""

import signal
from functools import cache

import click

from analytics_service.cli.errors import Commands
from analytics_service.cli.signals import interrupt, terminate
from analytics_service.processes.memory import imported_for_good

# Every command in the order of the help, with its module in this package and its name there.
_COMMANDS = {
    "backup": "backups:backup",
    "example": "example:example",
    "import": "imports:import_group",
    "jobs": "jobs:jobs",
    "keys": "keys:keys",
    "migrate": "schema:migrate",
    "restore": "backups:restore",
    "serve": "serve:serve",
    "settings": "settings:settings",
    "status": "schema:status",
    "up": "up:up",
}


class _Root(Commands):
    """Imports a command when it is run or listed, so that none waits for libraries which only others use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, if there is one."""
        place = _COMMANDS.get(cmd_name)
        return None if place is None else _imported(place)


@cache
def _imported(place: str) -> click.Command:
    module, _, name = place.partition(":")
    command: click.Command = getattr(imported_for_good(f"{__package__}.{module}"), name)
    return command


@click.group(cls=_Root, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="analytics-service", prog_name="analytics-service")
def cli() -> None:
    """Time-series analytics of a lending-and-borrowing protocol.

    Everything on this machine, with made-up data, answering on http://127.0.0.1:8000:

    \b
        analytics-service up

    Settings are environment variables; `analytics-service settings` lists them.
    """


def main() -> None:
    """Entry point of `analytics-service`."""
    signal.signal(signal.SIGTERM, terminate)
    # What a shell starts in the background may be told to ignore Ctrl-C.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    cli(prog_name="analytics-service")
