"""How a cluster stores tables, and how statements change for it.

On a cluster of one shard, each replica has a copy of every table. With more shards, large tables are split: a shard has
its rows in the table `<name>_local`, and `<name>` is a Distributed table over these. All other tables have a copy on
every server, so that joins and subqueries find them where the rows are.

Statements have placeholders where a cluster differs. For a single server, all placeholders are empty:

- `{on_cluster}` after a name: all servers execute the statement;
- `{replicated}` before an engine;
- `{copied}` after an engine, or `{copied, }` before its arguments, in tables that are not split;
- `{local}` after the name of a table that is split.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from analytics_service.clickhouse.queries import created_name, fill_placeholders

# The tables that are split, by the column that decides on the shard: all rows for a value of it are on the same one.
SPLIT = {
    "observation": "asset_id",
    "rollup": "asset_id",
    "position_change": "address",
    "position_digest": "address",
    "event_version": "address",
}
# Database engines: one whose servers send DDL to each other, and ClickHouse Cloud's, whose servers share all tables.
REPLICATED, _SHARED = "Replicated", "Shared"
# The path in ClickHouse Keeper of a table that is copied to all servers. By default it is copied within its shard.
_EVERYWHERE = "'/clickhouse/tables/{uuid}/everywhere', '{shard}-{replica}'"

# INSERTs wait for a majority of copies, and reads see all such INSERTs. So a table takes one INSERT at a time; another
# is refused, and retried later. A retried INSERT also reaches views that it missed. Rewrites insert all months at once.
_REPLICAS: Mapping[str, str | int] = {
    "insert_quorum": "auto",
    "insert_quorum_parallel": 0,
    # Milliseconds; the default is ten minutes.
    "insert_quorum_timeout": 20_000,
    "select_sequential_consistency": 1,
    "deduplicate_blocks_in_dependent_materialized_views": 1,
    "max_partitions_per_insert_block": 0,
    # DDL fails unless all servers execute it within this many seconds; the default is 180.
    "distributed_ddl_task_timeout": 15,
}
# An answer covers all shards, and so do subqueries. An INSERT ends when all shards have their rows.
_SHARDS: Mapping[str, str | int] = {
    "skip_unavailable_shards": 0,
    "distributed_foreground_insert": 1,
    "distributed_product_mode": "global",
    "parallel_distributed_insert_select": 0,
}
# Researchers need these, too, so that a view never shows a part of a snapshot.
_READING = ("select_sequential_consistency", "skip_unavailable_shards", "distributed_product_mode")


@dataclass(frozen=True, slots=True)
class Cluster:
    """The layout of a store; the default is a single server. `engine` is the database's engine, empty before it exists.
    `cluster` is the cluster's name, and `shards` counts its shards, 0 without a cluster."""

    engine: str = ""
    cluster: str = ""
    shards: int = 0

    @property
    def settings(self) -> Mapping[str, str | int]:
        if self.engine == _SHARED:
            return {"select_sequential_consistency": 1}
        if not self.is_replicated:
            return {}
        return {**_REPLICAS, **_SHARDS} if self.is_split else _REPLICAS

    @property
    def reading_settings(self) -> Mapping[str, str | int]:
        """Settings of researchers' queries."""
        return {name: value for name, value in self.settings.items() if name in _READING}

    def fits(self, engine: str) -> bool:
        """Whether a large table has this engine."""
        kinds = [kind for kind in ("Distributed", "Replicated") if engine.startswith(kind)]
        return kinds == (["Distributed"] if self.is_split else ["Replicated"] if self.is_replicated else [])

    @property
    def placeholders(self) -> Mapping[str, str]:
        everywhere = _EVERYWHERE if self.is_split else ""
        on_all = self.is_replicated and self.engine != REPLICATED
        return {
            "on_cluster": f" ON CLUSTER '{self.cluster}'" if on_all else "",
            "replicated": "Replicated" if self.is_replicated else "",
            "copied": everywhere and f"({everywhere})",
            "copied, ": everywhere and f"{everywhere}, ",
            "local": "_local" if self.is_split else "",
        }

    def rendered(self, statement: str, database: str) -> list[str]:
        """A statement with its placeholders filled, for execution in `database`. DDL of a split table becomes two
        statements: for its local tables, then for the Distributed table. A DELETE is for the local tables only."""
        both = [statement]
        if self.is_split and "{local}" in statement and not statement.startswith("DELETE"):
            distributed = statement.replace("{local}", "")
            if table := created_name(statement):
                distributed = (
                    f"CREATE TABLE IF NOT EXISTS {table}{{on_cluster}} AS {table}{{local}}\n"
                    f"ENGINE = Distributed('{self.cluster}', '{database}', '{table}{{local}}', "
                    f"cityHash64({SPLIT[_original(table)]}))"
                )
            both.append(distributed)
        return [fill_placeholders(each, self.placeholders) for each in both]

    def on_all_servers(self, table: str) -> Mapping[str, str]:
        """Placeholders of a query that reads a system table on all servers: `{from}` is the table, and `{server}` a
        server's number."""
        if not self.cluster:
            return {"from": f"system.{table}", "server": "1"}
        return {"from": f"clusterAllReplicas('{self.cluster}', system.{table})", "server": "_shard_num"}

    @property
    def is_replicated(self) -> bool:
        """Whether INSERTs wait for a majority of copies."""
        return self.shards > 0 or self.engine == REPLICATED

    @property
    def is_split(self) -> bool:
        return self.shards > 1 and self.engine != REPLICATED


def quote_identifier(table: str) -> str:
    """The name of a table or staging table, with its placeholder, for DDL."""
    return f"{table}{{local}}" if _original(table) in SPLIT else table


def _original(table: str) -> str:
    return table.partition("_staging_")[0]
