"""What `status` finds out: the parts of the service, its data, and what is wrong."""

import http.client
import shlex
import threading
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise

from analytics_service.config import Settings, service_version
from analytics_service.embedded.clickhouse import attached
from analytics_service.embedded.folder import DataFolder
from analytics_service.errors import AnalyticsError, StoreUnavailable
from analytics_service.market.instants import instant, unix_second
from analytics_service.present.status import SnapshotStatus
from analytics_service.resources.health import Monitor
from analytics_service.run.address import local_address
from analytics_service.sources.registry import NONE
from analytics_service.state.heads import Heads
from analytics_service.store.admission import how_to_decide, read_holdings
from analytics_service.store.connection import Store
from analytics_service.store.families import TABLES
from analytics_service.store.job_runs import JobRun, Scheduler, read_runs
from analytics_service.store.ledger import Origin, read_ledger
from analytics_service.store.migrations import pending
from analytics_service.store.schema import missing, what_is_missing
from analytics_service.store.server import address_of
from jobs.registry import JOBS

# Seconds to wait for ClickHouse's first answer, for all others, and for each of the HTTP service.
_FIRST_ANSWER = 5.0
_OTHER_ANSWERS = 20.0
_HTTP_ANSWER = 1.0
_DAY = 86_400


@dataclass(frozen=True, slots=True)
class HttpPart:
    """The HTTP service at an address. `expected` says whether it should run there as far as is known here."""

    bind: str
    alive: bool
    ready: bool
    expected: bool


@dataclass(frozen=True, slots=True)
class FamilyReport:
    """A family of data. Instants are aware.

    `rows` are those of its tables, repeated ones included until ClickHouse merges them. `gaps` are the scheduled
    instants of the last 24 hours, from the first one that a scheduler took, that have no snapshot. `interval` and
    `next_run` are None where nothing is scheduled.
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


@dataclass(frozen=True, slots=True)
class TableReport:
    """A table on ClickHouse's disk."""

    table: str
    rows: int
    bytes: int


@dataclass
class Report:
    """Everything that `status` shows. `faults` are in plain words; without any, all is well."""

    at: datetime
    database: str
    url: str | None = None
    clickhouse: str | None = None
    memory: int | None = None
    http: HttpPart | None = None
    schedulers: Sequence[Scheduler] = ()
    schema_pending: Sequence[str] = ()
    schema_missing: Sequence[str] = ()
    origins: Sequence[Origin] = ()
    families: Sequence[FamilyReport] = ()
    tables: Sequence[TableReport] = ()
    faults: list[str] = field(default_factory=list)
    service: str = field(default_factory=service_version)

    @property
    def healthy(self) -> bool:
        """Whether there is no fault."""
        return not self.faults


def report(settings: Settings, now: datetime, bind: str | None = None) -> Report:
    """The state of everything. `bind` is where the HTTP service should run, if the operator has said so."""
    found = Report(now, settings.clickhouse_database)
    found.http = _http(settings, bind)
    reached = attached(settings)
    if reached is None:
        found.faults.append(
            f"ClickHouse is not running in {settings.data_dir}; start it with `analytics-service up`, or set "
            "ANALYTICS_CLICKHOUSE_URL"
        )
    else:
        found.url = address_of(reached)
        try:
            _ask_in_time(found, reached)
        except AnalyticsError as error:
            found.faults.append(str(error))
    if found.http.expected and not found.http.ready:
        state = "is not ready" if found.http.alive else "does not answer"
        found.faults.append(f"the HTTP service {state} on {found.http.bind}")
    return found


def _ask(found: Report, settings: Settings) -> None:
    """What ClickHouse says. The connection is closed by the thread that uses it, which may be left alone."""
    with closing(Store(settings)) as store:
        _read(found, store, settings)


def _ask_in_time(found: Report, settings: Settings) -> None:
    """Ask ClickHouse everything, in a thread that is left alone when it takes too long. StoreUnavailable then."""
    errors: list[AnalyticsError] = []

    def ask() -> None:
        try:
            _ask(found, settings)
        except AnalyticsError as error:
            errors.append(error)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(_FIRST_ANSWER)
    if thread.is_alive() and found.clickhouse is not None:
        thread.join(_OTHER_ANSWERS)
    if thread.is_alive():
        raise StoreUnavailable(f"ClickHouse hangs: it has not answered within {_FIRST_ANSWER:.0f} s.")
    if errors:
        raise errors[0]


def _read(found: Report, store: Store, settings: Settings) -> None:
    found.clickhouse = store.server_version()
    memory = store.frame("server_memory")["bytes"]
    found.memory = int(memory[0]) if len(memory) else None
    found.schema_pending = [migration.name for migration in pending(store)]
    lacking = missing(store)
    found.schema_missing = list(lacking)
    if found.schema_pending:
        found.faults.append(
            f"migrations are pending: {', '.join(found.schema_pending)}; run `analytics-service migrate`"
        )
    if lacking:
        found.faults.append(what_is_missing(lacking))
    if found.schema_pending or lacking:
        return
    runs, found.schedulers = read_runs(store)
    found.origins = sorted(read_ledger(store).origins, key=str)
    holdings = read_holdings(store)
    found.faults += [how_to_decide(holdings)] if holdings.is_undecided else []
    found.tables = [TableReport(**row) for row in store.frame("table_sizes").iter_rows(named=True)]
    is_scheduled = settings.source != NONE and (settings.source or any(origin.spec for origin in found.origins))
    intervals = {job.family: job.every(settings) for job in JOBS.values()} if is_scheduled else {}
    checked = Monitor(Heads(store, every=None), intervals, lambda: found.at, is_told=bool(intervals)).check()
    found.families = _families(store, found, checked.snapshots, runs, intervals)
    if intervals and not any(scheduler.alive for scheduler in found.schedulers):
        found.faults.append("no scheduler is running")
    if is_scheduled or found.origins:
        found.faults += checked.faults


def _families(
    store: Store,
    found: Report,
    snapshots: Sequence[SnapshotStatus],
    runs: Sequence[JobRun],
    intervals: Mapping[str, int],
) -> list[FamilyReport]:
    rows = {table.table: table.rows for table in found.tables}
    alive = {scheduler.name for scheduler in found.schedulers if scheduler.alive}
    day = store.frame("recent_snapshots", after=unix_second(found.at.replace(microsecond=0)) - _DAY)
    recent = {row["family"]: row for row in day.iter_rows(named=True)}
    families = []
    for one in snapshots:
        said = [run for run in runs if run.family == one.family]
        failed = max((run for run in said if run.failed_at), key=lambda run: run.failed_at or 0, default=None)
        next_at = min((run.next_at for run in said if run.next_at and run.scheduler in alive), default=None)
        interval = next((run.every for run in said if run.scheduler in alive), intervals.get(one.family))
        families.append(
            FamilyReport(
                one.family,
                one.newest,
                one.age_seconds,
                one.fresh,
                sum(rows.get(table, 0) for table in TABLES.get(one.family, ())),
                interval,
                _gaps(recent.get(one.family), interval),
                _aware(next_at),
                _aware(failed.failed_at) if failed else None,
                failed.error if failed else "",
            )
        )
    return families


def _gaps(day: Mapping[str, object] | None, interval: int | None) -> int | None:
    """The instants without a snapshot among the multiples of an interval, between the first snapshot that a scheduler
    took and the newest."""
    if interval is None or day is None or not day["scheduled"]:
        return None
    return count_gaps(day["instants"], int(str(day["scheduled_since"])), interval)  # type: ignore[arg-type]


def count_gaps(instants: Sequence[int], since: int, interval: int) -> int:
    """How many multiples of an interval between `since` and the newest of the instants are not among them (unix
    seconds)."""
    first = -(-since // interval) * interval
    return len(set(range(first, max(instants) + 1, interval)) - set(instants))


def _aware(second: int | None) -> datetime | None:
    return None if second is None else instant(second)


def _http(settings: Settings, bind: str | None) -> HttpPart:
    address, expected = expected_address(settings, bind)
    alive = _status(address, "/healthz") == http.client.OK
    return HttpPart(address, alive, alive and _status(address, "/readyz") == http.client.OK, expected)


def expected_address(settings: Settings, bind: str | None) -> tuple[str, bool]:
    """Where to look for the HTTP service, and whether it should be there: where the operator has said so, or where the
    command that holds the data folder serves."""
    if bind is not None:
        return bind, True
    folder = DataFolder(settings.data_dir)
    holder = folder.holder() if settings.clickhouse_url is None and folder.locked() else None
    words = shlex.split(holder.command) if holder else []
    if not {"up", "serve"} & set(words[1:2]):
        return settings.bind, False
    named = [word.removeprefix("--bind=") for word in words if word.startswith("--bind=")]
    named += [after for before, after in pairwise(words) if before == "--bind"]
    return (named or [settings.bind])[-1], True


def _status(bind: str, path: str) -> int:
    """The status of the HTTP service's answer; 0 without one."""
    connection = http.client.HTTPConnection(*local_address(bind), timeout=_HTTP_ANSWER)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()
