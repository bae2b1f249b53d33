"""The shards that a store was made for: rows are looked for where the shards of the cluster say that they are.

On a cluster whose number or order of shards, or their weights, have changed, new rows of a key would lie on another
shard than its old ones, and answers would be wrong. So the store records its shards. Servers read their configuration
again while they run, so the shards are compared whenever rows were read or are to be written.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from analytics_service.errors import OtherShards, SchemaError
from analytics_service.store.connection import Store
from analytics_service.store.layout import SPLIT

# The number under which migrations record the shards.
SHARDS = 65_535


@dataclass(frozen=True, slots=True)
class Replica:
    """A server of the cluster: the number of its shard, from 1, its host and port as configured, and whether it
    answers."""

    shard: int
    address: str
    up: bool


def read_replicas(store: Store) -> Sequence[Replica]:
    """The servers of the cluster, in order; none without one. Takes up to some seconds while one hangs."""
    if not (cluster := store.layout.cluster):
        return []
    rows = store.frame("replicas", store.layout.on_all_servers("one"), cluster=cluster)
    # An address may be listed twice. Then ClickHouse asks it once.
    up = {address for _, address, is_up in rows.iter_rows() if is_up}
    return [Replica(shard, address, address in up) for shard, address, _ in rows.iter_rows()]


def told_away(replicas: Sequence[Replica]) -> list[str]:
    """The shards, and replicas of others, that do not answer, in plain words."""
    words = []
    for shard, group in groupby(replicas, lambda replica: replica.shard):
        members = [*group]
        away = [replica.address for replica in members if not replica.up]
        of = f" ({', '.join(away)})"
        if len(away) == len(members):
            words.append(f"shard {shard}{of} does not answer: what needs its rows is refused")
        elif away:
            do = "does" if len(away) == 1 else "do"
            words.append(f"{len(away)} of {len(members)} replicas of shard {shard}{of} {do} not answer")
    return words


def require_same_tables(store: Store) -> None:
    """SchemaError if servers of a cluster that answer have different tables: a CREATE failed on some, one was added, or
    one was away and has not executed yet what the others have."""
    if not (cluster := store.layout.cluster):
        return
    rows = store.frame("differing_tables", store.layout.on_all_servers("tables"), database=store.database)
    if names := rows["name"].to_list():
        raise SchemaError(
            f"Each table must be on all servers of cluster {cluster}, under the same UUID; {', '.join(names)} are not. "
            f"If the database {store.database} is new, drop it on all servers and migrate again. "
            "`analytics-service example cluster` says how a server is added."
        )


def read_shards(store: Store) -> tuple[str, str]:
    """The shards of the cluster as they are now, each with its weight and its servers, and as they are recorded, empty
    if they are not. The large tables of the store must be split."""
    now, recorded = store.frame("shards", cluster=store.layout.cluster, number=SHARDS).row(0)
    return now, recorded or ""


def require_shards(store: Store) -> None:
    """OtherShards if the cluster's shards are not those that are recorded. Other replicas may have come or gone. Costs
    a query if large tables are split, else nothing."""
    if not store.layout.is_split:
        return
    now, recorded = read_shards(store)
    if not _are_same(recorded, now):
        raise OtherShards(
            f"The store records the shards {recorded or 'of no cluster'}, and {_told(store, now)}. Run "
            "`analytics-service migrate`, which tells whether its rows lie there."
        )


def shards_to_record(store: Store) -> str:
    """The shards to be recorded; empty if that need not be. SchemaError if rows lie elsewhere than the cluster says."""
    now, recorded = read_shards(store) if store.layout.is_split else ("", "")
    if _are_same(recorded, now):
        return ""
    present = set(store.frame("tables")["name"])
    slots = [number for number, shard in enumerate(_split(now), 1) for _ in range(int(shard[0]))]
    for table, key in SPLIT.items():
        parts = {"cluster": f"'{store.layout.cluster}'", "database": f"`{store.database}`", "table": table, "key": key}
        if table in present and store.frame("misplaced", parts, slots=slots)["misplaced"].item():
            raise SchemaError(
                f"Rows of {table} lie on other shards than their keys say: {_told(store, now)}, which is not what the "
                "store was made for. Make the cluster what it was; to grow, restore a backup into another database of "
                "a cluster of another name, as `analytics-service example cluster` says."
            )
    return now


def _told(store: Store, shards: str) -> str:
    return f"cluster {store.layout.cluster} has {len(_split(shards))} (weight and servers of each: {shards})"


def _are_same(recorded: str, now: str) -> bool:
    """Whether there are as many shards, of the same weights, each with a server that it had."""
    pairs = list(zip(_split(recorded), _split(now), strict=False))
    is_as_many = len(_split(recorded)) == len(_split(now))
    return is_as_many and all(old[0] == new[0] and {*old[1:]} & {*new[1:]} for old, new in pairs)


def _split(shards: str) -> list[list[str]]:
    return [shard.split() for shard in shards.split(" | ")] if shards else []
