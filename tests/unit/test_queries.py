"""The queries in sql/queries."""

import re
from collections import Counter
from pathlib import Path

from analytics_service.clickhouse.queries import query_texts, sql_scripts

ROOT = Path(__file__).parents[2]
QUERIES = [query for script in sql_scripts("queries") for query in query_texts(script.read_text("utf-8"))]


def test_each_query_has_a_name_of_its_own_that_says_what_it_does_to_what() -> None:
    counts = Counter(name for name, _ in QUERIES)
    assert [name for name, count in counts.items() if count > 1 or not re.fullmatch("[a-z]+(_[a-z0-9]+)+", name)] == []


def test_each_query_is_introduced_by_a_comment() -> None:
    assert [name for name, text in QUERIES if not text.startswith("-- ")] == []


def test_each_query_is_used() -> None:
    code = "".join(path.read_text("utf-8") for folder in ("analytics_service", "jobs") for path in _modules(folder))
    assert [name for name, _ in QUERIES if not re.search(rf"[\"']{name}[\"']", code)] == []


def _modules(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))
