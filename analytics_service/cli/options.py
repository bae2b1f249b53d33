"""Options that several commands share."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from analytics_service.cli.values import value_type
from analytics_service.config.settings import parse_setting, table

_Command = TypeVar("_Command", bound=Callable[..., Any])


def setting_option(name: str, metavar: str) -> Callable[[_Command], _Command]:
    """An option that overrides the setting of that name."""
    row = next(row for row in table() if row.name == name)
    return click.option(
        f"--{name.replace('_', '-')}",
        name,
        type=value_type(lambda value: parse_setting(name, value)),
        metavar=metavar,
        help=f"{row.help}  [default: {row.variable}{f', or {row.default}' if row.default is not None else ''}]",
    )


bind_option = setting_option("bind", "ADDRESS")
data_dir_option = setting_option("data_dir", "DIR")
source_option = setting_option("source", "SPEC")
workers_option = setting_option("workers", "N")
