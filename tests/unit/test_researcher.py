"""The user for people on a ClickHouse of one's own: when it has a new password, and what ClickHouse is sent of that."""

import hashlib

import polars as pl
import pytest

from analytics_service.clickhouse.cluster import Cluster
from analytics_service.clickhouse.connection import Store
from analytics_service.errors import StoreFailure
from analytics_service.store.researcher import make_researcher

_FIXED = "readonly = 2 READONLY, max_memory_usage_for_user = 16000000000 READONLY, workload READONLY"


class Executed(Store):
    """A store that keeps statements, on a server of eight processors and 64 GB that knows three of the settings."""

    def __init__(self, users: int, made: int, layout: Cluster | None = None) -> None:
        self.database = "analytics"
        self._layout = layout or Cluster()
        self.statements: list[str] = []
        limits = {
            "threads": [4],
            "memory": [16_000_000_000],
            "settings": [["max_memory_usage_for_user", "readonly", "workload"]],
        }
        self._found = pl.DataFrame({**limits, "users": [users], "made": [made]})

    def query(self, query: str, parts: object = (), **parameters: object) -> pl.DataFrame:
        assert (query, parameters) == ("read_researcher_limits", {"user": "alice"})
        return self._found

    def execute(self, statement: str, *, in_database: bool = True) -> None:
        self.statements += self.layout.rendered(statement, self.database)


def test_a_new_user_has_a_password_of_which_clickhouse_gets_the_digest() -> None:
    store = Executed(users=0, made=0)
    password = make_researcher(store, "alice")
    assert password
    digest = hashlib.sha256(password.encode()).hexdigest()
    sent = "\n".join(store.statements)
    assert password not in sent
    assert f"CREATE USER IF NOT EXISTS `alice` IDENTIFIED WITH sha256_hash BY '{digest}'" in sent
    assert "GRANT SELECT ON `analytics`.* TO `alice` WITH REPLACE OPTION" in store.statements
    assert "max_threads = 4 MAX 4" in sent
    assert "    join_use_nulls = 1," in sent.splitlines()
    assert f"    {_FIXED}" in sent.splitlines()
    assert "{" not in sent


def test_a_user_that_was_made_before_keeps_the_password() -> None:
    store = Executed(users=1, made=1)
    assert make_researcher(store, "alice") is None
    assert not any(statement.startswith(("ALTER USER", "CREATE USER")) for statement in store.statements)
    # ClickHouse puts these settings in the place of all that the profile had.
    (profile,) = [sql for sql in store.statements if sql.startswith("ALTER SETTINGS PROFILE")]
    assert profile.splitlines()[-2:] == ["    join_use_nulls = 1,", f"    {_FIXED}"]
    assert "GRANT SELECT ON `analytics`.* TO `alice` WITH REPLACE OPTION" in store.statements


def test_a_user_of_another_origin_stays_as_it_is() -> None:
    store = Executed(users=1, made=0)
    with pytest.raises(StoreFailure, match=r"has a user alice .* Choose another name\."):
        make_researcher(store, "alice")
    assert store.statements == []


def test_people_see_what_the_service_sees_of_replicas_and_shards() -> None:
    """By default, as a replica that lags refuses them; the other settings of the service are of its writes."""
    store = Executed(users=0, made=0, layout=Cluster("Atomic", "main", 3))
    make_researcher(store, "alice")
    (profile,) = [sql for sql in store.statements if sql.startswith("ALTER SETTINGS PROFILE")]
    assert profile.splitlines()[-1].removeprefix(f"    {_FIXED}, ") == (
        "select_sequential_consistency = '1', skip_unavailable_shards = '0', distributed_product_mode = 'global'"
    )
