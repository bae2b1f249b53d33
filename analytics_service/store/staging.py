"""Tables beside those that readers see, to be filled at leisure and then made part of them at one stroke."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from analytics_service.errors import AnalyticsError, SchemaError
from analytics_service.store.connection import Store
from analytics_service.store.publication import Patient

log = logging.getLogger(__name__)

# What a run left behind that was killed is dropped by the next one after this time.
_ABANDONED_HOURS = 24


class Staging:
    """Twins of history tables and of their rollups, fed by the same views; `run` tells them from those of other runs.

    Attaching what they hold moves no data. Everything here may be done again: the tables absorb repeats.
    """

    def __init__(self, store: Store, histories: Sequence[str], run: int) -> None:
        self._store = store
        self._histories = histories
        self._run = run

    def twin(self, table: str) -> str:
        """The name of a table's twin."""
        return f"{table}_staging_{self._run}"

    def create(self) -> None:
        """Make the twins, and the views that feed those of rollups."""
        for history in self._histories:
            for table in (history, _rollup(history)):
                self._store.execute(f"CREATE TABLE IF NOT EXISTS {self.twin(table)} AS {table}")
            self._store.execute(
                f"CREATE MATERIALIZED VIEW IF NOT EXISTS {self.twin(_view(history))} TO {self.twin(_rollup(history))} "
                f"AS {self._query(history)}"
            )

    def attach(self) -> None:
        """Make all rows of the twins rows of the tables."""
        for history in self._histories:
            for table in (_rollup(history), history):
                self._store.execute(f"ALTER TABLE {table} ATTACH PARTITION ALL FROM {self.twin(table)}")

    def drop(self) -> None:
        """Remove the twins."""
        for history in self._histories:
            for table in _of(history):
                self._store.execute(f"DROP TABLE IF EXISTS {self.twin(table)} SYNC")

    def _query(self, history: str) -> str:
        """What the view asks of the history, asked of its twin: the rule itself stays written in the schema only."""
        rows = self._store.frame("view_query", view=_view(history))["query"].to_list()
        before, table, after = "".join(rows).partition(f"FROM {self._store.database}.{history} ")
        if not table:
            raise SchemaError(f"{_view(history)} is missing or was changed; `analytics-service migrate` makes it.")
        return f"{before}FROM {self.twin(history)} {after}"


@contextmanager
def staging(store: Store, histories: Sequence[str], run: int, patient: Patient) -> Iterator[Staging]:
    """Twins of history tables while this lasts. `patient` repeats what fails while ClickHouse is away."""
    twins = Staging(store, histories, run)
    try:
        patient(lambda: drop_abandoned(store, histories))
        patient(twins.create)
        yield twins
    finally:
        try:
            twins.drop()
        except AnalyticsError as error:
            log.warning("What was staged is left for a later run to drop: %s", error)


def drop_abandoned(store: Store, histories: Sequence[str], hours: int = _ABANDONED_HOURS) -> None:
    """Drop the twins of histories and rollups that runs left behind so many hours ago."""
    tables = [name for history in histories for name in _of(history)]
    for name in store.frame("abandoned_staging", tables=tables, hours=hours)["name"]:
        store.execute(f"DROP TABLE IF EXISTS {name} SYNC")


def _of(history: str) -> tuple[str, ...]:
    """All that a history has, in the order in which it can be dropped."""
    return _view(history), history, _rollup(history)


def _rollup(history: str) -> str:
    return f"{history}_rollup"


def _view(history: str) -> str:
    return f"{history}_rollup_view"
