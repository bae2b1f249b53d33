"""Settings: one table of name, default and help, read from environment variables ANALYTICS_*."""

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields
from functools import cache
from importlib import resources
from importlib.metadata import PackageNotFoundError, entry_points, version
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import platformdirs

from analytics_service.errors import SettingError

PREFIX = "ANALYTICS_"
# The group of entry points that sources are registered under.
SOURCES = "analytics_service.sources"
# Variables that Kubernetes sets for the services of a cluster; their names may begin like those of our settings.
_SERVICE_LINK = re.compile(
    r"_(SERVICE_(HOST|PORT(_\w+)?)=|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR)=|=\w+://)|=\w+://))"
)
# Variables that only the test suite reads; they are not misspelt settings.
_OTHER_USES = {"ANALYTICS_TEST_DATA"}
_NONE = "none"
_HOST = re.compile(r"[^\s%]+")
# Browsers send origins like this, in lower case and without a path (RFC 6454).
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/?#@A-Z]+")
RESEARCH = "research"
"""Begins the names of the databases that researchers may write (rule 9.3)."""
_DATABASES = frozenset({"information_schema", "service_log", "system"})


def text(value: str) -> str:
    """Any non-empty text."""
    if not value:
        raise ValueError("must not be empty")
    return value


def path(value: str) -> Path:
    """A path; `~` is the user's home."""
    try:
        return Path(text(value)).expanduser()
    except RuntimeError:
        raise ValueError("must not begin with ~ and a user that there is not") from None


def origins(value: str) -> str:
    """`*`, or origins separated by commas."""
    if value != "*" and not all(_ORIGIN.fullmatch(one.strip()) for one in value.split(",")):
        raise ValueError(
            "must be *, or origins separated by commas, such as https://a.example,http://localhost:3000: in lower "
            "case, and without a slash at the end"
        )
    return value


def flag(value: str) -> bool:
    """`true` or `false`."""
    if value not in ("true", "false"):
        raise ValueError("must be true or false")
    return value == "true"


@dataclass(frozen=True, slots=True)
class Whole:
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
    """The name of a zone or link of the IANA database."""
    if value not in _zones():
        raise ValueError("must be the name of an IANA time zone, such as America/New_York")
    return value


@cache
def _zones() -> frozenset[str]:
    """The names are the same on every machine. The system's folder of zones has other files too, such as localtime."""
    listed = resources.files("tzdata").joinpath("zones").read_text("utf-8")
    # Factory is what a machine has before a zone is set.
    return frozenset(listed.split()) - {"Factory"}


def server_url(value: str) -> str:
    """An http(s) URL of a host and a port."""
    try:
        parts = urlsplit(value)
        complete = parts.scheme in ("http", "https") and _HOST.fullmatch(parts.hostname or "") and parts.port
    except ValueError:
        complete = False
    if not complete:
        raise ValueError("must look like http://host:8123 or https://host:8443")
    if parts.username or parts.password or parts.query or parts.fragment or parts.path not in ("", "/"):
        raise ValueError("must hold no user, password, path or query; they have settings of their own")
    return value.rstrip("/")


def host_and_port(value: str) -> str:
    """`host:port` to listen on; `[::1]:port` for IPv6."""
    found = re.fullmatch(r"(?:\[[0-9A-Fa-f:.]+\]|[^\s:/@\[\]]+):([0-9]{1,5})", value)
    if not found or not 0 < int(found[1]) < 65536:
        raise ValueError("must be host:port, such as 127.0.0.1:8000")
    return value


def port_of(bind: str) -> int:
    """The port of `host:port`."""
    return int(bind.rpartition(":")[2])


def bind_or_none(value: str) -> str:
    """As host_and_port, or `none`."""
    if value == _NONE:
        return value
    try:
        return host_and_port(value)
    except ValueError:
        raise ValueError("must be host:port, such as 127.0.0.1:8001, or none") from None


def source(value: str) -> str:
    """The spec of a snapshot source: a built-in one, or one that an installed package provides."""
    if re.fullmatch(r"none|simulated(:[^\s:]{1,64})?", value):
        return value
    provided = {entry.name for entry in entry_points(group=SOURCES)} - {"none", "simulated"}
    if value.partition(":")[0] not in provided:
        installed = f", or an installed one: {', '.join(sorted(provided))}" if provided else ""
        raise ValueError(f"must be simulated, simulated:<seed> or none{installed}")
    return value


def database_name(value: str) -> str:
    """A database name that belongs to nobody else."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", value):
        raise ValueError("must be letters, digits and underscores, not beginning with a digit")
    if value.startswith(RESEARCH) or value.lower() in _DATABASES:
        raise ValueError(
            "must not be information_schema, service_log or system, which have other uses, nor begin with "
            f"{RESEARCH}, because researchers may drop such databases"
        )
    return value


class Rate(NamedTuple):
    """So many requests in so many seconds, written `600/60`."""

    requests: int
    seconds: int

    def __str__(self) -> str:
        return f"{self.requests}/{self.seconds}"


def rate(value: str) -> Rate:
    """Requests and seconds, `600/60`."""
    found = re.fullmatch(r"([0-9]{1,7})/([0-9]{1,5})", value)
    if not found or not 1 <= int(found[1]) <= 1_000_000 or not 1 <= int(found[2]) <= 86_400:
        raise ValueError("must be requests/seconds, such as 600/60, of at most 1,000,000 requests and 86,400 seconds")
    return Rate(int(found[1]), int(found[2]))


class Networks(tuple[IPv4Network | IPv6Network, ...]):
    """Networks, written with commas between them; an address is one of its own."""

    __slots__ = ()

    def __str__(self) -> str:
        return ",".join(map(str, self))


def networks(value: str) -> Networks:
    """Addresses and networks separated by commas."""
    try:
        return Networks(ip_network(part.strip()) for part in value.split(","))
    except ValueError:
        raise ValueError(
            "must be addresses or networks separated by commas, such as 10.0.0.1,10.1.0.0/16; an address within a "
            "network, such as 10.1.2.3/16, is neither"
        ) from None


def log_level(value: str) -> str:
    """A level of the standard library's logging."""
    if value not in ("debug", "info", "warning", "error"):
        raise ValueError("must be debug, info, warning or error")
    return value


def log_format(value: str) -> str:
    """A form of log lines."""
    if value not in ("text", "json"):
        raise ValueError("must be text or json")
    return value


# Seconds between the snapshots of a job.
_interval = Whole(1, 86_400)


def _setting(default: Any, parse: Callable[[str], Any], help: str) -> Any:
    make = default if callable(default) else lambda: default
    if isinstance(parse, Whole):
        help = f"{help} A whole number {parse}."
    return field(default_factory=make, metadata={"default": make, "parse": parse, "help": help})


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings, parsed. Each is read from ANALYTICS_<NAME>; a SettingError names the one that is wrong."""

    bind: str = _setting("127.0.0.1:8000", host_and_port, "Address the HTTP service listens on.")
    metrics_bind: str = _setting(
        "127.0.0.1:8001", bind_or_none, "Address that operators' paths, such as /metrics, are at; none turns them off."
    )
    workers: int = _setting(2, Whole(1, 512), "gunicorn worker processes.")
    threads: int = _setting(
        16, Whole(1, 256), "Threads of each worker. Half of them may wait for ClickHouse at the same time."
    )
    source: str | None = _setting(
        None,
        source,
        "Where jobs take snapshots from: simulated, simulated:<seed>, one of an installed package, or none. "
        "Unset: where the store's data is from.",
    )
    source_timeout: int = _setting(
        300, Whole(1, 86_400), "Seconds that the source may take for one answer; then there is no snapshot."
    )
    data_dir: Path = _setting(
        lambda: Path(platformdirs.user_data_dir("analytics-service", appauthor=False)),
        path,
        "Folder of the embedded ClickHouse: its data, logs and password.",
    )
    clickhouse_url: str | None = _setting(
        None, server_url, "ClickHouse server to use, http(s)://host:port. Unset: an embedded one."
    )
    clickhouse_user: str = _setting("default", text, "User on that server.")
    clickhouse_password: str = _setting("", str, "Password on that server.")
    clickhouse_database: str = _setting("analytics", database_name, "Database of the service's tables.")
    clickhouse_ca_cert: str | None = _setting(
        None, text, "File of the certificate authority that signed that server's certificate."
    )
    clickhouse_verify: bool = _setting(True, flag, "Whether that server's certificate is verified.")
    query_timeout: int = _setting(
        20, Whole(1, 600), "Seconds a query may run; the client waits 5 more, gunicorn 15 more."
    )
    history_memory: int = _setting(
        128,
        Whole(0, 65_536),
        "MiB of history that each worker may keep in memory; 0: it reads all from ClickHouse.",
    )
    answer_memory: int = _setting(
        32, Whole(0, 65_536), "MiB of rendered answers that each worker may keep; 0: each is rendered anew."
    )
    tz: str = _setting("UTC", zone, "Zone of history buckets when a request names none.")
    cors_origins: str = _setting("*", origins, "Origins that browsers may call from: * or a comma-separated list.")
    api_keys_file: Path | None = _setting(
        None,
        path,
        "File of the API keys that /api/v1 asks for; `keys add` makes it. Unset: none are needed.",
    )
    rate_limit: Rate | None = _setting(
        None, rate, "Requests/seconds that each client of /api/v1 is allowed, such as 600/60. Unset: no limit."
    )
    trusted_proxies: Networks | None = _setting(
        None,
        networks,
        "Addresses or networks of proxies whose X-Forwarded-For is believed, separated by commas.",
    )
    prices_every: int = _setting(60, _interval, "Seconds between snapshots of prices.")
    rates_every: int = _setting(60, _interval, "Seconds between snapshots of lend and borrow rates.")
    markets_every: int = _setting(60, _interval, "Seconds between snapshots of markets and their rules.")
    loans_every: int = _setting(300, _interval, "Seconds between snapshots of events, loans and liquidations.")
    ptoken_every: int = _setting(300, _interval, "Seconds between snapshots of the protocol token.")
    positions_every: int = _setting(300, _interval, "Seconds between snapshots of all positions.")
    routes_every: int = _setting(3600, _interval, "Seconds between snapshots of swap routes.")
    raw_days: int | None = _setting(
        None,
        # Workers read single observations of the last two days without asking whether they are kept.
        Whole(7, 36_500),
        "Days that single observations of prices, rates, loans and liquidations are kept, in whole UTC months. "
        "Unset: for ever.",
    )
    log_level: str = _setting("info", log_level, "Least level that is logged: debug, info, warning or error.")
    log_format: str = _setting("text", log_format, "Form of log lines: text, or json for an object in each line.")
    access_log: bool = _setting(False, flag, "Whether each request of the main bind is logged.")

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], **overrides: object) -> "Settings":
        """Settings from ANALYTICS_* variables; `overrides` that are not None (command-line options) win."""
        known = {PREFIX + f.name.upper(): f for f in fields(cls)}
        values: dict[str, object] = {}
        for variable in sorted(v for v in environ if v.startswith(PREFIX) and not _is_of_others(v, environ[v])):
            if variable not in known:
                raise SettingError(_unknown(variable, list(known)))
            values[known[variable].name] = _parse(known[variable], variable, environ[variable])
        values.update({key: value for key, value in overrides.items() if value is not None})
        settings = cls(**values)  # type: ignore[arg-type]
        if port_of(settings.bind) == settings.metrics_port:
            raise SettingError(
                f"ANALYTICS_METRICS_BIND={settings.metrics_bind} is not usable: "
                f"it needs another port than ANALYTICS_BIND={settings.bind}, or none."
            )
        return settings

    @property
    def metrics_port(self) -> int | None:
        """The port that operators' paths are at, which is not that of `bind`; None where they are off."""
        return None if self.metrics_bind == _NONE else port_of(self.metrics_bind)

    @property
    def binds(self) -> tuple[str, ...]:
        """Every address that the HTTP service listens on."""
        return (self.bind,) if self.metrics_port is None else (self.bind, self.metrics_bind)

    @property
    def client_timeout(self) -> int:
        """Seconds the client waits for a query, whose own limit comes first."""
        return self.query_timeout + 5

    @property
    def graceful_timeout(self) -> int:
        """Seconds that workers have for the answers under way when they are to end."""
        return self.query_timeout + 10

    @property
    def worker_timeout(self) -> int:
        """Seconds after which gunicorn takes a silent worker to hang."""
        return self.query_timeout + 15

    def to_environment(self) -> dict[str, str]:
        """The same settings as ANALYTICS_* variables, for child processes."""
        values = {row.variable: _written(getattr(self, row.name)) for row in table()}
        return {variable: value for variable, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting, as `--help` and the README show it; `default` is text as in its variable, None if unset."""

    name: str
    variable: str
    default: str | None
    help: str


def table() -> Iterator[SettingRow]:
    """Every setting with its variable, default and help, in the order in which they are shown."""
    for f in fields(Settings):
        yield SettingRow(f.name, PREFIX + f.name.upper(), _written(f.metadata["default"]()), f.metadata["help"])


def _written(value: object) -> str | None:
    """A value as a variable holds it."""
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def service_version() -> str:
    """The version of this service; empty when it runs from a checkout that is not installed."""
    try:
        return version("analytics-service")
    except PackageNotFoundError:
        return ""


def parse_setting(setting: str, value: str) -> Any:
    """One setting's value from text. ValueError says what is allowed."""
    return {f.name: f for f in fields(Settings)}[setting].metadata["parse"](value)


def _parse(setting: "Field[Any]", variable: str, value: str) -> object:
    try:
        return setting.metadata["parse"](value)
    except ValueError as error:
        shown = "***" if "password" in setting.name else repr(value[:80])
        raise SettingError(f"{variable}={shown} is not usable: it {error}.") from None


def _is_of_others(variable: str, value: str) -> bool:
    return variable in _OTHER_USES or _SERVICE_LINK.search(f"{variable}={value}") is not None


def _unknown(variable: str, known: list[str]) -> str:
    names = [one.removeprefix(PREFIX) for one in known]
    near = difflib.get_close_matches(variable.removeprefix(PREFIX), names, n=1)
    hint = f" Did you mean {PREFIX}{near[0]}?" if near else ""
    return f"{variable} is not a setting.{hint} `analytics-service settings` lists them all."
