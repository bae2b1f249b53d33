"""What gunicorn and the application log, as other programs read it."""

import json
from pathlib import Path
from typing import Any

from tests.acceptance.bare import answers, gunicorn, sent
from tests.acceptance.conftest import Service
from tests.processes import PATIENCE, free_port, until


def request_id(response: bytes) -> str:
    """The id in a response's head."""
    lines = response.partition(b"\r\n\r\n")[0].decode().lower().splitlines()
    (line,) = [line for line in lines if line.startswith("x-request-id: ")]
    return line.partition(": ")[2]


def get(path: bytes, headers: bytes = b"") -> bytes:
    return b"GET " + path + b" HTTP/1.1\r\nHost: here\r\nConnection: close\r\n" + headers + b"\r\n"


def test_an_error_of_a_command_is_a_line_of_json(own: Service) -> None:
    """Also where click would print several, and where the settings are wrong."""
    own.environ = {"ANALYTICS_LOG_FORMAT": "json", "ANALYTICS_TZ": "Mars"}
    code, printed = own.done("up", "--bind", "8000")
    assert (code, json.loads(printed)["level"]) == (2, "error")


def test_every_line_is_json_and_those_of_a_request_have_its_id(tmp_path: Path) -> None:
    """The lines of a worker's own first requests are no requests of clients. That the store cannot be reached is said
    once."""
    port, log = free_port(), tmp_path / "log"
    settings = {"ANALYTICS_LOG_FORMAT": "json", "ANALYTICS_ACCESS_LOG": "true"}
    settings["ANALYTICS_CLICKHOUSE_PASSWORD"] = "sesame"
    with log.open("wb") as file, gunicorn(tmp_path, port, log=file.fileno(), **settings) as process:
        until(lambda: answers(port))
        assert request_id(sent(port, get(b"/docs?", b"X-Request-ID: mine.1\r\n"))) == "mine.1"
        unknown = request_id(sent(port, get(b"/nothing")))
        unreadable = request_id(sent(port, b"nonsense\r\n\r\n"))
        forged = request_id(sent(port, get(b"/a%0Ab")))
        failed = request_id(sent(port, get(b"/api/v1/assets")))
        assert [sent(port, get(path))[9:12] for path in (b"/api/v1/assets", b"/readyz")] == [b"503"] * 2
        process.terminate()
        assert process.wait(PATIENCE) == 0
    printed = log.read_text("utf-8")
    events: list[dict[str, Any]] = [json.loads(line) for line in printed.splitlines()]
    assert all({"time", "level", "logger", "message", "request_id", "exception"} <= event.keys() for event in events)
    assert any(event["logger"] == "gunicorn.error" and "Listening at" in event["message"] for event in events)
    logged = {event["request_id"]: event for event in events if event["logger"] == "analytics_service.access"}
    shown = ("client", "method", "path", "route", "status", "cache")
    assert [logged["mine.1"][name] for name in shown] == ["127.0.0.1", "GET", "/docs", "/docs", 200, None]
    assert [logged[unknown][name] for name in shown] == ["127.0.0.1", "GET", "/nothing", "unknown", 404, None]
    assert logged[forged]["path"] == "/a%0Ab"
    assert unreadable not in logged
    assert (logged[failed]["route"], logged[failed]["status"]) == ("/api/v1/assets", 503)
    failure, *_ = [event for event in events if event["logger"] == "analytics_service.http.errors"]
    assert (failure["request_id"], failure["level"]) == (failed, "warning")
    messages = [event["message"] for event in events]
    refused = "The ledger cannot be read: ClickHouse at http://127.0.0.1:1 cannot be reached: connection refused."
    assert messages.count(refused) == 1
    assert not any(text in printed for text in ("sesame", "(None)", "Traceback"))
