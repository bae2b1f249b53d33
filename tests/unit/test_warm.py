"""The requests that a worker sends to itself before it takes requests from callers."""

import logging
import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analytics_service.app import create_app
from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.server.warm import warm_up
from tests.doubles import FirstHeads

OPEN = Settings(clickhouse_url="http://127.0.0.1:1")
GUARDED = replace(OPEN, api_keys_file=Path(os.devnull))


@pytest.mark.parametrize("settings", [OPEN, GUARDED], ids=["open", "guarded"])
def test_every_request_is_one_that_the_service_accepts(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    """Without a store each is a 503; an unknown path or parameter, or a missing key, would be a 4xx."""
    store = Store(settings)
    app = create_app(settings, store, heads=FirstHeads(store))
    statuses: list[str] = []
    waits: list[float] = []

    def watched(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        def start(status: str, headers: object, exc_info: object = None) -> None:
            statuses.append(status)
            start_response(status, headers)

        return app(environ, start)

    with caplog.at_level(logging.INFO):
        warm_up(watched, 1772366400, waits.append)
    assert set(statuses) == {"503 Service Unavailable"}
    # Callers may request blocks without end, so the wait for those of history is bounded.
    assert waits == [60.0]
    assert f"0 of {len(statuses)} answers" in caplog.text
    # Nobody waits for these answers, so operators are not warned of each.
    assert "GET /" not in caplog.text
