"""The views that people read: sql/views, made again by each migration."""

import re
from collections.abc import Iterator, Mapping
from functools import cache

from analytics_service.store.histories import HISTORIES
from analytics_service.store.sql import filled, scripts, statements, without_comments

_NAMED = re.compile(r"^CREATE OR REPLACE VIEW (\w+)", re.MULTILINE)
# Scripts that make several views, with what they put in place of {placeholders} for each.
_EACH: Mapping[str, list[dict[str, str]]] = {
    "01_histories": [
        {"name": history.name, "value": history.value, "meaning": history.meaning} for history in HISTORIES
    ],
    "04_markets": [
        {"name": "market_now", "period": "family", "when": "the newest snapshot"},
        {"name": "market", "period": "at", "when": "each snapshot"},
        {"name": "market_hour", "period": "toStartOfHour(at)", "when": "the last snapshot of each hour"},
        {"name": "market_day", "period": "toStartOfDay(at)", "when": "the last snapshot of each UTC day"},
    ],
}


@cache
def view_statements() -> tuple[str, ...]:
    """The statements that create all views, in order."""
    return tuple(_statements())


def view_names() -> list[str]:
    """The names of all views."""
    return [_NAMED.findall(statement)[0] for statement in view_statements()]


def _statements() -> Iterator[str]:
    functions, runs, *views = scripts("views")
    shared = {script.stem[3:]: without_comments(script.read_text("utf-8")) for script in (functions, runs)}
    for script in views:
        for statement in statements(script.read_text("utf-8")):
            for placeholders in _EACH.get(script.stem, [{}]):
                yield filled(statement, {**placeholders, **shared})
