"""What browsers are told: which origins may read an answer, and that nothing is loaded for it or framed."""

from dataclasses import replace

import pytest

from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.http.docs import POLICY
from tests.integration.routes import Client, client_of

ELSEWHERE = {"Origin": "https://dash.example"}
CROSS_ORIGIN = ("access-control-allow-origin", "access-control-expose-headers")


def test_browsers_may_read_the_etag_and_errors_from_another_origin(two_assets: Client) -> None:
    answer = two_assets.simulate_get("/healthz", headers=ELSEWHERE)
    assert "ETag" in answer.headers["access-control-expose-headers"].split(", ")
    error = two_assets.simulate_get("/nowhere", headers=ELSEWHERE)
    assert error.headers["access-control-allow-origin"] == "*"


def test_an_answer_cached_for_a_caller_without_an_origin_is_readable_in_browsers(two_assets: Client) -> None:
    """Answers do not vary by origin, so they need the same headers with and without one."""
    without, with_origin = (two_assets.simulate_get("/healthz", headers=headers) for headers in ({}, ELSEWHERE))
    names = (*CROSS_ORIGIN, "vary")
    assert [without.headers.get(name) for name in names] == [with_origin.headers[name] for name in names]


def test_only_the_origins_in_the_setting_are_allowed(settings: Settings, store: Store) -> None:
    client = client_of(replace(settings, cors_origins="https://a.example, https://b.example"), store)
    allowed, refused = (
        client.simulate_get("/healthz", headers={"Origin": f"https://{name}.example"}) for name in ("b", "c")
    )
    assert allowed.headers["access-control-allow-origin"] == "https://b.example"
    assert allowed.headers["vary"] == "Accept-Encoding, Origin"
    assert "access-control-allow-origin" not in refused.headers


@pytest.mark.parametrize("path", ["/healthz", "/docs", "/api/v1/assets/prices", "/nothing"])
def test_browsers_are_told_to_load_and_frame_nothing(two_assets: Client, path: str) -> None:
    """tests/unit/test_pages.py has the policy of the web pages."""
    headers = two_assets.simulate_get(path).headers
    assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "no-referrer")
    policy = POLICY if path == "/docs" else "default-src 'none'; frame-ancestors 'none'"
    assert headers["content-security-policy"] == policy
