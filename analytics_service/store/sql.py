"""The .sql files that ship with the package: migrations, named queries, examples for researchers."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

# The folder is a sibling of the package, in a checkout and in site-packages alike.
_SQL = Path(__file__).resolve().parents[2] / "sql"
# Addresses in a parameter of a query, which may be 128 KiB long. An address has up to 90 characters.
MOST_ADDRESSES = 1_000
# Fills the placeholders of a query: a text for each by name, or the queries that together fill {parts}.
Parts = Mapping[str, str] | Sequence[str]


def named_query(name: str, parts: Parts) -> str:
    """The SQL of sql/queries/<name>.sql with its placeholders filled; queries for {parts} are joined by UNION ALL."""
    if isinstance(parts, Mapping):
        return _filled(name, tuple(parts.items()))
    return _filled(name, (("parts", _union(tuple(parts))),))


@cache
def _filled(name: str, places: tuple[tuple[str, str], ...]) -> str:
    text = _text(name)
    for place, filling in places:
        text = text.replace(f"{{{place}}}", filling)
    return text


@cache
def _union(names: tuple[str, ...]) -> str:
    return " UNION ALL ".join(map(_text, names))


@cache
def _text(name: str) -> str:
    """The query without comments and line breaks, because the driver scans every character that it sends."""
    lines = (_SQL / "queries" / f"{name}.sql").read_text("utf-8").splitlines()
    return " ".join(line.strip() for line in lines if not line.startswith("--"))


def scripts(folder: str) -> list[Path]:
    """All .sql files of a folder below sql/, by name."""
    return sorted((_SQL / folder).glob("*.sql"))


def statements(script: str) -> list[str]:
    """The statements of a script; each ends with a semicolon at the end of a line."""
    return [part.strip() for part in script.split(";\n") if _has_code(part)]


def _has_code(part: str) -> bool:
    return any(line.strip() and not line.lstrip().startswith("--") for line in part.splitlines())
