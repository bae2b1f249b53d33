"""Reads the store's part of the report for operators, which the command `status` and the operators' web page show."""

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
from analytics_service.store.schema import missing, missing_message

# Limit of reported imports and backfills.
_MAX_IMPORTS = 20


def read_store(report: Report, store: Store, monitor: Monitor) -> None:
    """Add the store's data to a report, part by part, so that it has everything that was read before the store hangs.

    Raises the errors of reading the store.
    """
    report.clickhouse = store.server_version()
    report.alive, report.read_at = True, report.at
    memory = store.frame("server_memory")["bytes"]
    report.memory = int(memory[0]) if len(memory) else None
    _read_schema(report, store)
    if report.schema_pending or report.schema_missing:
        return
    runs, report.schedulers = read_runs(store)
    checked = monitor.check()
    if not checked.reachable:
        raise StoreUnavailable("The ledger could not be read.")
    report.origins = checked.origins
    report.tables = [TableReport(**row) for row in store.frame("table_sizes").iter_rows(named=True)]
    report.imports = _imports(store)
    report.families = _families(store, report, checked.snapshots, runs)
    is_scheduled = any(snapshot.interval for snapshot in checked.snapshots)
    if is_scheduled and not any(scheduler.alive for scheduler in report.schedulers):
        report.faults.append("no scheduler is running")
    if is_scheduled or report.origins:
        report.faults += checked.faults


def _read_schema(report: Report, store: Store) -> None:
    report.schema_pending = [migration.name for migration in pending(store)]
    lacking = missing(store)
    report.schema_missing = list(lacking)
    if report.schema_pending:
        report.faults.append(
            f"migrations are pending: {', '.join(report.schema_pending)}; run `analytics-service migrate`"
        )
    if lacking:
        report.faults.append(missing_message(lacking))


def _imports(store: Store) -> list[ImportReport]:
    rows = store.frame("recent_imports", most=_MAX_IMPORTS)
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
    store: Store, report: Report, snapshots: Sequence[SnapshotStatus], runs: Sequence[JobRun]
) -> list[FamilyReport]:
    rows = dict(store.frame("rows_by_family").iter_rows())
    alive = {scheduler.name for scheduler in report.schedulers if scheduler.alive}
    runs_by_family = {snapshot.family: [run for run in runs if run.family == snapshot.family] for snapshot in snapshots}
    scheduled = {snapshot.family: snapshot.interval for snapshot in snapshots if snapshot.interval}
    newest = {run.family: run for run in scheduled_runs(store, scheduled, unix_second(report.at))}
    return [
        _family(
            snapshot,
            rows.get(snapshot.family, 0),
            [
                replace(run, next_at=run.next_at if run.scheduler in alive else None)
                for run in runs_by_family[snapshot.family]
            ],
            newest.get(snapshot.family),
        )
        for snapshot in snapshots
    ]


def _family(snapshot: SnapshotStatus, rows: int, runs: Sequence[JobRun], newest: ScheduledRun | None) -> FamilyReport:
    failed = max((run for run in runs if run.failed_at), key=lambda run: run.failed_at or 0, default=None)
    next_at = min((run.next_at for run in runs if run.next_at), default=None)
    return FamilyReport(
        family=snapshot.family,
        newest=snapshot.newest,
        age_seconds=snapshot.age_seconds,
        fresh=snapshot.fresh,
        rows=rows,
        interval=snapshot.interval,
        gaps=newest.missing if newest else None,
        next_run=None if next_at is None else instant(next_at),
        failed_at=instant(failed.failed_at) if failed and failed.failed_at else None,
        error=failed.error if failed else "",
        last_run=_last_run(runs, newest),
    )


def _last_run(runs: Sequence[JobRun], newest: ScheduledRun | None) -> LastRun | None:
    """The newest run that a scheduler recorded. Of several runs for an instant, the run that took the snapshot."""
    ran = [run for run in runs if run.ran_at is not None]
    last = max(ran, key=lambda run: (run.ran_at or 0, run.outcome == "done"), default=None)
    if last is None or last.ran_at is None:
        return None
    rows = newest.rows if newest and newest.at == last.ran_at else None
    return LastRun(instant(last.ran_at), last.outcome, last.took_ms or 0, rows)
