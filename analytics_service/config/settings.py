"""Settings: one table of name, default and help, read from environment variables ANALYTICS_*."""

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import platformdirs

from analytics_service.config import parsers
from analytics_service.errors import SettingError

PREFIX = "ANALYTICS_"
# Threads of a worker. Those that wait cost little, and hundreds of clients that wait for pages leave some for others.
WORKER_THREADS = 256
# Variables that Kubernetes sets for the services of a cluster. Their names may have the prefix of our settings.
_SERVICE_LINK = re.compile(
    r"_(SERVICE_(HOST|PORT(_\w+)?)=|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR)=|=\w+://)|=\w+://))"
)
# Variables that only the test suite reads. They are no misspelt settings.
_OTHER_USES = {"ANALYTICS_TEST_DATA"}
# A user and a password in a URL. They end at its last @, because a password may hold an @ that is not encoded.
_CREDENTIALS = re.compile(r"(\w+://)?.*@", re.DOTALL)


def _setting(default: Any, parse: Callable[[str], Any], help: str, *, secret: bool = False) -> Any:
    make = default if callable(default) else lambda: default
    if isinstance(parse, parsers.WholeNumber):
        help = f"{help} A whole number {parse}."
    metadata = {"default": make, "parse": parse, "help": help, "secret": secret}
    return field(default_factory=make, repr=not secret, metadata=metadata)


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings, parsed. Each is read from ANALYTICS_<NAME>. A SettingError names the variable that is wrong."""

    bind: str = _setting(
        "127.0.0.1:8000", parsers.bind, "Address the HTTP service listens on: host:port, or unix:/path."
    )
    metrics_bind: str = _setting(
        "127.0.0.1:8001",
        parsers.bind_or_none,
        "Address of operators' paths, such as /metrics, which ask for no key; none turns them off.",
    )
    workers: int = _setting(
        2, parsers.WholeNumber(1, 512), "gunicorn worker processes; more help if requests are slow and processors idle."
    )
    source: str | None = _setting(
        None,
        parsers.source,
        "Where jobs take snapshots from: simulated, simulated:<seed>, the URL of another deployment, sql:<database>, "
        "one of an installed package, or none. Unset: the store's own, which --replace-source changes.",
    )
    source_timeout: int = _setting(
        300,
        parsers.WholeNumber(1, 86_400),
        "Seconds that the source may take for one answer; then there is no snapshot.",
    )
    price_max_age: int = _setting(
        86_400,
        parsers.WholeNumber(1, 1_000_000_000),
        "Seconds for which an asset goes on that its source does not list any more, and the last price of an asset "
        "counts from when it was observed. Then the asset ended when it was listed last, and the price is unknown.",
    )
    events_lateness: int = _setting(
        3_600,
        parsers.WholeNumber(0, 1_000_000_000),
        "Seconds for which events may come late, move or go. The source is asked for them again every five minutes.",
    )
    addresses_file: Path | None = _setting(
        None, parsers.path, "File of the addresses, one a line, that are followed in another deployment. Unset: none."
    )
    upstream_key: str | None = _setting(
        None, parsers.api_key, "API key that another deployment is sent. Unset: none.", secret=True
    )
    upstream_names: Path | None = _setting(
        None, parsers.path, "File of lines such as ptoken = brand: words in which another deployment has its brand."
    )
    data_dir: Path = _setting(
        lambda: Path(platformdirs.user_data_dir("analytics-service", appauthor=False)),
        parsers.path,
        "Folder of the embedded ClickHouse: its data, logs and passwords.",
    )
    sql_port: int | None = _setting(
        None,
        parsers.WholeNumber(1, 65_534),
        "Port of the embedded ClickHouse for HTTP; that of its native protocol is the next one. Unset: the one it had "
        "last, if nothing else uses it.",
    )
    clickhouse_url: str | None = _setting(
        None,
        parsers.server_url,
        "ClickHouse server to use, http(s)://host:port. Unset: an embedded one.",
    )
    clickhouse_user: str = _setting("default", parsers.non_empty, "User on that server.")
    clickhouse_password: str = _setting("", str, "Password on that server.", secret=True)
    clickhouse_database: str = _setting("analytics", parsers.database_name, "Database of the service's tables.")
    clickhouse_cluster: str | None = _setting(
        None, parsers.cluster_name, "Cluster of that server whose servers share the tables. Unset: it is alone."
    )
    query_timeout: int = _setting(
        20,
        parsers.WholeNumber(1, 600),
        "Seconds a query may run, in a request at most 5; the client waits 5 more, gunicorn 15 more.",
    )
    history_memory: int = _setting(
        96,
        parsers.WholeNumber(0, 65_536),
        "MiB of history that each worker may keep in memory; 0: it reads all from ClickHouse.",
    )
    answer_memory: int = _setting(
        16,
        parsers.WholeNumber(0, 65_536),
        "MiB of rendered answers that each worker may keep in memory; 0: none is kept.",
    )
    tz: str = _setting("UTC", parsers.zone, "Zone of history buckets and of times when none is named.")
    cors_origins: str = _setting(
        "*", parsers.origins, "Origins that browsers may call from: * or a comma-separated list."
    )
    api_keys_file: Path | None = _setting(
        None,
        parsers.path,
        "File of the API keys that /api/v1 asks for; `keys add` makes it. Unset: none are needed.",
    )
    every: parsers.Intervals = _setting(
        parsers.Intervals(),
        parsers.intervals,
        "Seconds between the snapshots of jobs, from 1 to 86400, such as prices=15,loans=600; others have defaults.",
    )
    ready_max_age: int | None = _setting(
        None,
        parsers.WholeNumber(1, 10_000_000),
        "Age in seconds of a late snapshot from which on /readyz is 503. Unset: only /api/v1/status/health, metrics "
        "and alerts tell of late snapshots.",
    )
    log_level: str = _setting(
        "info",
        parsers.one_of("debug", "info", "warning", "error"),
        "Least level that is logged: debug, info, warning or error.",
    )
    log_format: str = _setting(
        "text", parsers.one_of("text", "json"), "Form of log lines: text, or json for an object in each line."
    )
    access_log: bool = _setting(
        False, parsers.flag, "Whether each request of the main bind is logged: client, key, path, status."
    )

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], **overrides: object) -> "Settings":
        """Settings from ANALYTICS_* variables; `overrides` that are not None (command-line options) win."""
        declared = {PREFIX + f.name.upper(): f for f in fields(cls)}
        parsed: dict[str, object] = {}
        for variable in sorted(v for v in environ if v.startswith(PREFIX) and not _is_foreign(v, environ[v])):
            if variable not in declared:
                raise SettingError(_unknown(variable, list(declared)))
            parsed[declared[variable].name] = _parse(declared[variable], variable, environ[variable])
        parsed.update({name: value for name, value in overrides.items() if value is not None})
        settings = cls(**parsed)  # type: ignore[arg-type]
        if parsers.endpoint(settings.bind) == settings.metrics_endpoint:
            raise SettingError(
                f"ANALYTICS_METRICS_BIND={settings.metrics_bind} is not usable: "
                f"it needs another port or path than ANALYTICS_BIND={settings.bind}, or none."
            )
        if settings.sql_port and {settings.sql_port, settings.sql_port + 1} & set(
            map(parsers.endpoint, settings.binds)
        ):
            raise SettingError(
                f"ANALYTICS_SQL_PORT={settings.sql_port} is not usable: it and the next port must be other ports than "
                f"those of {' and '.join(settings.binds)}, where the HTTP service listens."
            )
        return settings

    @property
    def metrics_endpoint(self) -> int | str | None:
        """The port or path of the operators' bind, which differs from that of `bind`; None if it is off."""
        return None if self.metrics_bind == parsers.NONE else parsers.endpoint(self.metrics_bind)

    @property
    def binds(self) -> tuple[str, ...]:
        """Every address that the HTTP service listens on."""
        return (self.bind,) if self.metrics_endpoint is None else (self.bind, self.metrics_bind)

    @property
    def client_timeout(self) -> int:
        """Seconds the client waits for a query, which times out before."""
        return self.query_timeout + 5

    @property
    def graceful_timeout(self) -> int:
        """Seconds that workers have to finish their answers when they are told to end."""
        return self.query_timeout + 10

    @property
    def worker_timeout(self) -> int:
        """Seconds after which gunicorn assumes that a silent worker hangs."""
        return self.query_timeout + 15

    def to_environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """The environment of a child process: `environ` with these settings in place of its own.

        It has no defaults: after a reload the child may be of a newer version, with others, and without some settings.
        """
        rows = list(table())
        written = {row.variable: _written(getattr(self, row.name)) for row in rows}
        changed = {row.variable: value for row in rows if (value := written[row.variable]) not in (None, row.default)}
        return {name: value for name, value in environ.items() if name not in written} | changed


@dataclass(frozen=True, slots=True)
class SettingRow:
    """A setting, as `settings` and `example env` show it. `default` is written as in its variable; None if unset.
    The value of a `secret` one is not shown."""

    name: str
    variable: str
    default: str | None
    help: str
    secret: bool


def table() -> Iterator[SettingRow]:
    """Every setting with its variable, default and help, in the order in which they are shown."""
    for f in fields(Settings):
        of = f.metadata
        yield SettingRow(f.name, PREFIX + f.name.upper(), _written(of["default"]()), of["help"], of["secret"])


def _written(value: object) -> str | None:
    """A value as it is written in a variable; None for an unset one."""
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
    """The parsed value of a setting. ValueError says what is allowed."""
    return {f.name: f for f in fields(Settings)}[setting].metadata["parse"](value)


def _parse(setting: "Field[Any]", variable: str, value: str) -> object:
    try:
        return setting.metadata["parse"](value)
    except ValueError as error:
        shown = "***" if setting.metadata["secret"] else repr(without_credentials(value)[:80])
        raise SettingError(f"{variable}={shown} is not usable: it {error}.") from None


def without_credentials(value: str) -> str:
    """A value of any setting, with *** for a user and a password before a host."""
    return _CREDENTIALS.sub(r"\1***@", value, count=1)


def _is_foreign(variable: str, value: str) -> bool:
    """Whether a variable with our prefix is no setting of ours."""
    return variable in _OTHER_USES or _SERVICE_LINK.search(f"{variable}={value}") is not None


def _unknown(variable: str, declared: list[str]) -> str:
    """The message about a variable that is no setting."""
    names = [name.removeprefix(PREFIX) for name in declared]
    near = difflib.get_close_matches(variable.removeprefix(PREFIX), names, n=1)
    hint = f" Did you mean {PREFIX}{near[0]}?" if near else ""
    return f"{variable} is not a setting.{hint} `analytics-service settings` lists them all."
