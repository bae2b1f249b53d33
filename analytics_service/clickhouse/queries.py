"""The .sql files that ship with the package: migrations, named queries, examples for researchers."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

# The heading of a query in sql/queries.
_HEADING = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
# The folder is a sibling of the package, in a checkout and in site-packages alike.
_SQL = Path(__file__).resolve().parents[2] / "sql"
# Addresses of a query's parameter, which may be 128 KiB long. An address has up to 90 characters.
MAX_ADDRESSES = 1_000
# Values of a query's placeholders: SQL by placeholder, or names of the queries that together fill {parts}.
Placeholders = Mapping[str, str] | Sequence[str]


def named_query(name: str, parts: Placeholders) -> str:
    """A query of sql/queries with its placeholders filled. UNION ALL joins the queries that fill {parts}."""
    if isinstance(parts, Mapping):
        return _filled(name, tuple(parts.items()))
    return _filled(name, (("parts", _union(tuple(parts))),))


@cache
def _filled(name: str, placeholders: tuple[tuple[str, str], ...]) -> str:
    return fill_placeholders(_queries()[name], dict(placeholders))


def fill_placeholders(sql: str, placeholders: Mapping[str, str]) -> str:
    """SQL with these placeholders filled, by name. Parameters stay."""
    for placeholder, filling in placeholders.items():
        sql = sql.replace(f"{{{placeholder}}}", filling)
    return sql


@cache
def _union(names: tuple[str, ...]) -> str:
    return " UNION ALL ".join(_queries()[name] for name in names)


@cache
def _queries() -> Mapping[str, str]:
    """All queries by name, without comments and line breaks, because the driver scans every character."""
    return {
        name: " ".join(line.strip() for line in without_comments(text).splitlines()).strip()
        for topic in sql_scripts("queries")
        for name, text in query_texts(topic.read_text("utf-8"))
    }


def query_texts(script: str) -> list[tuple[str, str]]:
    """The name and the text of each query of a file in sql/queries."""
    _, *parts = _HEADING.split(script)
    return list(zip(parts[::2], parts[1::2], strict=True))


def without_comments(script: str) -> str:
    return "\n".join(line for line in script.splitlines() if not line.lstrip().startswith("--"))


def sql_scripts(folder: str) -> list[Path]:
    """The .sql files of a folder below sql/, by name."""
    return sorted((_SQL / folder).glob("*.sql"))


def split_statements(script: str) -> list[str]:
    """The statements of a script, without comments; each ends with a semicolon at the end of a line."""
    return [part.strip() for part in f"{without_comments(script)}\n".split(";\n") if part.strip()]


def created_name(statement: str) -> str:
    """The name of the table or view that a statement creates, or an empty string. Keywords are in capitals."""
    words = statement.replace("{", " ").split()
    return next(filter(str.islower, words)) if words[0] == "CREATE" else ""
