"""`serve`: the command that runs the HTTP service until it is told to stop."""

from typing import Any

import click

from analytics_service.cli.context import command_line, load_settings
from analytics_service.cli.options import bind_option, data_dir_option, workers_option
from analytics_service.cli.signals import following_signals
from analytics_service.run.serve import serve as run_service


@click.command()
@bind_option
@data_dir_option
@workers_option
def serve(**overrides: Any) -> None:
    """Run the HTTP service only, under gunicorn, until SIGTERM.

    GUNICORN_CMD_ARGS may hold further options of gunicorn, except --bind. Example:

    \b
        analytics-service serve --bind 0.0.0.0:8000 --workers 4
    """
    with following_signals() as orders:
        run_service(load_settings(**overrides), command_line(), orders)
