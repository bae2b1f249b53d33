"""The options that all commands of imports share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from analytics_service.cli.options import data_dir_option, value_type
from analytics_service.imports.times import ORDERS, UNITS, parse_zone

_ORDER = "Order in dates as 01/02/2026 or 01/02/26; ymd also reads numbers such as 20260201 as dates."
_Command = TypeVar("_Command", bound=Callable[..., Any])


def import_options(*options: Callable[..., Any]) -> Callable[[_Command], _Command]:
    """The argument `files`, options of a command, and those of all imports: zone, time_unit, date_order, assets,
    skip_invalid, dry_run and data_dir."""
    file = click.Path(exists=True, dir_okay=False, path_type=Path)
    shared: tuple[Callable[..., Any], ...] = (
        click.option(
            "--zone", type=value_type(parse_zone), metavar="ZONE", help="Zone or offset of times that name none."
        ),
        click.option("--time-unit", type=click.Choice(list(UNITS)), help="Unit of unix times, whatever their size."),
        click.option("--date-order", type=click.Choice(list(ORDERS)), help=_ORDER),
        click.option("--assets", type=file, help="File of addresses, symbols and decimals of assets."),
        click.option(
            "--skip-invalid", is_flag=True, help="Import the good rows; write the others to FILE.rejected.csv."
        ),
        click.option("--dry-run", is_flag=True, help="Show what was understood and what would be written; stop there."),
        data_dir_option,
    )

    def decorated(command: _Command) -> _Command:
        for decorate in reversed((click.argument("files", nargs=-1, required=True), *options, *shared)):
            command = decorate(command)
        return command

    return decorated
