"""Puts restored tables in place of the store's, one after the other.

ClickHouse exchanges two tables in one step on one server, but neither several tables nor one on several servers. So the
exchange is announced as a rewrite of every family, which keeps readers from mixing old and new rows until all tables
are exchanged on all servers. Which are is told by their UUIDs, which are recorded before, beside the restored tables:
the next restore completes one that was killed, and no process completes it otherwise.
"""

from collections.abc import Iterable, Sequence

from analytics_service.store.connection import Store
from analytics_service.store.corrections import beating
from analytics_service.store.layout import named
from analytics_service.store.ledger import REWRITES, record_rewrite
from analytics_service.store.schema import shipped, tables_of
from analytics_service.store.sql import filled

_PLAN = "exchange_plan"


def plan(beside: Store) -> None:
    """Record the UUIDs of the restored tables. Distributed tables stay where they are, and announcements."""
    names = [filled(named(name), beside.layout.placeholders) for name in tables_of(shipped()) if name != REWRITES]
    rows = ", ".join(f"('{name}', '{uuid}')" for name, uuid in _uuids(beside, names).items())
    beside.execute(f"CREATE VIEW {_PLAN}{{on_cluster}} AS SELECT arrayJoin([{rows}]) AS planned")


def exchange(store: Store, database: str, families: Sequence[str], version: int) -> None:
    """Exchange the tables that are not exchanged yet with those in a database, as a rewrite of families."""

    def record(finished: int) -> None:
        record_rewrite(store, families, version, finished)

    planned = dict(store.frame(_PLAN, {"database": f"`{database}`"}).iter_rows())
    present = _uuids(store, planned)
    # From here on, it must be completed.
    record(finished=0)
    with beating(lambda: record(finished=0)):
        for name, uuid in planned.items():
            if present[name] != uuid:
                store.execute(f"EXCHANGE TABLES `{store.database}`.{name} AND `{database}`.{name}{{on_cluster}}")
        record(finished=1)


def _uuids(store: Store, names: Iterable[str]) -> dict[str, str]:
    return dict(store.frame("table_uuids", names=list(names)).iter_rows())
