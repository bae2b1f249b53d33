"""The root of the commands."""

import signal

import click

from analytics_service.cli.backups import backup, restore
from analytics_service.cli.errors import Commands
from analytics_service.cli.example import example
from analytics_service.cli.imports import import_group
from analytics_service.cli.jobs import jobs
from analytics_service.cli.keys import keys
from analytics_service.cli.schema import migrate, status
from analytics_service.cli.service import serve, up
from analytics_service.cli.settings import settings
from analytics_service.cli.signals import terminate


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="analytics-service", prog_name="analytics-service")
def cli() -> None:
    """Time-series analytics of a lending-and-borrowing protocol.

    Everything on this machine, with made-up data, answering on http://127.0.0.1:8000:

    \b
        analytics-service up

    Settings are environment variables; `analytics-service settings` lists them.
    """


for command in (up, serve, jobs, migrate, status, settings, import_group, backup, restore, keys, example):
    cli.add_command(command)


def main() -> None:
    """Entry point of `analytics-service`."""
    signal.signal(signal.SIGTERM, terminate)
    cli(prog_name="analytics-service")
