"""`up`: the command that runs everything until it is told to stop."""

from typing import Any

import click

from analytics_service.cli.context import command_line, load_settings
from analytics_service.cli.options import bind_option, data_dir_option, source_option, workers_option
from analytics_service.cli.signals import following_signals
from analytics_service.run.up import up as run_everything


@click.command()
@bind_option
@data_dir_option
@source_option
@workers_option
def up(**overrides: Any) -> None:
    """Run everything on this machine, until Ctrl-C.

    Starts ClickHouse (an embedded one, unless ANALYTICS_CLICKHOUSE_URL names another), brings its schema up to date,
    takes a first snapshot, then runs the scheduler and the HTTP service and restarts what dies. Example:

    \b
        analytics-service up --bind 127.0.0.1:8010 --data-dir ./data
    """
    with following_signals() as orders:
        run_everything(load_settings(**overrides), command_line(), orders)
