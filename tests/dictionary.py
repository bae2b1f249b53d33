"""Writes sql/DICTIONARY.md: `python -m tests.dictionary`."""

import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.embedded.clickhouse import clickhouse
from analytics_service.store.datasets.histories import HISTORIES
from analytics_service.store.migrations import migrate
from tests.clickhouse import client

DICTIONARY = Path(__file__).parents[1] / "sql" / "DICTIONARY.md"
# Bookkeeping of the service, without columns in the dictionary: researchers do not need them.
_BOOKKEEPING = frozenset(
    {
        "job_run",
        "owner",
        "position_digest",
        "rewrite",
        "schema_migration",
        "snapshot_head",
        "write_lock",
    }
)
# So many tables must have a column with the same type and comment for it to be described in front of them.
_SHARED_BY = 3
# The page says once that all tables are read with FINAL.
_ADVICE = re.compile(r"(;|, and) query with FINAL.*")
_PLAIN = re.compile(r"LowCardinality\((\w+)\)|DateTime\('UTC'\)")
# ClickHouse tells the columns of a view with parameters in its statement only.
_DECLARED = re.compile(r"`(\w+)` (\S+|\S+\(.*?\)) COMMENT '((?:[^'\\]|\\.)*)'[,)]")
_COLUMNS = """
SELECT t.name, t.engine = 'View', t.comment, t.create_table_query, c.name, c.type, c.comment
FROM system.tables AS t
LEFT JOIN system.columns AS c ON c.database = t.database AND c.table = t.name
WHERE t.database = currentDatabase() AND t.engine != 'MaterializedView'
ORDER BY t.name, c.position
"""


class Column(NamedTuple):
    name: str
    kind: str
    meaning: str


class Table(NamedTuple):
    name: str
    is_view: bool
    meaning: str
    columns: Sequence[Column]


def dictionary(settings: Settings) -> str:
    return "\n".join(_dictionary(_tables(settings))) + "\n"


def _tables(settings: Settings) -> list[Table]:
    with client(settings) as own:
        rows = own.query(_COLUMNS).result_rows
    return [
        Table(
            name,
            bool(is_view),
            _ADVICE.sub("", meaning),
            [Column(*row[4:]) for row in columns if row[4]] or _declared(statement),
        )
        for (name, is_view, meaning, statement), columns in groupby(rows, itemgetter(0, 1, 2, 3))
    ]


def _declared(statement: str) -> list[Column]:
    """The columns that a statement declares."""
    return [Column(name, kind, text.replace("\\", "")) for name, kind, text in _DECLARED.findall(statement)]


def _dictionary(tables: Sequence[Table]) -> list[str]:
    views = [table for table in tables if table.is_view]
    own = [table for table in tables if table.name in _BOOKKEEPING]
    others = [table for table in tables if table not in views and table not in own]
    shared = _frequent(others, _SHARED_BY)

    def shared_by(table: Table) -> str:
        return ", ".join(f"`{column.name}`" for column in table.columns if column in shared)

    lines = ["# Data dictionary", "", "From the comments of the schema, as `DESCRIBE TABLE` shows them, too.", ""]
    lines += [*_views(views), "", "## Columns of many tables", "", *map(_described, shared)]
    for names, group in groupby(sorted(others, key=shared_by), shared_by):
        lines += ["", f"## Tables with {names}" if names else "## Tables with columns of their own only"]
        lines += _group(list(group), shared)
    lines += ["", "## Bookkeeping of the service", ""]
    return lines + [f"- {table.name}: {table.meaning}" for table in own]


def _group(tables: Sequence[Table], described: Sequence[Column]) -> list[str]:
    """Tables with the columns that were not described yet: first those that all of several tables have."""
    common = [column for column in _frequent(tables, max(len(tables), 2)) if column not in described]
    lines = ["", "They also have:", "", *map(_described, common)] if common else []
    for table in tables:
        lines += ["", f"### {table.name}", "", f"{table.meaning}.", ""]
        lines += [_described(column) for column in table.columns if column not in (*described, *common)]
    return lines


def _views(views: Sequence[Table]) -> list[str]:
    """Views of histories, which have all columns but one in common with others, and the rest."""
    by_asset = {history.name for history in HISTORIES if history.by_asset}
    alike = {
        "Histories by asset": by_asset,
        "Histories of the whole protocol": {history.name for history in HISTORIES} - by_asset,
        "Means and candles": {f"{name}_{period}" for name in by_asset for period in ("hourly", "daily")},
    }
    lines: list[str] = []
    for heading, names in alike.items():
        lines += _alike(heading, [view for view in views if view.name in names])
    lines += ["## Other views"]
    for view in views:
        if view.name not in set().union(*alike.values()):
            lines += ["", f"### {view.name}", "", f"{view.meaning}.", *([""] if view.columns else [])]
            lines += map(_described, view.columns)
    return lines


def _alike(heading: str, views: Sequence[Table]) -> list[str]:
    """Views with the same columns but for one."""
    shared = _frequent(views, len(views))
    (meaning,) = {view.meaning.replace(view.name, "NAME") for view in views}
    lines = [f"## {heading}", "", f"{meaning}.", "", *map(_described, shared), ""]
    lines += ["view | its own column | meaning", "---|---|---"]
    for view in views:
        (own,) = [column for column in view.columns if column not in shared]
        lines.append(f"{view.name} | {own.name} | {own.meaning}")
    return [*lines, ""]


def _frequent(tables: Sequence[Table], least: int) -> list[Column]:
    """The columns that at least so many of the tables have, with the same type and comment."""
    counts = Counter(column for table in tables for column in table.columns)
    return [column for column, count in counts.items() if count >= least]


def _described(column: Column) -> str:
    """A line about a column. Readers of Markdown would take `<group>` for HTML."""
    return f"- `{column.name}` {_PLAIN.sub(_plain, column.kind)}: {column.meaning}".replace("<", r"\<")


def _plain(kind: re.Match[str]) -> str:
    """A type without what a reader of its values does not see: how it is stored, and the zone, which is always UTC."""
    return kind[1] or "DateTime"


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        clickhouse(Settings(data_dir=Path(folder)), "dictionary") as settings,
        closing(Store(settings)) as store,
    ):
        migrate(store)
        DICTIONARY.write_text(dictionary(settings), "utf-8")


if __name__ == "__main__":
    main()
