"""The shards that a store was made for.

A row lies on the shard that its key and the number, order and weights of the shards say. On a cluster that has others,
new rows of a key would lie on another shard than its old ones, and answers would be wrong. So the store records its
shards, as `system.clusters` has them when it is made.
"""

from analytics_service.clickhouse.connection import Store
from analytics_service.errors import OtherShards

# The number under which migrations record the shards.
SHARDS = 65_535


def read_shards(store: Store) -> tuple[str, str]:
    """The shards of the cluster as they are now, each with its weight and its servers, and as they are recorded, empty
    if they are not. The large tables of the store must be split."""
    now, recorded = store.frame("read_shards", cluster=store.layout.cluster, number=SHARDS).row(0)
    return now, recorded or ""


def require_shards(store: Store) -> None:
    """OtherShards if the cluster's shards are not those that are recorded. Other replicas may have come or gone. Costs
    a query if large tables are split, else nothing."""
    if store.layout.is_split:
        _require_same(store, *read_shards(store))


def shards_to_record(store: Store) -> str:
    """The shards to be recorded; empty if they are. OtherShards if other ones are."""
    now, recorded = read_shards(store) if store.layout.is_split else ("", "")
    if recorded:
        _require_same(store, now, recorded)
    return "" if now == recorded else now


def _require_same(store: Store, now: str, recorded: str) -> None:
    if not _are_same(recorded, now):
        raise OtherShards(
            f"The store was made for the shards {recorded or 'of no cluster'}, and cluster {store.layout.cluster} has "
            f"{now or 'none'} (weight and servers of each). Make the cluster what it was; `analytics-service example "
            "cluster` copies a store into one of other shards."
        )


def _are_same(recorded: str, now: str) -> bool:
    """Whether there are as many shards, of the same weights, each with a server that it had."""
    pairs = list(zip(_split(recorded), _split(now), strict=False))
    is_as_many = len(_split(recorded)) == len(_split(now))
    return is_as_many and all(old[0] == new[0] and {*old[1:]} & {*new[1:]} for old, new in pairs)


def _split(shards: str) -> list[list[str]]:
    return [shard.split() for shard in shards.split(" | ")] if shards else []
