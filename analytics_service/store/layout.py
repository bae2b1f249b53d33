"""How the tables of a store are spread over servers, and what that makes of statements written for a single one.

On a cluster of one shard, each replica has a copy of every table. With more shards, large tables are split: a shard has
its rows in the table `<name>_local`, and `<name>` is a Distributed table over these. All other tables have a copy on
every server of the cluster, so that joins and subqueries find it where the rows are.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

# The tables that are split, by the column that decides on the shard: all rows for a value of it are on the same one.
SPLIT = {
    "observation": "asset_id",
    "cell": "asset_id",
    "position": "address",
    "position_digest": "address",
    "event": "address",
    "account_event": "address",
}
_LOCAL = "_local"
# Engines of databases whose servers send DDL to each other, and of ClickHouse Cloud, whose servers share all tables.
REPLICATED, _SHARED = "Replicated", "Shared"
# The name of copies in ClickHouse Keeper. By default a table is copied within its shard, this way to all servers.
_EVERYWHERE = "'/clickhouse/tables/{uuid}/everywhere', '{shard}-{replica}'"

# Forms of statements.
_CREATE = re.compile(r"CREATE TABLE IF NOT EXISTS (\w+)(.*)", re.DOTALL)
_ALTER = re.compile(r"ALTER TABLE (\w+)(.*)", re.DOTALL)
_ATTACH = re.compile(r"ALTER TABLE (\w+) ATTACH PARTITION ALL FROM (\w+)")
_LIST = re.compile(r"(DROP TABLE IF EXISTS|EXCHANGE TABLES) (.+?)( SYNC)?")
_WHOLE = re.compile(
    r"((?:CREATE|ALTER|DROP) (?:OR REPLACE )?(?:DATABASE|MATERIALIZED VIEW|VIEW|USER|SETTINGS PROFILE) "
    r"(?:IF (?:NOT )?EXISTS )?(?:\w+|`[^`]+`)|GRANT)( .*|\n.*|)",
    re.DOTALL,
)
# Parts of these, and the name of a split table's part.
_ENGINE = re.compile(r"ENGINE = (\w*MergeTree)(?:\(([^)]*)\))?")
_COPY_OF = re.compile(r"(?<=\A AS )\w+\Z")
_COMMENT = re.compile(r"\nCOMMENT '[^\n]+'\Z")
_UNQUOTED = re.compile(r"(?<![\w`])\w+(?![\w`])")
_PART = rf"\g<0>{_LOCAL}"

# Writes to a majority, and reads that have all of these writes. For that a table takes one INSERT at a time; another is
# refused, and repeated later. A repeated INSERT also reaches views that it did not reach before. No statement waits for
# a replica that is away. Rewrites insert all months at once.
_REPLICAS: Mapping[str, str | int] = {
    "insert_quorum": "auto",
    "insert_quorum_parallel": 0,
    # Milliseconds, by default ten minutes.
    "insert_quorum_timeout": 20_000,
    "select_sequential_consistency": 1,
    "deduplicate_blocks_in_dependent_materialized_views": 1,
    "lightweight_deletes_sync": 1,
    "max_partitions_per_insert_block": 0,
}
# An answer has all shards, and an INSERT ends when all have their rows. Subqueries see all shards, too.
_SHARDS: Mapping[str, str | int] = {
    "skip_unavailable_shards": 0,
    "distributed_foreground_insert": 1,
    "distributed_product_mode": "global",
    "parallel_distributed_insert_select": 0,
}


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of a store: by default that of a single server.

    `engine` is that of the database; empty before there is one. `cluster` names the servers that share the work, and
    `shards` counts its shards, 0 without a cluster.
    """

    engine: str = ""
    cluster: str = ""
    shards: int = 0

    @property
    def settings(self) -> Mapping[str, str | int]:
        """Settings of every statement."""
        if self.engine == _SHARED:
            return {"select_sequential_consistency": 1}
        if not self._is_replicated:
            return {}
        return {**_REPLICAS, **_SHARDS} if self._is_split else _REPLICAS

    def fits(self, engine: str) -> bool:
        """Whether a large table has this engine."""
        kinds = [kind for kind in ("Distributed", "Replicated") if engine.startswith(kind)]
        return kinds == (["Distributed"] if self._is_split else ["Replicated"] if self._is_replicated else [])

    def rendered(self, statement: str, database: str) -> list[str]:
        """A statement, written for a single server, as statements for this layout. `database` is where it is executed.

        On a cluster, staged rows are inserted rather than attached, because only an INSERT waits for a majority.
        """
        if not self._is_replicated:
            return [statement]
        if match := _ATTACH.fullmatch(statement):
            return ["INSERT INTO {} SELECT * FROM {}".format(*match.groups())]
        if match := _CREATE.fullmatch(statement):
            return self._created(match[1], match[2], database)
        if match := _ALTER.fullmatch(statement):
            return self._altered(match[1], match[2])
        if match := _LIST.fullmatch(statement):
            verb, names, sync = match.groups()
            return [f"{verb} {self._with_parts(verb, names)}{self._on_cluster}{sync or ''}"]
        if match := _WHOLE.fullmatch(statement):
            return [f"{match[1]}{self._on_cluster}{match[2]}"]
        return [statement]

    @property
    def _is_replicated(self) -> bool:
        return self.shards > 0 or self.engine == REPLICATED

    @property
    def _is_split(self) -> bool:
        return self.shards > 1 and self.engine != REPLICATED

    @property
    def _on_cluster(self) -> str:
        """Makes a statement one for all servers, unless the database does."""
        return "" if self.engine == REPLICATED else f" ON CLUSTER '{self.cluster}'"

    def _key(self, table: str) -> str | None:
        """The column by which a table is split, also for its staging tables; None if it is not."""
        return SPLIT.get(table.partition("_staging_")[0]) if self._is_split else None

    def _created(self, table: str, definition: str, database: str) -> list[str]:
        """Statements that create a table."""
        create, key = "CREATE TABLE IF NOT EXISTS", self._key(table)
        copied = "" if key or not self._is_split else _EVERYWHERE
        definition = definition.replace("non_replicated_deduplication", "replicated_deduplication")
        definition = _ENGINE.sub(lambda engine: _replicated(engine[1], copied, engine[2]), definition, count=1)
        if not key:
            return [f"{create} {table}{self._on_cluster}{definition}"]
        part, comment = table + _LOCAL, _COMMENT.search(definition)
        return [
            f"{create} {part}{self._on_cluster}{_COPY_OF.sub(_PART, definition)}",
            f"{create} {table}{self._on_cluster} AS {part}\n"
            f"ENGINE = Distributed('{self.cluster}', '{database}', '{part}', cityHash64({key}))"
            f"{comment[0] if comment else ''}",
        ]

    def _altered(self, table: str, change: str) -> list[str]:
        """Statements that alter a table. All copies of it follow."""
        if not self._key(table):
            return [f"ALTER TABLE {table}{change}"]
        return [f"ALTER TABLE {each}{self._on_cluster}{change}" for each in (table + _LOCAL, table)]

    def _with_parts(self, verb: str, names: str) -> str:
        """The tables that are to be dropped or exchanged in place of these. Distributed tables stay where they are."""
        both = _PART if verb.startswith("EXCHANGE") else rf"\g<0>, {_PART}"
        return _UNQUOTED.sub(lambda name: name.expand(both) if self._key(name[0]) else name[0], names)


def _replicated(engine: str, copied: str, arguments: str | None) -> str:
    """An engine whose tables have copies, by default those of a shard."""
    return f"ENGINE = Replicated{engine}({', '.join(filter(None, (copied, arguments)))})"
