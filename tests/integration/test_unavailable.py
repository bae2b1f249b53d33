"""What is answered while the store is away, and that no answer reveals anything internal (rules 3.1 and 8.9)."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from decimal import Decimal

import pytest

from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from tests.doubles import FreshHeads, WatchedStore
from tests.integration.pages import commit
from tests.integration.routes import HISTORY, KINDS, NOON, PRICES, ROUTES, client_of, expect_error, get


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", None])
def test_snapshots_are_unavailable_without_a_store_and_reveal_nothing_internal(url: str | None) -> None:
    client = client_of(Settings(clickhouse_url=url))
    for path in KINDS.values():
        if ROUTES[path].datasets:
            answer = get(client, path)
            message = expect_error(answer, 503, "unavailable", "server")
            assert "127.0.0.1" not in message
            assert "ClickHouse" not in message
            assert int(answer.headers["retry-after"]) > 0


def test_snapshots_are_unavailable_without_tables(settings: Settings) -> None:
    expect_error(get(client_of(settings), "/api/v1/assets"), 503, "unavailable", "server")


class BrokenStore(Store):
    """A store with a programming error."""

    def query(self, query: str, parts: object = (), **parameters: object) -> Iterator[None]:  # type: ignore[override]
        raise RuntimeError("SELECT secret FROM /etc/passwd")


def test_an_unexpected_error_reveals_nothing_internal(settings: Settings) -> None:
    answer = get(client_of(settings, BrokenStore(settings)), "/api/v1/assets")
    assert "secret" not in expect_error(answer, 500, "internal", "server")


def test_rendered_answers_are_served_while_the_store_is_unreachable(settings: Settings, store: Store) -> None:
    """Their Last-Modified shows how old they are. Answers that are not rendered yet are unavailable.

    Without memory for history no thread loads more pages in the background, which would make them available.
    """
    commit(store, {"token;a": [(NOON, Decimal(1))]})
    with closing(WatchedStore(settings)) as watched:
        client = client_of(replace(settings, history_memory=0), watched, heads=FreshHeads)
        rendered = ("/api/v1/assets/prices", PRICES)
        before = [get(client, path) for path in rendered]
        assert [answer.status_code for answer in before] == [200, 200]
        watched.away = True
        after = [get(client, path) for path in rendered]
        assert [(answer.json, dict(answer.headers)) for answer in after] == [
            (answer.json, dict(answer.headers)) for answer in before
        ]
        expect_error(get(client, PRICES, f"{HISTORY}&limit=30"), 503, "unavailable", "server")
