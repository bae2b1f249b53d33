"""Whether the shards of a cluster are those that a store was made for."""

import logging
from datetime import UTC, datetime

import pytest

from analytics_service.clickhouse.cluster import Cluster
from analytics_service.errors import NotReady, OtherShards
from analytics_service.state.health import Monitor
from analytics_service.state.watcher import HeadWatcher
from analytics_service.store.schema import require_shards, shards_to_record
from tests.doubles import NOON, LedgerStore

# Weight and servers of two shards.
MADE_FOR = "1 a:9000 b:9000 | 1 c:9000 d:9000"


@pytest.fixture
def store() -> LedgerStore:
    store = LedgerStore("prices")
    store._layout = Cluster("Atomic", "main", 2)
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
        OtherShards, match=r"made for the shards 1 a:9000 b:9000 \| 1 c:9000 d:9000, and cluster main has"
    ):
        require_shards(store)


def test_shards_that_are_not_recorded_are_refused(store: LedgerStore) -> None:
    store.shards = (MADE_FOR, "")
    with pytest.raises(OtherShards, match="made for the shards of no cluster"):
        require_shards(store)


def test_shards_are_recorded_once_and_again_when_replicas_have_come(store: LedgerStore) -> None:
    store.shards = (MADE_FOR, "")
    assert shards_to_record(store) == MADE_FOR
    store.shards = (MADE_FOR, MADE_FOR)
    assert shards_to_record(store) == ""
    store.shards = ("1 b:9000 e:9000 | 1 d:9000", MADE_FOR)
    assert shards_to_record(store) == "1 b:9000 e:9000 | 1 d:9000"
    store.shards = (f"{MADE_FOR} | 1 e:9000", MADE_FOR)
    with pytest.raises(OtherShards):
        shards_to_record(store)


def test_a_change_while_the_service_runs_closes_answers_within_seconds(
    store: LedgerStore, caplog: pytest.LogCaptureFixture
) -> None:
    """For good: what was read before the look may be in memory."""
    now = 100.0
    heads = HeadWatcher(store, interval=None, clock=lambda: now)
    assert heads.shown().head("prices")
    store.shards = (f"{MADE_FOR} | 1 e:9000", MADE_FOR)
    now = 105.0
    with caplog.at_level(logging.ERROR):
        heads.look()
        store.shards = (MADE_FOR, MADE_FOR)
        heads.look()
    with pytest.raises(
        NotReady, match=r"shards of cluster main differ from the shards that the store records\..* restart the service"
    ):
        heads.shown()
    monitor = Monitor(heads, dict, lambda: datetime.fromtimestamp(NOON, UTC), is_configured=False)
    (obstacle,) = monitor.obstacles()
    assert obstacle.startswith("the shards of cluster main differ from the shards that the store records")
    assert [record.message.count("1 e:9000") for record in caplog.records] == [1]


def test_a_store_that_is_not_split_is_not_asked_for_shards() -> None:
    store = LedgerStore("prices")
    require_shards(store)
    assert not store.queries
