"""Reads the store's part of the report for operators, which `status` and the page of operators show."""

from collections.abc import Sequence
from dataclasses import replace

from analytics_service.errors import StoreUnavailable
from analytics_service.market.instants import NANOSECONDS, instant, unix_second
from analytics_service.state.health import Monitor, SnapshotStatus
from analytics_service.state.report import FamilyReport, ImportReport, LastRun, Report, TableReport
from analytics_service.store.applied import pending
from analytics_service.store.connection import Store
from analytics_service.store.job_runs import JobRun, read_runs
from analytics_service.store.scheduled_runs import ScheduledRun, scheduled_runs
from analytics_service.store.schema import missing, what_is_missing

# Imports and backfills that are reported.
_MOST_IMPORTS = 20


def read_store(found: Report, store: Store, monitor: Monitor) -> None:
    """Add the store's data to a report, part by part, so that everything read before the store hangs is there.

    Raises what reading a store does.
    """
    found.clickhouse = store.server_version()
    found.alive, found.read_at = True, found.at
    memory = store.frame("server_memory")["bytes"]
    found.memory = int(memory[0]) if len(memory) else None
    _read_schema(found, store)
    if found.schema_pending or found.schema_missing:
        return
    runs, found.schedulers = read_runs(store)
    checked = monitor.check()
    if not checked.reachable:
        raise StoreUnavailable("The ledger could not be read.")
    found.origins = checked.origins
    found.tables = [TableReport(**row) for row in store.frame("table_sizes").iter_rows(named=True)]
    found.imports = _imports(store)
    found.families = _families(store, found, checked.snapshots, runs)
    is_scheduled = any(one.interval for one in checked.snapshots)
    if is_scheduled and not any(scheduler.alive for scheduler in found.schedulers):
        found.faults.append("no scheduler is running")
    if is_scheduled or found.origins:
        found.faults += checked.faults


def _read_schema(found: Report, store: Store) -> None:
    found.schema_pending = [migration.name for migration in pending(store)]
    lacking = missing(store)
    found.schema_missing = list(lacking)
    if found.schema_pending:
        found.faults.append(
            f"migrations are pending: {', '.join(found.schema_pending)}; run `analytics-service migrate`"
        )
    if lacking:
        found.faults.append(what_is_missing(lacking))


def _imports(store: Store) -> list[ImportReport]:
    rows = store.frame("recent_imports", most=_MOST_IMPORTS)
    return [
        ImportReport(
            family=row["family"],
            kind=row["kind"],
            began=instant(row["version"] // NANOSECONDS),
            snapshots=row["snapshots"],
            rows=row["rows"],
            first=instant(row["first_observed_at"]),
            last=instant(row["last_observed_at"]),
            source=row["source"],
        )
        for row in rows.iter_rows(named=True)
    ]


def _families(
    store: Store, found: Report, snapshots: Sequence[SnapshotStatus], runs: Sequence[JobRun]
) -> list[FamilyReport]:
    rows = dict(store.frame("rows_by_family").iter_rows())
    alive = {scheduler.name for scheduler in found.schedulers if scheduler.alive}
    said = {one.family: [run for run in runs if run.family == one.family] for one in snapshots}
    scheduled = {one.family: one.interval for one in snapshots if one.interval}
    newest = {run.family: run for run in scheduled_runs(store, scheduled, unix_second(found.at))}
    return [
        _family(
            one,
            rows.get(one.family, 0),
            [replace(run, next_at=run.next_at if run.scheduler in alive else None) for run in said[one.family]],
            newest.get(one.family),
        )
        for one in snapshots
    ]


def _family(one: SnapshotStatus, rows: int, said: Sequence[JobRun], newest: ScheduledRun | None) -> FamilyReport:
    failed = max((run for run in said if run.failed_at), key=lambda run: run.failed_at or 0, default=None)
    next_at = min((run.next_at for run in said if run.next_at), default=None)
    return FamilyReport(
        family=one.family,
        newest=one.newest,
        age_seconds=one.age_seconds,
        fresh=one.fresh,
        rows=rows,
        interval=one.interval,
        gaps=newest.missing if newest else None,
        next_run=None if next_at is None else instant(next_at),
        failed_at=instant(failed.failed_at) if failed and failed.failed_at else None,
        error=failed.error if failed else "",
        last_run=_last_run(said, newest),
    )


def _last_run(said: Sequence[JobRun], newest: ScheduledRun | None) -> LastRun | None:
    """The newest run that a scheduler recorded; of several for one instant, the one that took the snapshot."""
    ran = [run for run in said if run.ran_at is not None]
    last = max(ran, key=lambda run: (run.ran_at or 0, run.outcome == "done"), default=None)
    if last is None or last.ran_at is None:
        return None
    rows = newest.rows if newest and newest.at == last.ran_at else None
    return LastRun(instant(last.ran_at), last.outcome, last.took_ms or 0, rows)
