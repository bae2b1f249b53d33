"""Staging tables: where the rows of a run wait until all of them are put in place at once."""

import uuid
from collections.abc import Sequence

import polars as pl

from analytics_service.store.assets import ASSETS, SHOWN_WITH
from analytics_service.store.cells import Change, write_cells
from analytics_service.store.connection import Store
from analytics_service.store.ledger import LEDGER, Head, Run, new_version, read_ledger, runs_of

# No run takes this long, so what it left in staging is abandoned.
_ABANDONED_HOURS = 24
# Runs of earlier versions staged views, too.
_VIEW = "MaterializedView"


class Staging:
    """Tables like those that readers see, for the rows of one run.

    Putting them in place moves no data. Every method may be called again, and by several processes at a time.
    """

    def __init__(self, store: Store, family: str, version: int) -> None:
        self.family = family
        self.version = version
        self._store = store
        self.suffix = f"_staging_{version}"
        self._owner = uuid.uuid4().hex

    def claim(self) -> bool:
        """Make the ledger's staging table. False when a run that began in the same millisecond has it already."""
        self._like(LEDGER, f" COMMENT '{self._owner}'")
        return self._owner in self._staged()["comment"]

    def create(self, tables: Sequence[str]) -> None:
        """Make the staging tables."""
        for table in tables:
            self._like(table)

    def insert(self, table: str, rows: pl.DataFrame) -> None:
        """Write rows of a table into its staging table."""
        self._store.insert(table + self.suffix, rows)

    def runs(self) -> list[Run]:
        """The rows of the ledger; none where they have been dropped."""
        ledger = LEDGER + self.suffix
        if ledger not in self._staged()["name"]:
            return []
        return runs_of(self._store.frame("staged_runs", table=ledger))

    def put_in_place(self, head: Head | None, *, is_rewrite: bool) -> None:
        """Attach all rows, compute the cells that change, and write the ledger's rows last: its view must see them as
        an insert. `head` is the family's before the run.

        The ledger's staging table is the first to be dropped. Without it nothing is left to do.
        """
        staged = self._staged()
        names = [name for name, engine in staged.select("name", "engine").iter_rows() if engine != _VIEW]
        if LEDGER + self.suffix not in names:
            return
        for name in names:
            table = name.removesuffix(self.suffix)
            if table == ASSETS and self.family != SHOWN_WITH:
                self._add_assets()
            elif table != LEDGER:
                self._store.execute(f"ALTER TABLE {table} ATTACH PARTITION ALL FROM {name}")
        tables = [name.removesuffix(self.suffix) for name in names]
        self._write_cells(tables, head, is_rewrite=is_rewrite or self._meets_rewrite(head))
        self._store.execute(f"INSERT INTO {LEDGER} SELECT * FROM {LEDGER}{self.suffix} FINAL")

    def drop(self) -> None:
        """Remove all of them: the ledger's first, and views before the tables that they read."""
        names = self._staged()["name"].to_list()
        ledger = LEDGER + self.suffix
        for name in sorted(names, key=lambda name: name != ledger):
            self._store.execute(f"DROP TABLE IF EXISTS {name} SYNC")

    def _meets_rewrite(self, head: Head | None) -> bool:
        """Whether a rewrite of the family may have computed cells before this run's rows were attached."""
        ledger = read_ledger(self._store)
        return self.family in ledger.open or ledger.heads.get(self.family) != head

    def _write_cells(self, tables: Sequence[str], head: Head | None, *, is_rewrite: bool) -> None:
        runs = runs_of(self._store.frame("staged_runs", table=LEDGER + self.suffix))
        first, newest = min(run.first_observed_at for run in runs), max(run.last_observed_at for run in runs)
        before = head.last_observed_at if head is not None else first - 1
        write_cells(self._store, tables, Change(before, max(newest, before), self.suffix if is_rewrite else ""))

    def _add_assets(self) -> None:
        """Add definitions under a version that is newer than any version of prices that a reader has seen, so that they
        change no answer that was given. Definitions that were written since the run began stay as they are."""
        self._store.execute(
            f"INSERT INTO {ASSETS} SELECT * REPLACE ({new_version()} AS version) FROM {ASSETS}{self.suffix} "
            f"WHERE id NOT IN (SELECT id FROM {ASSETS} WHERE version > {self.version})"
        )

    def _staged(self) -> pl.DataFrame:
        return self._store.frame("staged_tables", suffix=self.suffix)

    def _like(self, table: str, more: str = "") -> None:
        self._store.execute(f"CREATE TABLE IF NOT EXISTS {table}{self.suffix} AS {table}{more}")


def drop_abandoned(store: Store, hours: int = _ABANDONED_HOURS) -> None:
    """Drop the staging tables that runs left behind so many hours ago."""
    for name in store.frame("abandoned_staging", hours=hours)["name"]:
        store.execute(f"DROP TABLE IF EXISTS {name} SYNC")
