"""Takes a backup while the service runs: the ledger first, then the rows of the runs that it lists, and no others.

A run that only adds to the end of history has rows after its family's head, with a version that is not listed (rule
8.1), which are left out. When a rewrite was announced meanwhile (rule 8.3), everything is read again. Tables that views
fill are left out as well: the views fill them again when a backup is restored (rule 8.10).
"""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from analytics_service.backups.archive import (
    FORMAT,
    ArchiveWriter,
    Manifest,
    Script,
    Snapshot,
    TableContent,
    writing,
)
from analytics_service.config import service_version
from analytics_service.errors import BackupFailed, BackupRefused, StoreUnavailable, Superseded
from analytics_service.market.instants import unix_second
from analytics_service.store.admission import read_holdings
from analytics_service.store.announcements import APPEND, REWRITE
from analytics_service.store.applied import shipped
from analytics_service.store.cells import ENDS_AT, cell_table, rows_by_month
from analytics_service.store.columns import TIMES
from analytics_service.store.connection import Store
from analytics_service.store.families import FAMILY_OF
from analytics_service.store.job_runs import JOB_RUNS
from analytics_service.store.ledger import LEDGER, Head, Ledger, require_unchanged
from analytics_service.store.progress import Reporter
from analytics_service.store.retention import PRUNED
from analytics_service.store.rewrite import settled
from analytics_service.store.schema import missing, schema_of, what_is_missing

# What the service says about its own processes: which runs are under way, and what schedulers run next.
NOT_SAVED = frozenset({REWRITE, APPEND, JOB_RUNS})
_ATTEMPTS = 5
# The condition for tables that are saved as a whole, with rows that runs after the heads have added.
_ALL = "true"


def back_up(store: Store, path: Path, now: datetime, reporter: Reporter) -> Manifest:
    """Write the store, whose schema is current, into a file, and return what is in it.

    BackupRefused for a store without data, BackupFailed when the file cannot be written, or when the store is changed
    again and again while it is read.
    """
    if lacking := missing(store):
        raise BackupRefused(what_is_missing(lacking))
    for _ in range(_ATTEMPTS):
        ledger = settled(store)
        if not ledger.heads:
            raise BackupRefused("The store has no data, so there is nothing to back up.")
        with suppress(Superseded), writing(path) as archive:
            return _write(store, ledger, archive, now, reporter)
    raise BackupFailed("The store is changed again and again while it is read. Take the backup when that is over.")


def _write(store: Store, ledger: Ledger, archive: ArchiveWriter, now: datetime, reporter: Reporter) -> Manifest:
    found = {row["name"]: row for row in store.frame("tables").iter_rows(named=True)}
    tables = _rows_of(ledger.heads, {name: row["sorting_key"].split(", ") for name, row in found.items()})
    months = _months(store)
    reporter.stage("Backup", sum(found[table]["bytes"] for table in tables))
    contents = {table: _save(store, table, only, archive, reporter) for table, only in tables.items()}
    families = _saved(store, tables[LEDGER])
    for head in ledger.heads.values():
        require_unchanged(store, head)
        if families.get(head.family) != Snapshot(head.at, head.last_observed_at, head.version):
            raise Superseded(f"The newest row of the ledger about {head.family} was replaced while it was read.")
    if not months <= _months(store):
        raise Superseded("Old observations were dropped while they were read.")
    manifest = Manifest(
        format=FORMAT,
        taken_at=unix_second(now.replace(microsecond=0)),
        service=service_version(),
        clickhouse=store.server_version(),
        origins=sorted(map(str, ledger.origins)),
        side=read_holdings(store).claimed_by,
        migrations=[Script(each.number, each.name, each.checksum) for each in shipped()],
        families=families,
        tables=contents,
    )
    archive.finish(manifest)
    return manifest


def _saved(store: Store, only: str) -> dict[str, Snapshot]:
    """The heads, by family, of a store whose ledger has but these rows."""
    rows = store.frame("heads_of_runs", {"only": only}).iter_rows()
    return {family: Snapshot(at, last_observed_at, version) for family, at, last_observed_at, version in rows}


def _months(store: Store) -> set[tuple[str, int]]:
    """The months of which there are rows in the tables that lose old ones (rule 8.14)."""
    return {(table, month) for table in PRUNED for month in rows_by_month(store, table)}


def _save(store: Store, table: str, only: str, archive: ArchiveWriter, reporter: Reporter) -> TableContent:
    before = None if only != _ALL else _count(store, table, only)
    size, digest = archive.add(table, store.native_rows("backup_rows", {"only": only}, table=table), reporter)
    rows = _count(store, table, only)
    # No rows are deleted, so as many as before are the same ones.
    if before not in (None, rows):
        raise Superseded(f"Rows were added to {table} while it was read.")
    if rows and not size:
        # A server that dies as it begins to answer sends an end without rows.
        raise StoreUnavailable(f"ClickHouse broke off its answer (rows of {table}).")
    return TableContent(rows, size, digest)


def _count(store: Store, table: str, only: str) -> int:
    return int(store.frame("backup_count", {"only": only}, table=table)["rows"][0])


def _rows_of(heads: Mapping[str, Head], keys: Mapping[str, list[str]]) -> dict[str, str]:
    """Tables in the order in which they are saved, each with an SQL condition on its rows. `keys` are the columns by
    which each table is sorted."""
    known = [table for table in schema_of(shipped()).sources if table not in NOT_SAVED]
    return (
        {LEDGER: _completed(heads)}
        | {
            table: _not_after(heads.get(FAMILY_OF.get(table, "")), keys[table], is_filtered=table in FAMILY_OF)
            for table in known
            if table != LEDGER
        }
        | {
            cell_table(table): _closed(heads.get(family))
            for table, family in FAMILY_OF.items()
            if cell_table(table) in known
        }
    )


def _completed(heads: Mapping[str, Head]) -> str:
    """The runs of the ledger that the heads count."""
    return " OR ".join(map(_counted, heads.values()))


def _counted(head: Head) -> str:
    """The runs of the ledger that a head counts."""
    return f"(family = '{head.family}' AND version <= {head.version})"


def _closed(head: Head | None) -> str:
    """The cells that are closed as of a head: later ones may sum up rows of runs after it."""
    return "false" if head is None else f"{ENDS_AT} <= {head.last_observed_at + 1}"


def _not_after(head: Head | None, sorted_by: list[str], *, is_filtered: bool) -> str:
    """A condition for the rows of a family's table without those of runs after its head. If a table's key has no time,
    all rows are saved: later ones have already replaced older ones, and readers check their versions."""
    time = next((column for column in TIMES if column in sorted_by), None)
    if not is_filtered or time is None:
        return _ALL
    if head is None:
        return "false"
    # A run that is under way may have a lower version than a row of the ledger that shows definitions.
    counted = f"SELECT version FROM {LEDGER} WHERE {_counted(head)}"
    return f"NOT (toUnixTimestamp({time}) > {head.last_observed_at} AND version NOT IN ({counted}))"
