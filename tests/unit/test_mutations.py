"""Rows that are taken out by several processes, one after the other: who begins the mutation."""

import polars as pl
import pytest

from analytics_service.clickhouse.cluster import Cluster
from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.queries import Placeholders
from analytics_service.errors import StoreUnavailable
from analytics_service.store.mutations import delete_rows


class Mutated(Store):
    """A store of shards of which a mutation of a table is at some stage."""

    def __init__(self, is_under_way: bool, is_done: bool) -> None:
        self.database, self._layout = "analytics", Cluster("Atomic", "main", 3)
        self.executed: list[str] = []
        self._state = pl.DataFrame([(is_under_way, is_done)], ["is_under_way", "is_done"], orient="row")

    def query(self, query: str, parts: Placeholders = (), **parameters: object) -> pl.DataFrame:
        assert query == "read_mutation_state"
        assert parameters == {"database": "analytics", "table": "rollup_local", "reading": "observation_staging_7"}
        return self._state

    def execute(self, statement: str, *, in_database: bool = True) -> None:
        self.executed.append(statement)


@pytest.mark.parametrize(("is_done", "executed"), [(False, ["DELETE"]), (True, [])])
def test_a_mutation_that_servers_lack_is_begun(is_done: bool, executed: list[str]) -> None:
    store = Mutated(False, is_done)
    delete_rows(store, "rollup", "DELETE", "observation_staging_7")
    assert store.executed == executed


def test_none_is_begun_while_one_is_under_way() -> None:
    """It goes on when its client has given up, and a second one would have to do the same again."""
    store = Mutated(True, False)
    with pytest.raises(StoreUnavailable, match="still deleting rows of rollup"):
        delete_rows(store, "rollup", "DELETE", "observation_staging_7")
    assert store.executed == []
