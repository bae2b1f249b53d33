"""Options that several commands share, and their types."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

import click

from analytics_service.cli.context import load_settings
from analytics_service.config.settings import parse_setting, table
from analytics_service.errors import ParameterInvalid
from analytics_service.history.times import FORMS, Edge, parse_time
from analytics_service.market.instants import DAY, HOUR, MINUTE, format_instant, from_unix, unix_second

_Command = TypeVar("_Command", bound=Callable[..., Any])
_Value = TypeVar("_Value")

# The units of relative times (rule 2.16, time formats) whose length is fixed.
_UNITS = {"s": 1, "min": MINUTE, "h": HOUR, "d": DAY}


def parse_duration(value: str) -> timedelta:
    """A positive duration. ValueError names the accepted forms."""
    match = re.fullmatch(rf"(\d{{1,9}})({'|'.join(_UNITS)})", value)
    if not match or int(match[1]) == 0:
        raise ValueError("must be a positive whole number followed by s, min, h or d, such as 30s, 15min, 1h or 1d")
    return timedelta(seconds=int(match[1]) * _UNITS[match[2]])


def value_type(parse: Callable[[str], _Value]) -> Callable[[str], _Value]:
    """A click type from a parser, whose ValueError becomes a usage error."""

    def convert(value: str) -> _Value:
        try:
            return parse(value)
        except ValueError as error:
            raise click.BadParameter(f"{value[:80]!r} {error}.") from None

    return convert


def setting_option(name: str, metavar: str) -> Callable[[_Command], _Command]:
    """An option that overrides a setting."""
    row = next(row for row in table() if row.name == name)
    return click.option(
        f"--{name.replace('_', '-')}",
        name,
        type=value_type(lambda value: parse_setting(name, value)),
        metavar=metavar,
        help=f"{row.help}  [default: {row.variable}{f', or {row.default}' if row.default is not None else ''}]",
    )


TIMES = (
    f"TIME is {FORMS}. A date means its first second in --start, and its last second elsewhere. A time without Z or an "
    "offset is in the zone ANALYTICS_TZ."
)
"""The epilog of commands that take times."""


def time_option(edge: Edge, help: str, *, required: bool = False) -> Callable[[_Command], _Command]:
    """An option that takes times as the API does (rule 2.16); its value is an instant in UTC."""

    def parse(value: str) -> datetime:
        zone, now = ZoneInfo(load_settings().tz), unix_second(datetime.now(UTC))
        try:
            return from_unix(parse_time(value).second(zone, now, edge))
        except ParameterInvalid as error:
            raise ValueError(error) from None

    return click.option(f"--{edge}", type=value_type(parse), metavar="TIME", required=required, help=help)


def require_range(start: datetime, end: datetime) -> None:
    """UsageError if `start` is later than `end`."""
    if start > end:
        raise click.UsageError(f"--start {format_instant(start)} is later than --end {format_instant(end)}.")


def past_end(last: datetime, now: datetime) -> datetime:
    """The exclusive end of a range whose last second is --end, or now if that is earlier."""
    return min(last, now).replace(microsecond=0) + timedelta(seconds=1)


def require_past(option: str, instant: datetime, now: datetime) -> None:
    """UsageError for an instant in the future: its snapshot would hide all others until then."""
    if instant > now:
        raise click.UsageError(f"{option} {format_instant(instant)} is in the future; now is {format_instant(now)}.")


bind_option = setting_option("bind", "ADDRESS")
data_dir_option = setting_option("data_dir", "DIR")
source_option = setting_option("source", "SPEC")
replace_source_option = click.option(
    "--replace-source",
    is_flag=True,
    help="Make --source the source of the store from now on; needed once. Stored data stays.",
)
workers_option = setting_option("workers", "N")
