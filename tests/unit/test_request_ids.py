"""The id of a request, in its response and in its log lines (rule 7.3), and the access log."""

import logging
import re
from pathlib import Path
from typing import Any

import falcon.testing
import pytest

from analytics_service.app import create_app
from analytics_service.config.settings import Settings
from analytics_service.http.api_keys import add_key
from analytics_service.http.errors import malformed_request
from analytics_service.logs import ACCESS, FIELDS, REQUEST_ID

NEW = re.compile(r"[0-9a-f]{16}")


def client_of(**settings: Any) -> falcon.testing.TestClient:
    return falcon.testing.TestClient(create_app(Settings(clickhouse_url="http://127.0.0.1:1", **settings)))


@pytest.fixture(scope="module")
def client() -> falcon.testing.TestClient:
    return client_of()


@pytest.mark.parametrize(
    ("given", "shown"),
    [("A-1_b.2", r"A-1_b\.2"), ("0" * 64, "0{64}"), *((other, NEW) for other in ("", "a b", "0" * 65, "ä"))],
)
def test_a_plain_id_is_kept_and_another_one_is_replaced(
    client: falcon.testing.TestClient, given: str, shown: str
) -> None:
    headers = client.simulate_get("/healthz", headers={"X-Request-ID": given}).headers
    assert re.fullmatch(shown, headers["x-request-id"])


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/healthz"),
        ("GET", "/healthz?a=1"),
        ("GET", "/nothing"),
        ("GET", "//"),
        ("HEAD", "/docs"),
        ("OPTIONS", "/readyz"),
        ("POST", "/readyz"),
    ],
)
def test_every_response_has_an_id_of_its_own(client: falcon.testing.TestClient, method: str, path: str) -> None:
    route, _, query = path.partition("?")
    ids = {client.simulate_request(method, route, query_string=query).headers["x-request-id"] for _ in range(2)}
    assert len(ids) == 2
    assert all(map(NEW.fullmatch, ids))
    assert REQUEST_ID.get() == ""


def test_requests_that_cannot_be_read_have_one() -> None:
    assert b"\r\nX-Request-ID: abc\r\n" in malformed_request("request_malformed", "abc", any_origin=True)


def test_keys_are_logged_by_name(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Wrong keys have no name."""
    file = tmp_path / "keys.txt"
    key = add_key(file, "alice")
    client = client_of(access_log=True, api_keys_file=file)
    with caplog.at_level(logging.INFO, ACCESS):
        for bearer in (key, f"{key}x"):
            client.simulate_get("/api/v1/nothing", headers={"Authorization": f"Bearer {bearer}"})
    fields = [getattr(record, FIELDS) for record in caplog.records if record.name == ACCESS]
    assert [(line["key"], line["status"]) for line in fields] == [("alice", 404), (None, 401)]
    assert key not in caplog.text
