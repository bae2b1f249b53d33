"""Log lines: their two forms, and the request they belong to."""

import json
import logging
import sys
from collections.abc import Iterator

import pytest

from analytics_service import logs
from analytics_service.logs import REQUEST_ID, JsonFormatter, RateLimited, TextFormatter


@pytest.fixture
def request_id() -> Iterator[str]:
    token = REQUEST_ID.set("r-1")
    yield "r-1"
    REQUEST_ID.reset(token)


def record(level: int = logging.INFO) -> logging.LogRecord:
    """A record of 2026-03-01 12:00:00.250 UTC."""
    made = logging.LogRecord("jobs.runner", level, "", 1, "%s: done.", ("prices",), None)
    made.created = 1772366400.25
    return made


@pytest.mark.usefixtures("request_id")
def test_a_line_of_text_ends_with_its_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    assert TextFormatter().format(record()) == "2026-03-01T12:00:00Z INFO jobs.runner: prices: done. [r-1]"
    REQUEST_ID.set("")
    assert TextFormatter().format(record()) == "2026-03-01T12:00:00Z INFO jobs.runner: prices: done."


def test_on_a_terminal_a_line_takes_the_place_of_a_progress_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert TextFormatter().format(record()).startswith("\r\033[K2026-03-01T12:00:00Z INFO")


def test_a_line_of_json_is_an_object(request_id: str) -> None:
    assert json.loads(JsonFormatter().format(record(logging.WARNING))) == {
        "time": "2026-03-01T12:00:00.250Z",
        "level": "warning",
        "logger": "jobs.runner",
        "message": "prices: done.",
        "request_id": request_id,
        "exception": None,
    }


def test_json_keeps_an_exception_and_further_fields_on_one_line() -> None:
    made = record()
    made.msg, made.args = "two\nlines \ud800", None
    made.__dict__[logs.FIELDS] = {"status": 200}
    try:
        raise ZeroDivisionError("no")
    except ZeroDivisionError as error:
        made.exc_info = (type(error), error, error.__traceback__)
    line = JsonFormatter().format(made)
    assert "\n" not in line
    event = json.loads(line)
    assert (event["message"], event["status"], event["request_id"]) == ("two\nlines \ud800", 200, None)
    assert event["exception"].splitlines()[-1] == "ZeroDivisionError: no"


def test_lines_of_a_kind_come_once_in_ten_seconds_and_the_next_one_counts_them() -> None:
    now = 0.0
    seldom = RateLimited(clock=lambda: now)
    assert [seldom.passes(kind) for kind in ("busy", "busy", "away", "busy")] == ["", None, "", None]
    now = 10.0
    assert [seldom.passes("busy"), seldom.passes("away")] == [" (2 more since the last such line)", ""]
