"""Reads what only the store knows of how the service is, for operators (rule 1.6)."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from analytics_service.errors import StoreUnavailable
from analytics_service.market.instants import NANOSECONDS, instant, unix_second
from analytics_service.state.health import Family, Imported, LastRun, Monitor, Rewriting, Status, Table
from analytics_service.store.connection import Store
from analytics_service.store.corrections import running_corrections
from analytics_service.store.job_runs import JobRun, Scheduler, read_runs, scheduled_runs
from analytics_service.store.schema import missing, missing_message, pending
from analytics_service.store.shards import told_away, told_late

# Limit of reported imports and backfills.
_MAX_IMPORTS = 20


def read_store(status: Status, store: Store, monitor: Monitor) -> Iterator[Status]:
    """The status with the store's data, part by part, so that the last one has all that was read before the store
    hangs.

    Raises the errors of reading the store.
    """
    status = replace(status, clickhouse=store.server_version(), reachable=True, read_at=status.at, reported=())
    yield status
    ledger = monitor.check()
    away = [*told_away(ledger.replicas), *ledger.disk_faults]
    status = replace(status, replicas=ledger.replicas, disk=ledger.disk, reported=away)
    yield status
    away = [*away, *told_late(store, ledger.replicas)]
    memory = store.frame("server_memory", store.layout.on_all_servers("metrics"))["bytes"]
    names, lacking = [migration.name for migration in pending(store)], missing(store)
    status = replace(
        status,
        memory=int(memory[0]) if len(memory) else None,
        schema_pending=names,
        schema_missing=list(lacking),
        schema_current=not (names or lacking),
        reported=[
            *away,
            *([f"migrations are pending: {', '.join(names)}; run `analytics-service migrate`"] if names else []),
            *([missing_message(lacking)] if lacking else []),
        ],
    )
    yield status
    if not status.schema_current:
        return
    runs, schedulers = read_runs(store)
    if not ledger.reachable:
        raise StoreUnavailable("The ledger could not be read.")
    status = replace(
        status,
        schedulers=schedulers,
        origins=ledger.origins,
        prices=ledger.prices,
        doubts=ledger.doubts,
        tables=_tables(store),
        imports=_imports(store),
        corrections=_corrections(store),
    )
    yield status
    is_scheduled = any(family.interval for family in ledger.families)
    # On a full disk, schedulers cannot report that they run.
    is_idle = is_scheduled and not ledger.disk_faults and not any(scheduler.alive for scheduler in schedulers)
    yield replace(
        status,
        families=_with_runs(store, with_scheduled(store, ledger), runs, schedulers),
        reported=[
            *away,
            *(["no scheduler is running"] if is_idle else []),
            *(ledger.data_faults if is_scheduled or ledger.origins else [*ledger.withheld, *ledger.lost]),
        ],
    )


def with_scheduled(store: Store, status: Status) -> list[Family]:
    """The families of a status with their newest scheduled runs of the last day."""
    intervals = {family.family: family.interval for family in status.families if family.interval}
    newest = {run.family: run for run in scheduled_runs(store, intervals, unix_second(status.at))}
    return [replace(family, scheduled=newest.get(family.family)) for family in status.families]


def _tables(store: Store) -> list[Table]:
    layout = store.layout
    named = {"database": store.database, "cluster": layout.cluster}
    sizes = store.frame("table_sizes", layout.on_all_servers("parts"), **named)
    return [Table(**row) for row in sizes.iter_rows(named=True)]


def _imports(store: Store) -> list[Imported]:
    rows = store.frame("recent_imports", most=_MAX_IMPORTS)
    return [
        Imported(
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


def _corrections(store: Store) -> list[Rewriting]:
    return [
        Rewriting(
            each.what,
            each.family,
            each.stage,
            began=instant(each.began_ns // NANOSECONDS),
            rows=each.rows,
            expected=each.expected,
            command=each.command,
        )
        for each in running_corrections(store)
    ]


def _with_runs(
    store: Store, families: Sequence[Family], runs: Sequence[JobRun], schedulers: Sequence[Scheduler]
) -> list[Family]:
    rows = dict(store.frame("rows_by_family").iter_rows())
    alive = {scheduler.name for scheduler in schedulers if scheduler.alive}
    by_family = {family.family: [run for run in runs if run.family == family.family] for family in families}
    return [
        _with_run(replace(family, rows=rows.get(family.family, 0)), by_family[family.family], alive)
        for family in families
    ]


def _with_run(family: Family, runs: Sequence[JobRun], alive: set[str]) -> Family:
    """A family with what schedulers recorded of its job: the next run, the last failure, and the last run."""
    failed = max((run for run in runs if run.failed_at), key=lambda run: run.failed_at or 0, default=None)
    next_at = min((run.next_at for run in runs if run.next_at and run.scheduler in alive), default=None)
    return replace(
        family,
        next_run=None if next_at is None else instant(next_at),
        failed_at=instant(failed.failed_at) if failed and failed.failed_at else None,
        error=failed.error if failed else "",
        last_run=_last_run(family, runs),
    )


def _last_run(family: Family, runs: Sequence[JobRun]) -> LastRun | None:
    """The newest run that a scheduler recorded. Of several runs for an instant, the run that took the snapshot."""
    ran = [run for run in runs if run.ran_at is not None]
    last = max(ran, key=lambda run: (run.ran_at or 0, run.outcome == "done"), default=None)
    if last is None or last.ran_at is None:
        return None
    newest = family.scheduled
    rows = newest.rows if newest and newest.at == last.ran_at else None
    return LastRun(instant(last.ran_at), last.outcome, last.took_ms or 0, rows)
