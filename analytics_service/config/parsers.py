"""Parsers of setting values. The message of a ValueError says what is allowed."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from importlib.metadata import entry_points
from pathlib import Path
from typing import TypeVar

_T = TypeVar("_T")
_Word = TypeVar("_Word", bound=str)
# The group of entry points under which packages register sources.
SOURCES = "analytics_service.sources"
NONE = "none"
# The key in a header `Authorization: Bearer KEY`.
BEARER = re.compile(r"[A-Za-z0-9._~+/-]+=*")
# The pattern of a whole number of any size. Python refuses to convert thousands of digits, even zeros.
INTEGER, MAX_DIGITS = "-?[0-9]+", 40
_LABEL = r"\w(?:[\w-]*\w)?"
# A host name, which may have underscores as containers' names do, or an IP address as in URLs; and a port.
_AUTHORITY = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*\.?|\[[0-9A-Fa-f:.]+\]):[0-9]+")
_UNIX = "unix:"
# Linux keeps 107 bytes of a socket's path.
_SOCKET = re.compile(rf"{_UNIX}/[!-9;-~]{{1,106}}")
# The path before /api/v1.
_BASE = re.compile(r"(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*/?(?<!/api/v1)(?<!/api/v1/)")
# Browsers send origins like this, in lower case and without a path (RFC 6454).
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/?#@*A-Z]+")
_DATABASE = r"[A-Za-z_][A-Za-z0-9_]{0,63}"
_DATABASES = frozenset({"information_schema", "system"})


def non_empty(value: str) -> str:
    if not value:
        raise ValueError("must not be empty")
    return value


def path(value: str) -> Path:
    """A path; `~` is the user's home."""
    try:
        return Path(non_empty(value)).expanduser()
    except RuntimeError:
        raise ValueError("must not begin with ~ and an unknown user") from None


def origins(value: str) -> str:
    if value != "*" and not all(_ORIGIN.fullmatch(origin.strip()) for origin in value.split(",")):
        raise ValueError(
            "must be *, or a comma-separated list of origins such as https://a.example,http://localhost:3000, in lower "
            "case, without wildcards and without a slash at the end"
        )
    return value


def flag(value: str) -> bool:
    if value not in ("true", "false"):
        raise ValueError("must be true or false")
    return value == "true"


@dataclass(frozen=True, slots=True)
class WholeNumber:
    """A parser of whole numbers from `low` to `high`."""

    low: int
    high: int

    def __str__(self) -> str:
        return f"from {self.low} to {self.high}"

    def __call__(self, value: str) -> int:
        if not re.fullmatch(r"[0-9]{1,9}", value) or not self.low <= int(value) <= self.high:
            raise ValueError(f"must be a whole number {self}")
        return int(value)


def zone(value: str) -> str:
    """The name of an IANA time zone, given in any case. A space means a plus sign that a query did not encode."""
    lower = value.lower()
    name = _zones().get(lower.replace(" ", "+"))
    if name is None:
        like = _zones().get(lower.replace(" ", "_"), "America/New_York")
        raise ValueError(f"must be the name of an IANA time zone, such as {like}")
    return name


@cache
def _zones() -> dict[str, str]:
    """Zone names by their lower-case form, from tzdata: it has the same names on every machine, unlike the system's
    folder of zones."""
    listed = resources.files("tzdata").joinpath("zones").read_text("utf-8")
    # Factory is the zone of a machine whose zone was never set.
    return {name.lower(): name for name in listed.split() if name != "Factory"}


def server_url(value: str) -> str:
    """An http(s) URL of a host and a port."""
    scheme, _, authority = value.rstrip("/").partition("://")
    if scheme.lower() not in ("http", "https") or not _has_port(authority):
        raise ValueError(
            "must be like http://host:8123 or https://[::1]:8443, without user, password, path or query, which have "
            "their own settings"
        )
    return value.rstrip("/")


def _has_port(authority: str) -> bool:
    """Whether a text is a host and a port."""
    return _AUTHORITY.fullmatch(authority) is not None and 0 < int(authority.rpartition(":")[2]) < 65536


def cluster_name(value: str) -> str:
    if not re.fullmatch(r"[\w.-]+", value, re.ASCII):
        raise ValueError("must consist of letters, digits, _, . and -")
    return value


def bind(value: str) -> str:
    """An address to listen on: `host:port`, `[::1]:port` for IPv6, or `unix:/path`."""
    match = re.fullmatch(r"(?:\[[0-9A-Fa-f:.]+\]|[^\s:/@\[\]]+):([0-9]{1,5})", value)
    if not (match and 0 < int(match[1]) < 65536) and not _SOCKET.fullmatch(value):
        raise ValueError("must be host:port, such as 127.0.0.1:8000, or unix:/path")
    return value


def endpoint(bind: str) -> int | str:
    """The port of `host:port`, or the path of `unix:/path`."""
    last = bind.rpartition(":")[2]
    return last if bind.startswith(_UNIX) else int(last)


def bind_or_none(value: str) -> str:
    if value == NONE:
        return value
    try:
        return bind(value)
    except ValueError as error:
        raise ValueError(f"{error}, or none") from None


def source(value: str) -> str:
    """The spec of a built-in source, or of a source in an installed package."""
    if re.fullmatch(rf"none|simulated(:[^\s:]{{1,64}})?|sql:{_DATABASE}", value):
        return value
    if value.startswith(("http://", "https://")):
        return _deployment(value)
    provided = {entry.name for entry in entry_points(group=SOURCES)} - {"none", "simulated", "sql"}
    if value.partition(":")[0] not in provided:
        installed = f", or an installed one: {', '.join(sorted(provided))}" if provided else ""
        raise ValueError(f"must be simulated, simulated:<seed>, https://<host>, sql:<database> or none{installed}")
    return value


def _deployment(value: str) -> str:
    """The URL of a deployment of this service, up to /api/v1."""
    authority, slash, base = value.partition("://")[2].partition("/")
    if not (_has_port(authority) or _has_port(f"{authority}:1")) or not _BASE.fullmatch(slash + base):
        raise ValueError(
            "must look like https://host or https://host:8443/base, without user, password, query or /api/v1 at the end"
        )
    return value.rstrip("/")


def api_key(value: str) -> str:
    if not BEARER.fullmatch(value):
        raise ValueError("must be letters, digits and . _ ~ + / -, as printed by `keys add`")
    return value


def user_name(value: str) -> str:
    if not re.fullmatch(_DATABASE, value):
        raise ValueError("must be letters, digits and underscores, not beginning with a digit")
    return value


def database_name(value: str) -> str:
    """The name of a database that ClickHouse and the service do not use themselves."""
    if value.lower() in _DATABASES:
        raise ValueError("must not be information_schema or system, which have other uses")
    return user_name(value)


@dataclass(frozen=True, slots=True)
class Intervals:
    """Seconds between the snapshots of each job, written `prices=60,rates=60`; `JOBS` lists the jobs."""

    prices: int = 60
    rates: int = 60
    markets: int = 60
    loans: int = 300
    ptoken: int = 300
    positions: int = 300
    routes: int = 3_600

    def __str__(self) -> str:
        return ",".join(f"{field.name}={getattr(self, field.name)}" for field in fields(self))


_INTERVAL = WholeNumber(1, 86_400)


def intervals(value: str) -> Intervals:
    names = [field.name for field in fields(Intervals)]
    parsed = {}
    for part in value.split(","):
        name, _, seconds = map(str.strip, part.partition("="))
        if name not in names or name in parsed:
            raise ValueError(
                f"must be jobs and seconds, such as prices=15,loans=600. Jobs are {', '.join(names)}, each at most once"
            )
        parsed[name] = _INTERVAL(seconds)
    return Intervals(**parsed)


def named(choices: Mapping[str, _T]) -> Callable[[str], _T]:
    """A parser of these names."""

    def parse(value: str) -> _T:
        if value not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}")
        return choices[value]

    return parse


def one_of(*words: _Word) -> Callable[[str], _Word]:
    """A parser that allows only these words."""
    return named({word: word for word in words})
