"""A panic of Polars, which is no Exception, ends a request as any other failure does: answered, named and measured."""

from typing import NoReturn

import falcon.testing
import pytest
from polars.exceptions import PanicException

from analytics_service.app import App, create_app
from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.state.watcher import HeadWatcher
from tests.doubles import LOCAL
from tests.samples import samples

NOWHERE = Settings(clickhouse_url="http://127.0.0.1:1")


class PanickingData(HeadWatcher):
    """Heads that requests for data cannot read."""

    def shown(self) -> NoReturn:
        raise PanicException("a fault of Polars")


class PanickingProbes(HeadWatcher):
    """Heads that probes cannot read."""

    def last_look(self) -> NoReturn:
        raise PanicException("a fault of Polars")


def app_over(heads: type[HeadWatcher]) -> App:
    return create_app(NOWHERE, heads=heads(Store(NOWHERE)))


def fail(app: object, path: str) -> None:
    """Ask for a path, and check that the answer is that to a failed request."""
    answer = falcon.testing.simulate_get(app, path, headers={**LOCAL, "X-Request-ID": "mine.1"})
    assert (answer.status_code, answer.json["error"]["kind"]) == (500, "internal")
    assert answer.headers["x-request-id"] == "mine.1"
    assert "Polars" not in answer.text


def test_a_request_that_panics_is_answered_with_its_id_on_both_binds(caplog: pytest.LogCaptureFixture) -> None:
    fail(app_over(PanickingData), "/api/v1/assets")
    fail(app_over(PanickingProbes).operators, "/readyz")
    assert caplog.text.count("PanicException: a fault of Polars") == 2


def test_a_request_that_panics_is_measured() -> None:
    app = app_over(PanickingData)
    fail(app, "/api/v1/assets")
    metrics = samples(falcon.testing.simulate_get(app.operators, "/metrics", headers=LOCAL).text)
    assert metrics['analytics_request_seconds_count{route="/api/v1/assets",status="500"}'] == 1
