"""The options that imports of histories and of events share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from analytics_service.cli.options import data_dir_option, value_type

_Command = TypeVar("_Command", bound=Callable[..., Any])


def parse_separator(text: str) -> str:
    """A separator of fields; \\t is a tab."""
    if text.replace(r"\t", "\t") not in (",", ";", "\t", "|"):
        raise ValueError(r"must be one of , ; | and \t")
    return text.replace(r"\t", "\t")


def import_options(*options: Callable[..., Any]) -> Callable[[_Command], _Command]:
    """The argument `files`, options of a command, and those of all imports: separator, assets, skip_invalid, dry_run
    and data_dir."""
    file = click.Path(exists=True, dir_okay=False, path_type=Path)
    shared: tuple[Callable[..., Any], ...] = (
        click.option(
            "--separator", type=value_type(parse_separator), default=",", metavar="MARK", help=r"Of CSV: , ; | or \t."
        ),
        click.option("--assets", type=file, help="File that describes new assets."),
        click.option("--skip-invalid", is_flag=True, help="Leave out bad rows, and show the first."),
        click.option("--dry-run", is_flag=True, help="Show what would be written; stop there."),
        data_dir_option,
    )

    def decorated(command: _Command) -> _Command:
        for decorate in reversed((click.argument("files", nargs=-1, required=True), *options, *shared)):
            command = decorate(command)
        return command

    return decorated


def plural(count: int) -> str:
    """The unit of a number of rows."""
    return "row" if count == 1 else "rows"
