"""Staging tables: where the rows of a run wait until all of them are put in place at once."""

import uuid
from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from analytics_service.errors import SchemaError
from analytics_service.store.assets import ASSETS, SHOWN_WITH
from analytics_service.store.cells import Change, cell_table, celled, stage_cells, write_cells
from analytics_service.store.connection import Store
from analytics_service.store.ledger import LEDGER, Head, Run, ledger_frame, new_version, read_ledger, runs_of

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
        # The tables that this process has made; none where another process did.
        self._made: dict[str, None] = {}
        # The ledger's rows, once they were staged or read. Under an older schema they have fewer columns.
        self._listed = pl.DataFrame()
        # The head for which the cells in staging are right; None if this process has not computed any.
        self._computed_beside: Head | None = None

    def claim(self) -> bool:
        """Make the ledger's staging table. False when a run that began in the same millisecond has it already."""
        self._like(LEDGER, f" COMMENT '{self._owner}'")
        is_mine = self._owner in self._staged()["comment"]
        self._made = {LEDGER: None} if is_mine else {}
        return is_mine

    def create(self, tables: Sequence[str]) -> None:
        """Make staging tables."""
        for table in tables:
            self._made[table] = None
            self._like(table)

    @property
    def tables(self) -> Sequence[str]:
        """The tables whose rows are staged. Where another process made them, those that have not been dropped yet."""
        if self._made:
            return list(self._made)
        staged = self._staged().select("name", "engine").iter_rows()
        return [name.removesuffix(self.suffix) for name, engine in staged if engine != _VIEW]

    def insert(self, table: str, rows: pl.DataFrame) -> None:
        """Write rows of a table into its staging table."""
        self._store.insert(table + self.suffix, rows)

    def insert_runs(self, runs: Sequence[Run]) -> None:
        """Write the rows of the ledger."""
        listed = ledger_frame(runs)
        self.insert(LEDGER, listed)
        self._listed = listed

    def runs(self) -> Sequence[Run]:
        """The runs in the ledger's staging table; none if another process has made and dropped it."""
        if self._listed.is_empty():
            try:
                self._listed = self._store.frame("staged_runs", table=LEDGER + self.suffix)
            except SchemaError:
                return ()
        return runs_of(self._listed)

    def is_there(self) -> bool:
        """Whether the rows of the ledger have not been dropped by another process that has completed the run."""
        return LEDGER + self.suffix in self._staged()["name"]

    def compute_cells(self) -> None:
        """Compute into staging, before a rewrite is announced, the cells that it changes. Does nothing while another
        run of the family is unfinished."""
        ledger = read_ledger(self._store)
        head = ledger.heads.get(self.family)
        if head is None or self.family in ledger.open or self.family in ledger.appends:
            return
        tables = self.tables
        self.create([cell_table(table) for table in celled(self._store) if table in tables])
        stage_cells(self._store, tables, self._change(self.runs(), head, is_rewrite=True))
        self._computed_beside = head

    def put_in_place(self, head: Head | None, *, is_rewrite: bool) -> None:
        """Attach all rows, compute the cells that change, and then insert the ledger's rows: attached ones would not
        reach its view. Assets that other families than prices bring are shown after that (rule 8.2). `head` is the
        family's before the run.

        Cells that `compute_cells` has computed are right if no other run of the family has been announced since. A run
        that is announced after the rows were attached computes its cells from them, too. The ledger's staging table is
        the first to be dropped: if it is gone, nothing is left to do.
        """
        runs, tables = self.runs(), self.tables
        if not runs or LEDGER not in tables:
            return
        adds_assets = ASSETS in tables and self.family != SHOWN_WITH
        for table in tables:
            if table == ASSETS and adds_assets:
                self._add_assets()
            elif table != LEDGER:
                self._store.execute(f"ALTER TABLE {table} ATTACH PARTITION ALL FROM {table}{self.suffix}")
        if self._computed_beside is None or not self._is_next_after(self._computed_beside):
            change = self._change(runs, head, is_rewrite=is_rewrite or self._meets_rewrite(head))
            write_cells(self._store, tables, change)
        columns = ", ".join(self._listed.columns)
        self._store.execute(f"INSERT INTO {LEDGER} ({columns}) SELECT {columns} FROM {LEDGER}{self.suffix} FINAL")
        if any(run.kind == "import" for run in runs):
            self._show_assets()

    def drop(self) -> None:
        """Remove all of them: the ledger's first, and views before the tables that they read."""
        made = [table + self.suffix for table in self._made]
        names, ledger = made or self._staged()["name"].to_list(), LEDGER + self.suffix
        _drop(self._store, sorted(names, key=lambda name: name != ledger))

    def _meets_rewrite(self, head: Head | None) -> bool:
        """Whether a rewrite of the family may have computed cells before this run's rows were attached."""
        ledger = read_ledger(self._store)
        return self.family in ledger.open or ledger.heads.get(self.family) != head

    def _is_next_after(self, head: Head) -> bool:
        """Whether this rewrite is the only run of the family that was announced since a head."""
        ledger = read_ledger(self._store)
        own = replace(head, rewrites=head.rewrites + 1)
        return ledger.heads.get(self.family) == own and self.family not in ledger.appends

    def _change(self, runs: Sequence[Run], head: Head | None, *, is_rewrite: bool) -> Change:
        first, newest = min(run.first_observed_at for run in runs), max(run.last_observed_at for run in runs)
        before = head.last_observed_at if head is not None else max(first - 1, 0)
        return Change(before, max(newest, before), self.suffix if is_rewrite else "", self.version)

    def _add_assets(self) -> None:
        """Add definitions under a version above those of all prices that readers have seen, so that answers already
        given do not change. Definitions that were written since the run began stay as they are."""
        self._store.execute(
            f"INSERT INTO {ASSETS} SELECT * REPLACE ({new_version(self._store)} AS version) FROM {ASSETS}{self.suffix} "
            f"WHERE id NOT IN (SELECT id FROM {ASSETS} WHERE version > {self.version})"
        )

    def _show_assets(self) -> None:
        """Make added definitions visible, even of assets without prices: the head of prices, the family that assets are
        shown with, gets a version above theirs. Nothing else of that family changes. So are those that were added
        before there were prices, and those that an earlier version of the service left invisible."""
        self._store.run("show_assets", family=SHOWN_WITH, version=new_version(self._store))
        self._store.run("announce_assets", family=SHOWN_WITH)

    def _staged(self) -> pl.DataFrame:
        return self._store.frame("staged_tables", suffix=self.suffix)

    def _like(self, table: str, more: str = "") -> None:
        self._store.execute(f"CREATE TABLE IF NOT EXISTS {table}{self.suffix} AS {table}{more}")


def drop_abandoned(store: Store, hours: int = _ABANDONED_HOURS) -> None:
    """Drop the staging tables that runs left behind so many hours ago."""
    _drop(store, store.frame("abandoned_staging", hours=hours)["name"].to_list())


def _drop(store: Store, names: Sequence[str]) -> None:
    """Drop tables, one after the other."""
    if names:
        store.execute(f"DROP TABLE IF EXISTS {', '.join(names)} SYNC")
