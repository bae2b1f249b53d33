"""The table of settings: name, default and help. They are read from environment variables ANALYTICS_*."""

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
# Threads of a worker. Waiting threads cost little, and hundreds of clients waiting for pages leave some free.
WORKER_THREADS = 256
# Variables that Kubernetes sets for services of a cluster, whose names may begin with our prefix.
_SERVICE_LINK = re.compile(
    r"_(SERVICE_(HOST|PORT(_\w+)?)=|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR)=|=\w+://)|=\w+://))"
)
# Variables that only the test suite reads.
_OTHER_USES = {"ANALYTICS_TEST_DATA"}
# A user and a password in a URL. They end at its last @, because a password may contain an unencoded @.
_CREDENTIALS = re.compile(r"(\w+://)?.*@", re.DOTALL)


def _setting(default: Any, parse: Callable[[str], Any], help: str, *, secret: bool = False) -> Any:
    make = default if callable(default) else lambda: default
    if isinstance(parse, parsers.WholeNumber):
        help = f"{help} A whole number {parse}."
    metadata = {"default": make, "parse": parse, "help": help, "secret": secret}
    return field(default_factory=make, repr=not secret, metadata=metadata)


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings, parsed from ANALYTICS_<NAME>. A SettingError names the wrong variable."""

    bind: str = _setting(
        "127.0.0.1:8000", parsers.bind, "Address that the HTTP service listens on: host:port or unix:/path."
    )
    metrics_bind: str = _setting(
        "127.0.0.1:8001",
        parsers.bind_or_none,
        "Address of the operators' paths, such as /metrics, which need no API key; none turns them off.",
    )
    workers: int = _setting(
        2,
        parsers.WholeNumber(1, 512),
        "gunicorn worker processes. Add some if requests are slow and processors are idle.",
    )
    source: str | None = _setting(
        None,
        parsers.source,
        "Source of snapshots: simulated, simulated:<seed>, the URL of another deployment, sql:<database>, the name of "
        "an installed source, or none. Unset: the store's own source, which --replace-source changes.",
    )
    source_timeout: int = _setting(
        300,
        parsers.WholeNumber(1, 86_400),
        "Seconds that the source may take for one answer. After that the snapshot is given up.",
    )
    price_max_age: int = _setting(
        86_400,
        parsers.WholeNumber(1, 1_000_000_000),
        "Seconds for which a price counts after it was observed; after that, the asset's price is unknown. An "
        "asset that its source has not listed for so long has ended, as of its last listing.",
    )
    events_lateness: int = _setting(
        3_600,
        parsers.WholeNumber(0, 1_000_000_000),
        "Seconds for which events may arrive late, move or disappear. The source is asked for them again every five "
        "minutes.",
    )
    addresses_file: Path | None = _setting(
        None, parsers.path, "File of the addresses to follow in another deployment, one a line. Unset: none."
    )
    upstream_key: str | None = _setting(
        None, parsers.api_key, "API key for another deployment. Unset: none.", secret=True
    )
    upstream_names: Path | None = _setting(
        None, parsers.path, "File of brand names that another deployment uses, in lines such as ptoken = brand."
    )
    data_dir: Path = _setting(
        lambda: Path(platformdirs.user_data_dir("analytics-service", appauthor=False)),
        parsers.path,
        "Folder of the embedded ClickHouse: its data, logs and passwords.",
    )
    sql_port: int | None = _setting(
        None,
        parsers.WholeNumber(1, 65_534),
        "HTTP port of the embedded ClickHouse; the next port is for its native protocol. Unset: its last port, if that "
        "is free.",
    )
    clickhouse_url: str | None = _setting(
        None,
        parsers.server_url,
        "ClickHouse server, http(s)://host:port. Unset: an embedded ClickHouse.",
    )
    clickhouse_user: str = _setting("default", parsers.non_empty, "User on the ClickHouse server.")
    clickhouse_password: str = _setting("", str, "Password on the ClickHouse server.", secret=True)
    clickhouse_database: str = _setting("analytics", parsers.database_name, "Database of the service's tables.")
    clickhouse_cluster: str | None = _setting(
        None, parsers.cluster_name, "Cluster whose servers share the tables. Unset: that server alone has them."
    )
    query_timeout: int = _setting(
        20,
        parsers.WholeNumber(1, 600),
        "Seconds that a query may run; in a request at most 5. The service waits 5 more for its answer, gunicorn 15.",
    )
    history_memory: int = _setting(
        96,
        parsers.WholeNumber(0, 65_536),
        "MiB of history that each worker may keep in memory. 0: all history is read from ClickHouse.",
    )
    answer_memory: int = _setting(
        16,
        parsers.WholeNumber(0, 65_536),
        "MiB of rendered answers that each worker may keep in memory. 0: none.",
    )
    tz: str = _setting("UTC", parsers.zone, "Default time zone of history buckets and of times.")
    cors_origins: str = _setting(
        "*", parsers.origins, "Origins that browsers may call from: * or a comma-separated list."
    )
    api_keys_file: Path | None = _setting(
        None,
        parsers.path,
        "File of API keys, made by `keys add`. Requests below /api/v1 then need a key. Unset: they need none.",
    )
    every: parsers.Intervals = _setting(
        parsers.Intervals(),
        parsers.intervals,
        "Seconds between the snapshots of jobs, from 1 to 86400, such as prices=15,loans=600. Other jobs keep their "
        "defaults.",
    )
    ready_max_age: int | None = _setting(
        None,
        parsers.WholeNumber(1, 10_000_000),
        "Age in seconds from which a late snapshot makes /readyz a 503. Unset: late snapshots show only in "
        "/api/v1/status/health, metrics and alerts.",
    )
    log_level: str = _setting(
        "info",
        parsers.one_of("debug", "info", "warning", "error"),
        "Lowest level that is logged: debug, info, warning or error.",
    )
    log_format: str = _setting(
        "text", parsers.one_of("text", "json"), "Format of log lines: text, or json for an object a line."
    )
    access_log: bool = _setting(
        False, parsers.flag, "Whether to log each request of the main bind: client, key, path, status."
    )

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], **overrides: object) -> "Settings":
        """Settings from ANALYTICS_* variables. `overrides` that are not None (command-line options) win."""
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
                f"it must be another port or path than ANALYTICS_BIND={settings.bind}, or none."
            )
        return settings

    @property
    def metrics_endpoint(self) -> int | str | None:
        """The port or path of the operators' bind; None if it is off."""
        return None if self.metrics_bind == parsers.NONE else parsers.endpoint(self.metrics_bind)

    @property
    def binds(self) -> tuple[str, ...]:
        return (self.bind,) if self.metrics_endpoint is None else (self.bind, self.metrics_bind)

    @property
    def client_timeout(self) -> int:
        """Seconds that the client waits for a query; the query times out earlier."""
        return self.query_timeout + 5

    @property
    def graceful_timeout(self) -> int:
        """Seconds that workers have to finish their answers when they are stopped."""
        return self.query_timeout + 10

    @property
    def worker_timeout(self) -> int:
        """Seconds of silence after which gunicorn kills a worker."""
        return self.query_timeout + 15

    def to_environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """The environment of a child process: `environ` with these settings in place of its own.

        Defaults are left out: after a reload the child may be a newer version, with other defaults and settings.
        """
        rows = list(table())
        written = {row.variable: _written(getattr(self, row.name)) for row in rows}
        changed = {row.variable: value for row in rows if (value := written[row.variable]) not in (None, row.default)}
        return {name: value for name, value in environ.items() if name not in written} | changed


@dataclass(frozen=True, slots=True)
class SettingRow:
    """A setting, as `settings` and `example env` show it. `default` is as in its variable, None if unset. The value of
    a `secret` setting is not shown."""

    name: str
    variable: str
    default: str | None
    help: str
    secret: bool


def table() -> Iterator[SettingRow]:
    for f in fields(Settings):
        of = f.metadata
        yield SettingRow(f.name, PREFIX + f.name.upper(), _written(of["default"]()), of["help"], of["secret"])


def _written(value: object) -> str | None:
    """A value as in its variable; None if unset."""
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def service_version() -> str:
    """The version of this service; empty in a checkout that is not installed."""
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
    """A value of any setting, with *** in place of a user and password before a host."""
    return _CREDENTIALS.sub(r"\1***@", value, count=1)


def _is_foreign(variable: str, value: str) -> bool:
    """Whether a variable with our prefix is not meant as a setting."""
    return variable in _OTHER_USES or _SERVICE_LINK.search(f"{variable}={value}") is not None


def _unknown(variable: str, declared: list[str]) -> str:
    names = [name.removeprefix(PREFIX) for name in declared]
    near = difflib.get_close_matches(variable.removeprefix(PREFIX), names, n=1)
    hint = f" Did you mean {PREFIX}{near[0]}?" if near else ""
    return f"{variable} is not a setting.{hint} `analytics-service settings` lists them all."
