"""What the commands are made of: exit codes, options, progress bars."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import click

from analytics_service.config import parse_setting, table
from analytics_service.errors import AnalyticsError, ImportRefused, SettingError, StoreUnavailable

_USAGE = (SettingError, ImportRefused)
_AWAY = " `analytics-service status` says where it is looked for."
_Value = TypeVar("_Value")
_Command = TypeVar("_Command", bound=Callable[..., Any])


class Commands(click.Group):
    """Commands whose AnalyticsErrors are a line on standard error and an exit code, never a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; exit code 2 for what its user can correct in the call, 1 for the rest."""
        try:
            return super().invoke(ctx)
        except AnalyticsError as error:
            hint = _AWAY if isinstance(error, StoreUnavailable) else ""
            click.echo(f"Error: {error}{hint}", err=True)
            ctx.exit(2 if isinstance(error, _USAGE) else 1)


def setting_option(name: str, metavar: str) -> Callable[[_Command], _Command]:
    """An option that goes before the setting of that name."""
    row = next(row for row in table() if row.name == name)
    return click.option(
        f"--{name.replace('_', '-')}",
        name,
        type=option(lambda value: parse_setting(name, value)),
        metavar=metavar,
        help=f"{row.help}  [default: {row.variable}, or {row.default}]",
    )


def option(parse: Callable[[str], _Value]) -> Callable[[str], _Value]:
    """A click type from a parser, whose ValueError becomes the usage error's text."""

    def convert(value: str) -> _Value:
        try:
            return parse(value)
        except ValueError as error:
            raise click.BadParameter(f"{value[:80]!r} {error}.") from None

    return convert


def import_options(command: _Command) -> _Command:
    """The arguments of all imports: files, assets, unit, skip_invalid."""
    file = click.Path(exists=True, dir_okay=False, path_type=Path)
    skip = "Import the good rows; write the others to FILE.rejected.csv."
    assets = "File of the assets' addresses, symbols and decimals; needed for assets the service does not know yet."
    unit = "Unit of the files' timestamps: seconds or milliseconds."
    for decorate in (
        click.option("--skip-invalid", is_flag=True, help=skip),
        click.option("--time-unit", "unit", type=click.Choice(["s", "ms"]), default="s", show_default=True, help=unit),
        click.option("--assets", type=file, help=assets),
        click.argument("files", nargs=-1, required=True, type=file),
    ):
        command = decorate(command)
    return command


class Bars:
    """Shows each stage of an import as a progress bar."""

    def __init__(self) -> None:
        self._stage = ExitStack()
        self._bar: Any = None

    def stage(self, label: str, total: int) -> None:
        self._stage.close()
        self._bar = self._stage.enter_context(click.progressbar(length=total, label=label))

    def advance(self, count: int) -> None:
        self._bar.update(count)

    def close(self) -> None:
        self._stage.close()
