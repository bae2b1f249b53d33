"""`up` and `serve`: the commands that run until they are stopped."""

from typing import Any

import click

from analytics_service.cli.context import command_line, load_settings
from analytics_service.cli.options import (
    bind_option,
    data_dir_option,
    replace_source_option,
    source_option,
    workers_option,
)
from analytics_service.cli.signals import following_signals
from analytics_service.server.serve import serve as run_service
from analytics_service.server.up import up as run_everything


@click.command()
@bind_option
@data_dir_option
@source_option
@replace_source_option
@workers_option
def up(replace_source: bool, **overrides: Any) -> None:
    """Run everything on this machine, until Ctrl-C.

    Starts an embedded ClickHouse, unless ANALYTICS_CLICKHOUSE_URL names a server, and brings its schema up to date.
    Runs the scheduler and the HTTP service, and restarts any part that dies. Meanwhile fills in the past, if the source
    is fast. Example:

    \b
        analytics-service up --bind 127.0.0.1:8010 --data-dir ./data
    """
    with following_signals() as orders:
        run_everything(load_settings(**overrides), command_line(), orders, replace_source=replace_source)


@click.command()
@bind_option
@data_dir_option
@workers_option
def serve(**overrides: Any) -> None:
    """Run only the HTTP service, under gunicorn, until SIGTERM.

    GUNICORN_CMD_ARGS may hold more gunicorn options, except --bind. Example:

    \b
        analytics-service serve --bind 0.0.0.0:8000 --workers 4
    """
    with following_signals() as orders:
        run_service(load_settings(**overrides), command_line(), orders)
