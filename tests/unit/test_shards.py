"""Whether the shards of a cluster are those that a store was made for."""

import logging
from datetime import UTC, datetime

import polars as pl
import pytest

from analytics_service.errors import SchemaError
from analytics_service.state.heads import Heads
from analytics_service.state.health import Monitor
from analytics_service.store.layout import Layout
from analytics_service.store.ledger import require_unchanged
from analytics_service.store.shards import Replica, read_replicas, require_shards, told_away
from analytics_service.store.sql import Parts
from tests.doubles import NOON, LedgerStore

# Weight and servers of two shards.
MADE_FOR = "1 a:9000 b:9000 | 1 c:9000 d:9000"


@pytest.fixture
def store() -> LedgerStore:
    store = LedgerStore("prices")
    store._layout = Layout("Atomic", "main", 2)
    store.shards = (MADE_FOR, MADE_FOR)
    return store


@pytest.mark.parametrize("now", [MADE_FOR, "1 a:9000 b:9000 e:9000 | 1 c:9000 d:9000", "1 b:9000 e:9000 | 1 d:9000"])
def test_replicas_of_a_shard_may_come_and_go(store: LedgerStore, now: str) -> None:
    store.shards = (now, MADE_FOR)
    require_shards(store)


@pytest.mark.parametrize(
    "now",
    [
        "1 c:9000 d:9000 | 1 a:9000 b:9000",
        "2 a:9000 b:9000 | 1 c:9000 d:9000",
        f"{MADE_FOR} | 1 e:9000",
        "1 a:9000 b:9000",
        "1 a:9000 b:9000 | 1 e:9000 f:9000",
        "",
    ],
    ids=["swapped", "weight", "more", "fewer", "others", "none"],
)
def test_other_shards_are_refused(store: LedgerStore, now: str) -> None:
    store.shards = (now, MADE_FOR)
    with pytest.raises(
        SchemaError, match=r"records the shards 1 a:9000 b:9000 \| 1 c:9000 d:9000, and cluster main has"
    ):
        require_shards(store)


def test_shards_that_are_not_recorded_are_refused(store: LedgerStore) -> None:
    store.shards = (MADE_FOR, "")
    with pytest.raises(SchemaError, match="records the shards of no cluster"):
        require_shards(store)


def test_a_change_while_the_service_runs_is_noticed_by_the_next_look_and_before_anything_is_accepted(
    store: LedgerStore, caplog: pytest.LogCaptureFixture
) -> None:
    heads = Heads(store, interval=None, clock=lambda: 100.0)
    head = heads.shown().head("prices")
    require_unchanged(store, head)
    store.shards = (f"{MADE_FOR} | 1 e:9000", MADE_FOR)
    with pytest.raises(SchemaError, match="cluster main has 3"):
        require_unchanged(store, head)
    with caplog.at_level(logging.ERROR):
        for _ in range(2):
            heads.look()
            assert not heads.last_look().schema_current
    monitor = Monitor(heads, dict, lambda: datetime.fromtimestamp(NOON, UTC), is_configured=False)
    assert monitor.obstacles() == [heads.obstacle()]
    assert "the cluster's shards are not those of the store" in heads.obstacle()
    assert [record.message.count("cluster main has 3") for record in caplog.records] == [1]
    store.shards = (MADE_FOR, MADE_FOR)
    heads.look()
    assert heads.last_look().schema_current


def test_shards_that_are_away_are_told_apart_from_replicas() -> None:
    servers = [
        (1, "a:9000", True),
        (1, "b:9000", False),
        (1, "c:9000", True),
        (2, "d:9000", False),
        (3, "e:9000", True),
    ]
    replicas = [Replica(*server) for server in servers]
    assert told_away(replicas) == [
        "1 of 3 replicas of shard 1 (b:9000) does not answer",
        "shard 2 (d:9000) does not answer: what needs its rows is refused",
    ]
    assert told_away(()) == []


def test_a_server_that_is_listed_twice_answers_twice() -> None:
    class Listing(LedgerStore):
        def frame(self, query: str, parts: Parts = (), **parameters: object) -> pl.DataFrame:
            assert query == "replicas"
            servers = [(1, "a:9000", 1), (2, "b:9000", 1), (3, "a:9000", 0), (3, "c:9000", 0)]
            return pl.DataFrame(servers, schema=["shard", "address", "up"], orient="row")

    store = Listing()
    store._layout = Layout(cluster="main", shards=3)
    assert [replica.up for replica in read_replicas(store)] == [True, True, True, False]


def test_a_store_that_is_not_split_is_not_asked_for_shards() -> None:
    store = LedgerStore("prices")
    require_shards(store)
    assert not store.queries
