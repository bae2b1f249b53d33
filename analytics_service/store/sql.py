"""The .sql files that travel with the package: migrations, named queries, research examples."""

from functools import cache
from pathlib import Path

# The folder stands beside the package, in a checkout and in site-packages alike.
_SQL = Path(__file__).resolve().parents[2] / "sql"


@cache
def named_query(name: str, *parts: str) -> str:
    """The SQL of sql/queries/<name>.sql; {parts} in it stands for the rows of all the queries named `parts`.

    Comments and line breaks stay behind: the driver scans every character of what it sends.
    """
    lines = (_SQL / "queries" / f"{name}.sql").read_text("utf-8").splitlines()
    text = " ".join(line.strip() for line in lines if not line.startswith("--"))
    return text.replace("{parts}", " UNION ALL ".join(named_query(part) for part in parts))


def scripts(folder: str) -> list[Path]:
    """All .sql files of a folder below sql/, by name."""
    return sorted((_SQL / folder).glob("*.sql"))


def statements(script: str) -> list[str]:
    """The statements of a script; each ends with a semicolon at the end of a line."""
    return [part.strip() for part in script.split(";\n") if _has_code(part)]


def _has_code(part: str) -> bool:
    return any(line.strip() and not line.lstrip().startswith("--") for line in part.splitlines())
