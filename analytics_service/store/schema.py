"""The schema of this version: migrations and views, which of them a database has, and the shards that it records."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache

from analytics_service.clickhouse.cluster import Cluster
from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.queries import (
    created_name,
    fill_placeholders,
    split_statements,
    sql_scripts,
    without_comments,
)
from analytics_service.errors import OtherShards, SchemaError
from analytics_service.store.datasets.events import EVENTS
from analytics_service.store.datasets.histories import (
    BORROW_RATES,
    HISTORIES,
    LEND_RATES,
    PRICES,
    SUMMED,
    TOTALS,
    History,
)

# The number under which the views are recorded. Scripts are numbered from 1 on.
VIEWS = 0
# The tables of each dataset, other than observations and definitions of assets, which several datasets write.
TABLES: Mapping[str, Sequence[str]] = {
    "prices": (),
    "rates": (),
    "markets": ("market_lend", "market_collateral", "market_debt", "market_config", "market_price"),
    "loans": (EVENTS,),
    "ptoken": ("ptoken_state", "ptoken_pool", "unlock_arrangement"),
    "positions": ("position_change", "position_digest", "position_summary"),
    "routes": ("swap_route",),
}
# Scripts with this prefix are parts of views.
_SHARED = "00_"
# The rollups that means and candles are made from: 15min rollups for an hour, days for a day.
_HOURLY = {
    "suffix": "hourly", "unit": "hour", "width": "15min", "begin": "toStartOfHour(start)", "seconds": "3600",
    "type": "DateTime64(3, 'UTC')", "label": "toDateTime64(second, 3, 'UTC')", "meaning": "Start of the UTC hour",
}  # fmt: skip
_DAILY = {
    "suffix": "daily", "unit": "day", "width": "day", "begin": "start", "seconds": "86400",
    "type": "Date32", "label": "toDate32(toDateTime(second, 'UTC'))", "meaning": "The UTC day",
}  # fmt: skip
# The number under which migrations record the shards.
SHARDS = 65_535


def _for_each(histories: Iterable[History]) -> list[dict[str, str]]:
    return [{"name": history.name, "value": history.value, "meaning": history.meaning} for history in histories]


def _quoted(histories: Iterable[History]) -> str:
    return ", ".join(f"'{history.name}'" for history in histories)


# Scripts that make several views, with the placeholders of each.
_EACH: Mapping[str, list[dict[str, str]]] = {
    "01_histories": _for_each(history for history in HISTORIES if history.by_asset),
    "11_protocol": _for_each(history for history in HISTORIES if not history.by_asset),
    "12_totals": [{"stored": _quoted(TOTALS), "summed": _quoted(SUMMED)}],
    "13_candles": [
        {**unit, "name": f"{history.name}_{unit['suffix']}", "history": history.name, "dataset": history.dataset}
        for history in (PRICES, LEND_RATES, BORROW_RATES)
        for unit in (_HOURLY, _DAILY)
    ],
    "04_markets": [
        {"name": "market_now", "period": "dataset", "when": "the newest snapshot"},
        {"name": "market", "period": "at", "when": "each snapshot"},
        {"name": "market_hour", "period": "toStartOfHour(at)", "when": "the last snapshot of each hour"},
        {"name": "market_day", "period": "toStartOfDay(at)", "when": "the last snapshot of each UTC day"},
    ],
}


@dataclass(frozen=True, slots=True)
class Migration:
    """A numbered script of the schema, with the placeholders of `clickhouse/cluster.py`."""

    number: int
    name: str
    script: str

    @property
    def checksum(self) -> str:
        """SHA-256 of the script for a single server, in hex."""
        return hashlib.sha256(fill_placeholders(self.script, Cluster().placeholders).encode()).hexdigest()

    @property
    def statements(self) -> list[str]:
        return split_statements(self.script)


@dataclass(frozen=True, slots=True)
class Applied:
    """An applied script, as the database has recorded it."""

    number: int
    name: str
    checksum: str


@cache
def shipped_migrations() -> tuple[Migration, ...]:
    """The migrations of this version, in order."""
    return tuple(Migration(int(f.name.split("_")[0]), f.name, f.read_text("utf-8")) for f in sql_scripts("migrations"))


def read_applied(store: Store) -> list[Applied]:
    """The applied scripts and views of the database."""
    return [Applied(*row) for row in store.query("read_migrations").iter_rows()]


def pending_migrations(store: Store, migrations: Sequence[Migration] | None = None) -> list[Migration]:
    """Migrations of this version that the database lacks. SchemaError if the two do not match; OtherShards if the
    shards have changed."""
    applied = read_applied(store)
    require_shards(store)
    return unapplied_migrations(applied, shipped_migrations() if migrations is None else migrations)


def unapplied_migrations(applied: Sequence[Applied], migrations: Sequence[Migration]) -> list[Migration]:
    """The migrations that are missing. SchemaError if an applied script does not match its migration."""
    by_number = {migration.number: migration for migration in migrations}
    applied = [record for record in applied if record.number not in (VIEWS, SHARDS)]
    if any(record.number in by_number and by_number[record.number].name != record.name for record in applied):
        raise SchemaError(
            "An unreleased version before 1.0.0 made this database. It cannot be upgraded: `export` each history and "
            "the events with that version, and `import` them with this version into an empty folder (--data-dir) or "
            "database (ANALYTICS_CLICKHOUSE_DATABASE), as CHANGELOG.md shows."
        )
    for record in applied:
        if record.number not in by_number:
            raise SchemaError(
                f"The database has migration {record.name}, which this version does not know. A newer version has set "
                "it up; install that version again."
            )
        if by_number[record.number].checksum != record.checksum:
            raise SchemaError(
                f"Migration {record.name} was changed after it was applied. Restore the file, and put the change into "
                "a new migration."
            )
    numbers = {record.number for record in applied}
    return [migration for migration in migrations if migration.number not in numbers]


def require_all_applied(missing: Sequence[Migration]) -> None:
    """SchemaError if migrations are missing."""
    if missing:
        names = ", ".join(migration.name for migration in missing)
        raise SchemaError(f"The database lacks {names}; run `analytics-service migrate`.")


def require_current(store: Store) -> None:
    """SchemaError if migrations are missing, or the schema is of another version."""
    require_all_applied(pending_migrations(store))


def tables_of(migrations: Sequence[Migration]) -> list[str]:
    """The tables that migrations create, in order."""
    statements = (statement for migration in migrations for statement in migration.statements)
    return [created_name(statement) for statement in statements if statement.startswith("CREATE TABLE ")]


def tables_made_by(migrations: Sequence[Migration]) -> Mapping[str, str]:
    """The tables and views that migrations create, each with the name of its script."""
    return {
        name: migration.name
        for migration in migrations
        for statement in migration.statements
        if (name := created_name(statement))
    }


def missing_tables(store: Store) -> Mapping[str, str]:
    """Tables and views that a database with this schema has lost, each with the name of its script."""
    present = set(store.query("list_tables")["name"])
    return {name: script for name, script in tables_made_by(shipped_migrations()).items() if name not in present}


def missing_message(lacking: Mapping[str, str]) -> str:
    named = ", ".join(f"{name} (made by {script})" for name, script in lacking.items())
    return f"The database has lost {named}. Restore the last backup with `analytics-service restore FILE --replace`."


def require_all_tables(store: Store) -> None:
    """SchemaError if migrations are missing, or the database has lost tables or views."""
    require_current(store)
    if absent := missing_tables(store):
        raise SchemaError(missing_message(absent))


def view_statements(price_max_age: timedelta) -> list[str]:
    """The statements that create all views, in order. A price older than `price_max_age` is unknown."""
    seconds = str(price_max_age // timedelta(seconds=1))
    return [fill_placeholders(statement, {"price_max_age": seconds}) for statement in _statements()]


def view_names() -> list[str]:
    return [created_name(statement) for statement in _statements()]


@cache
def _statements() -> tuple[str, ...]:
    return tuple(_each_statement())


def _each_statement() -> Iterator[str]:
    all_scripts = sql_scripts("views")
    parts = [script for script in all_scripts if script.stem.startswith(_SHARED)]
    shared = {script.stem.removeprefix(_SHARED): without_comments(script.read_text("utf-8")) for script in parts}
    for name in ("start", "end"):
        shared[name] = shared["instant"].replace("AS instant", f"AS {name}_at").replace("time", name)
    for script in all_scripts[len(parts) :]:
        for statement in split_statements(script.read_text("utf-8")):
            for placeholders in _EACH.get(script.stem, [{}]):
                yield _with_parts(statement, {**placeholders, **shared})


def _with_parts(statement: str, parts: Mapping[str, str]) -> str:
    """A statement with its parts filled in, recursively."""
    whole = fill_placeholders(statement, parts)
    return whole if whole == statement else _with_parts(whole, parts)


def read_shards(store: Store) -> tuple[str, str]:
    """The shards of the cluster now, each with weight and servers, and the recorded shards, or an empty string. Large
    tables must be split."""
    now, recorded = store.query("read_shards", cluster=store.layout.cluster, number=SHARDS).row(0)
    return now, recorded or ""


def require_shards(store: Store) -> None:
    """OtherShards if the cluster's shards are not the recorded shards. Replicas may come and go. Takes a query only if
    large tables are split."""
    if store.layout.is_split:
        _require_same(store, *read_shards(store))


def shards_to_record(store: Store) -> str:
    """The shards to record; empty if they are recorded. OtherShards if others are recorded."""
    now, recorded = read_shards(store) if store.layout.is_split else ("", "")
    if recorded:
        _require_same(store, now, recorded)
    return "" if now == recorded else now


def _require_same(store: Store, now: str, recorded: str) -> None:
    if not _are_same(recorded, now):
        raise OtherShards(
            f"The store was made for the shards {recorded or 'of no cluster'}, and cluster {store.layout.cluster} has "
            f"{now or 'none'} (weight and servers of each). Restore the cluster's shards; `analytics-service example "
            "cluster` shows how to copy a store to other shards."
        )


def _are_same(recorded: str, now: str) -> bool:
    """Whether number and weights of shards agree, and each shard has kept a server."""
    pairs = list(zip(_split(recorded), _split(now), strict=False))
    is_as_many = len(_split(recorded)) == len(_split(now))
    return is_as_many and all(old[0] == new[0] and {*old[1:]} & {*new[1:]} for old, new in pairs)


def _split(shards: str) -> list[list[str]]:
    return [shard.split() for shard in shards.split(" | ")] if shards else []
