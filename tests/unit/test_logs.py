"""Log lines: their two forms, the request they belong to, and failures that repeat."""

import io
import json
import logging
import os
from collections.abc import Callable, Iterator

import pytest

from analytics_service import logs
from analytics_service.logs import REQUEST_ID, Handler, JsonFormatter, TextFormatter, configuration
from tests.processes import until


class Clock:
    """A clock that tests advance."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Written:
    """A logger and what its handler has shown, without times."""

    def __init__(self, clock: Callable[[], float], *, wakes: bool = False) -> None:
        self._stream = io.StringIO()
        self.handler = Handler(self._stream, clock, wakes=wakes)
        self.handler.setFormatter(TextFormatter())
        self.log = logging.Logger("service")
        self.log.addHandler(self.handler)

    @property
    def lines(self) -> list[str]:
        return [line.partition(" ")[2] for line in self._stream.getvalue().splitlines()]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def written(clock: Clock) -> Written:
    return Written(clock)


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


def test_a_line_of_text_has_time_level_logger_and_message() -> None:
    assert TextFormatter().format(record()) == "2026-03-01T12:00:00Z INFO jobs.runner: prices: done."


@pytest.mark.usefixtures("request_id")
def test_a_line_of_text_ends_with_its_request() -> None:
    assert TextFormatter().format(record()) == "2026-03-01T12:00:00Z INFO jobs.runner: prices: done. [r-1]"


def test_on_a_terminal_failures_have_a_coloured_level() -> None:
    coloured = TextFormatter(coloured=True)
    assert coloured.format(record()) == TextFormatter().format(record())
    assert " \x1b[31mERROR\x1b[0m jobs.runner: " in coloured.format(record(logging.ERROR))


def test_nothing_is_coloured_unless_it_goes_to_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    for stream, coloured in ((io.StringIO(), False), (Terminal(), True)):
        monkeypatch.setattr("sys.stderr", stream)
        assert configuration("info")["formatters"]["line"]["coloured"] is coloured
    monkeypatch.setenv("NO_COLOR", "1")
    assert configuration("info")["formatters"]["line"]["coloured"] is False


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


def test_a_failure_that_repeats_is_shown_once_a_minute_with_its_count(clock: Clock, written: Written) -> None:
    for number in range(15_432):
        written.log.warning("%s: away", f"/{number}")
    assert written.lines == ["WARNING service: /0: away"]
    clock.now += 60
    written.log.warning("%s: away", "/later")
    counted = "WARNING service: /15431: away (15,432 times in the last minute)"
    assert written.lines[1:] == [counted]
    clock.now += 60
    written.log.warning("%s: away", "/last")
    assert written.lines[2:] == ["WARNING service: /later: away"]


def test_a_failure_is_shown_again_after_a_minute_without_it(clock: Clock, written: Written) -> None:
    for _ in range(2):
        written.log.error("away")
        clock.now += 60
    assert written.lines == ["ERROR service: away"] * 2


def test_a_count_is_shown_when_its_minute_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_SPAN", 0.05)
    clock = Clock()
    written = Written(clock, wakes=True)
    written.log.error("away")
    written.log.error("away")
    until(lambda: len(written.lines) == 2, seconds=30)
    assert written.lines[1] == "ERROR service: away (2 times in the last minute)"


@pytest.mark.usefixtures("clock")
def test_a_count_is_shown_at_the_end(written: Written) -> None:
    written.log.error("away")
    written.log.error("away")
    written.handler.close()
    written.handler.close()
    assert written.lines == ["ERROR service: away", "ERROR service: away (2 times in the last minute)"]


def test_a_count_from_before_a_fork_is_shown_by_the_parent_only(written: Written) -> None:
    """The handler takes this process for a child of the one that it was made in."""
    written.log.error("away")
    written.log.error("away")
    written.handler._process = os.getppid()
    written.handler.close()
    assert written.lines == ["ERROR service: away"]


def test_a_count_belongs_to_no_request(clock: Clock, written: Written, request_id: str) -> None:
    written.log.error("away")
    written.log.error("away")
    clock.now += 60
    written.log.error("away")
    assert written.lines == [f"ERROR service: away [{request_id}]", "ERROR service: away (2 times in the last minute)"]


def test_other_failures_are_shown(written: Written) -> None:
    written.log.error("%s: away", 1)
    written.log.warning("%s: away", 1)
    written.log.error("%s: gone", 1)
    written.log.error("%s: away", 1, exc_info=ZeroDivisionError())
    written.log.error("%s: away", 1, exc_info=KeyError())
    written.log.error("%s: away", 1, extra={logs.ABOUT: "prices"})
    written.log.error("%s: away", 1, extra={logs.ABOUT: "rates"})
    assert len([line for line in written.lines if " service: " in line]) == 7


def test_what_is_no_failure_is_always_shown(written: Written) -> None:
    for _ in range(3):
        written.log.info("%s: done", "prices")
    assert written.lines == ["INFO service: prices: done"] * 3
