"""Logging: a line for each event on standard error, in UTC, for the commands and for gunicorn alike.

Lines are plain text or JSON. Lines of a request have its id. A failure that repeats is shown once a minute, with its
count.
"""

import json
import logging
import logging.config
import os
import sys
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, TextIO

# The id of the request that the present thread answers; empty outside of requests.
REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")
# The logger of the access log. A separate setting turns it on, regardless of levels.
ACCESS = "analytics_service.access"
# Attributes that `extra` may give a record: further fields of its JSON object, and the subject, which distinguishes
# failures that have the same message.
FIELDS = "fields"
ABOUT = "about"

# Seconds in which a failure is shown once.
_SPAN = 60.0
# Number of remembered failures above which those whose minute is over are dropped.
_MAX_FAILURES = 1000
_RESET = "\x1b[0m"
_COLOURS = {logging.WARNING: "\x1b[33m", logging.ERROR: "\x1b[31m", logging.CRITICAL: "\x1b[31m"}


class TextFormatter(logging.Formatter):
    """`2026-03-01T12:00:00Z INFO jobs.runner: message [request id]`, with the level in colour on a terminal."""

    def __init__(self, *, coloured: bool = False) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%SZ")
        self.converter = time.gmtime
        self._coloured = coloured

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging calls it that
        """The line without a traceback."""
        line = super().formatMessage(record)
        if self._coloured and record.levelno in _COLOURS:
            line = line.replace(record.levelname, f"{_COLOURS[record.levelno]}{record.levelname}{_RESET}", 1)
        request_id = REQUEST_ID.get()
        return f"{line} [{request_id}]" if request_id else line


class JsonFormatter(logging.Formatter):
    """A JSON object with `time`, `level`, `logger`, `message`, `request_id`, `exception`, and fields of the event."""

    def format(self, record: logging.LogRecord) -> str:
        """The object, on one line."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        event = {
            "time": at.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "request_id": REQUEST_ID.get() or None,
            "exception": self.formatException(record.exc_info) if record.exc_info else None,
        }
        return json.dumps({**event, **getattr(record, FIELDS, {})})


@dataclass(slots=True)
class _Failure:
    """A failure that repeats: the start of its minute, its count, and its last record that was not shown."""

    since: float
    times: int
    held: logging.LogRecord | None = None


class Handler(logging.StreamHandler[TextIO]):
    """Shows each line, but a failure (a warning or worse) that repeats within a minute only at the end of that minute.

    Failures are the same if their logger, level, message template, type of exception and subject are.
    """

    def __init__(
        self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic, *, wakes: bool = True
    ) -> None:
        """Without `wakes`, held lines are shown with later lines, or when the handler is closed."""
        super().__init__(stream)
        self._clock = clock
        self._wakes = wakes
        self._process = os.getpid()
        self._failures: dict[Hashable, _Failure] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Show the record, or hold it back. Called under the handler's lock."""
        if record.levelno < logging.WARNING:
            super().emit(record)
            return
        self._leave_to_parent()
        key, now = _identity(record), self._clock()
        failure = self._failures.get(key)
        if failure is not None and failure.held is not None and now - failure.since >= _SPAN:
            self._show_held(key, failure, now)
            failure = self._failures[key]
        if failure is None or now - failure.since >= _SPAN:
            self._prune(now)
            self._failures[key] = _Failure(now, 1)
            super().emit(record)
            return
        failure.times += 1
        if failure.held is None and self._wakes:
            timer = threading.Timer(failure.since + _SPAN - now, self._end_of_span, (key,))
            timer.daemon = True
            # If no thread can be started, the count is shown with the next failure.
            with suppress(RuntimeError):
                timer.start()
        failure.held = _with_traces_dropped(record)

    def close(self) -> None:
        """Show the held lines."""
        self.acquire()
        try:
            self._leave_to_parent()
            for key, failure in list(self._failures.items()):
                if failure.held is not None:
                    self._show_held(key, failure, self._clock())
            self._failures.clear()
        finally:
            self.release()
        super().close()

    def _end_of_span(self, key: Hashable) -> None:
        self.acquire()
        try:
            failure = self._failures.get(key)
            if failure is not None and failure.held is not None:
                self._show_held(key, failure, self._clock())
        finally:
            self.release()

    def _show_held(self, key: Hashable, failure: _Failure, now: float) -> None:
        """Show the last record with the count, in place of the first one of the next minute."""
        record = failure.held
        if record is not None:
            if failure.times > 1:
                record.msg = f"{record.getMessage()} ({failure.times:,} times in the last minute)"
            self._failures[key] = _Failure(now, 0)
            # The line counts failures of many requests.
            token = REQUEST_ID.set("")
            super().emit(record)
            REQUEST_ID.reset(token)

    def _leave_to_parent(self) -> None:
        """After a fork, drop the held lines; the parent shows them."""
        if self._process != os.getpid():
            self._process = os.getpid()
            self._failures.clear()

    def _prune(self, now: float) -> None:
        if len(self._failures) >= _MAX_FAILURES:
            kept = {
                key: failure for key, failure in self._failures.items() if failure.held or now - failure.since < _SPAN
            }
            self._failures = kept


def _identity(record: logging.LogRecord) -> Hashable:
    raised = record.exc_info[0] if record.exc_info else None
    return record.name, record.levelno, str(record.msg), raised, getattr(record, ABOUT, None)


def _with_traces_dropped(record: logging.LogRecord) -> logging.LogRecord:
    """The record without its traceback, which would keep a request's frames alive. The first record has shown it."""
    held = copy(record)
    held.msg, held.args, held.exc_info, held.exc_text = record.getMessage(), None, None, None
    return held


def configuration(level: str, form: str = "text") -> dict[str, Any]:
    """A configuration for logging.config.dictConfig that shows this level and above, as `text` or `json`."""
    shown = {"handlers": ["stderr"], "propagate": False}
    coloured = sys.stderr.isatty() and "NO_COLOR" not in os.environ
    formatters = {"text": {"()": TextFormatter, "coloured": coloured}, "json": {"()": JsonFormatter}}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": formatters[form]},
        "handlers": {"stderr": {"()": Handler, "formatter": "line", "stream": "ext://sys.stderr"}},
        "root": {"level": level.upper(), "handlers": ["stderr"]},
        "loggers": {
            "gunicorn.error": {"level": level.upper(), **shown},
            ACCESS: {"level": "INFO", **shown},
            # They log errors that they also raise. The store reports those in its own words.
            "clickhouse_connect": {"level": "CRITICAL"},
            "urllib3": {"level": "CRITICAL"},
            # It logs each request to another deployment.
            "httpx": {"level": "WARNING"},
        },
    }


def set_up(level: str, form: str) -> None:
    """From now on log this level (debug, info, warning or error) and above, as `text` or `json`. Warnings of Python are
    lines of the log, too, and so is an exception that ends the process if lines are JSON."""
    logging.config.dictConfig(configuration(level, form))
    logging.captureWarnings(True)
    if form == "json":
        sys.excepthook = _log_last_exception


def begin(environ: Mapping[str, str]) -> None:
    """Until settings are read: they may be wrong, and the line that says so is JSON if the others are to be."""
    if environ.get("ANALYTICS_LOG_FORMAT") == "json":
        set_up("info", "json")


def is_json() -> bool:
    """Whether lines are JSON."""
    return any(isinstance(handler.formatter, JsonFormatter) for handler in logging.root.handlers)


def tell(message: str, *, is_error: bool = False) -> None:
    """Print a message of a command for people. Where lines are JSON, it is one of them."""
    if is_json():
        logging.getLogger(__name__).log(logging.ERROR if is_error else logging.INFO, message.strip())
    else:
        print(f"Error: {message}" if is_error else message, file=sys.stderr if is_error else sys.stdout, flush=True)


def _log_last_exception(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    logging.getLogger(__name__).critical("The process failed", exc_info=(kind, error, trace))
