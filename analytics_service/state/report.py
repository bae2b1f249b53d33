"""The report for operators: the parts of the service, its data, and its faults. Instants are aware."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from analytics_service.config.settings import service_version
from analytics_service.store.job_runs import Scheduler
from analytics_service.store.ledger import Origin, any_simulated


@dataclass(frozen=True, slots=True)
class HttpPart:
    """The HTTP service at an address. `expected` says whether it should run there, as far as this process knows."""

    bind: str
    alive: bool
    ready: bool
    expected: bool


@dataclass(frozen=True, slots=True)
class LastRun:
    """The last run of a job, on any host.

    `at` is the instant of its snapshot, `outcome` a word for its result, `took_ms` its duration in milliseconds, and
    `rows` the number of the snapshot's rows, if there is one.
    """

    at: datetime
    outcome: str
    took_ms: int
    rows: int | None


@dataclass(frozen=True, slots=True)
class FamilyReport:
    """A family of data.

    `rows` counts those that its completed runs have written. `gaps` counts the scheduled instants without a snapshot in
    the last 24 hours, from the first scheduled snapshot on. `interval` and `next_run` are None if nothing is scheduled.
    """

    family: str
    newest: datetime | None
    age_seconds: int | None
    fresh: bool
    rows: int
    interval: int | None
    gaps: int | None
    next_run: datetime | None
    failed_at: datetime | None = None
    error: str = ""
    last_run: LastRun | None = None


@dataclass(frozen=True, slots=True)
class ImportReport:
    """A completed run of an import or a backfill.

    `began` is the time of its first write, `snapshots` counts its snapshots (an import counts as one), `rows` counts
    their observations, which are from `first` to `last`, and `source` is the spec of a source or the names of files.
    """

    family: str
    kind: str
    began: datetime
    snapshots: int
    rows: int
    first: datetime
    last: datetime
    source: str


@dataclass(frozen=True, slots=True)
class TableReport:
    """A table on ClickHouse's disk."""

    table: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """A process that answers requests.

    `requests` counts the requests of the main bind that it has answered. `history` and `answers` are the bytes of
    history and of rendered answers that it caches, `resident` all its memory, None if the system does not report it.
    """

    pid: int
    began: datetime
    requests: int
    history: int
    answers: int
    resident: int | None


@dataclass
class Report:
    """The report at an instant. `faults` are in plain words; without any, all is well.

    `alive` says whether ClickHouse answers, `sql` where SQL can be used. Its data, if there is any, is as of `read_at`.
    `schema_pending` and `schema_missing` are None until the schema has been read, and `workers` is None if they cannot
    be observed.
    """

    at: datetime
    database: str
    url: str | None = None
    sql: Sequence[str] = ()
    alive: bool = False
    read_at: datetime | None = None
    clickhouse: str | None = None
    memory: int | None = None
    http: HttpPart | None = None
    schedulers: Sequence[Scheduler] = ()
    schema_pending: Sequence[str] | None = None
    schema_missing: Sequence[str] | None = None
    origins: Sequence[Origin] = ()
    families: Sequence[FamilyReport] = ()
    imports: Sequence[ImportReport] = ()
    tables: Sequence[TableReport] = ()
    workers: Sequence[WorkerReport] | None = None
    faults: list[str] = field(default_factory=list)
    service: str = field(default_factory=service_version)

    @property
    def healthy(self) -> bool:
        """Whether there is no fault."""
        return not self.faults

    @property
    def schema_current(self) -> bool:
        """Whether the schema was read, and nothing is wrong with it."""
        unread = self.schema_pending is None or self.schema_missing is None
        return not (unread or self.schema_pending or self.schema_missing)

    @property
    def disk(self) -> int:
        """Bytes of all tables on ClickHouse's disk."""
        return sum(table.bytes for table in self.tables)

    @property
    def simulated(self) -> bool:
        """Whether any of the data is simulated."""
        return any_simulated(self.origins)
