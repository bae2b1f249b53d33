"""The options that all commands of imports share."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from analytics_service.cli.options import data_dir_option, value_type
from analytics_service.imports.tables import TableRules
from analytics_service.imports.times import ORDERS, UNITS, parse_zone

_ORDER = "In 01/02/2026 and 01/02/26; ymd: 20260201."
_Command = TypeVar("_Command", bound=Callable[..., Any])


def _encoding(name: str) -> str:
    try:
        "".encode(name)
    except LookupError:
        raise ValueError("must be an encoding of text, such as latin-1, cp1252 or utf-16") from None
    return name


def table_rules(options: Mapping[str, Any], time: str | None) -> TableRules:
    """What the shared options say about tables; `time` names the column of times, or several."""
    columns = [name.strip() for name in (options["columns"] or "").split(",")] if options["columns"] else ()
    return TableRules(columns, options["skip"], options["rows"], options["encoding"], time)


def import_options(*options: Callable[..., Any]) -> Callable[[_Command], _Command]:
    """The argument `files`, options of a command, and those of all imports: columns, skip, rows, encoding, zone,
    time_unit, date_order, assets, skip_invalid, dry_run and data_dir."""
    file = click.Path(exists=True, dir_okay=False, path_type=Path)
    shared: tuple[Callable[..., Any], ...] = (
        click.option("--columns", metavar="NAMES", help="All names, without a header: time,open,..."),
        click.option("--skip", type=click.IntRange(0), default=0, metavar="N", help="Leave out the first N lines."),
        click.option("--rows", metavar="PATH", help="Rows of JSON (data.prices), or a sheet."),
        click.option("--encoding", type=value_type(_encoding), metavar="NAME", help="Of text, such as latin-1."),
        click.option(
            "--zone", type=value_type(parse_zone), metavar="ZONE", help="Zone or offset of times without one."
        ),
        click.option("--time-unit", type=click.Choice(list(UNITS)), help="Unit of unix times, whatever their size."),
        click.option("--date-order", type=click.Choice(list(ORDERS)), help=_ORDER),
        click.option("--assets", type=file, help="File that describes new assets."),
        click.option("--skip-invalid", is_flag=True, help="Bad rows go to FILE.rejected.csv."),
        click.option("--dry-run", is_flag=True, help="Show what would be written; stop there."),
        data_dir_option,
    )

    def decorated(command: _Command) -> _Command:
        for decorate in reversed((click.argument("files", nargs=-1, required=True), *options, *shared)):
            command = decorate(command)
        return command

    return decorated
