"""Logging of commands and gunicorn: one line an event on standard error, in UTC, as text or JSON.

Lines about a request have its id.
"""

import json
import logging
import logging.config
import math
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from cachetools import LRUCache

# The id of the request that this thread answers; empty outside of requests.
REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")
# The logger of the access log. A separate setting turns it on, regardless of levels.
ACCESS = "analytics_service.access"
# Key of `extra` with more fields for the JSON object of a record.
FIELDS = "fields"

# Number of kinds of lines that RateLimited remembers.
_MOST_KINDS = 100


class RateLimited:
    """Lets one line of each kind pass every `seconds`, with the number of lines suppressed before it."""

    def __init__(self, seconds: float = 10.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        # By kind: when the next line may pass, and how many lines were suppressed.
        self._held: LRUCache[str, tuple[float, int]] = LRUCache(_MOST_KINDS)
        self._lock = threading.Lock()

    def passes(self, kind: str) -> str | None:
        """A suffix for the line, such as " (70 more since the last such line)"; None if the line is suppressed."""
        with self._lock:
            until, count = self._held.get(kind, (-math.inf, 0))
            if self._clock() < until:
                self._held[kind] = until, count + 1
                return None
            self._held[kind] = self._clock() + self._seconds, 0
        return f" ({count:,} more since the last such line)" if count else ""


class TextFormatter(logging.Formatter):
    """`2026-03-01T12:00:00Z INFO jobs.runner: message [request id]`."""

    def __init__(self) -> None:
        # On a terminal, a line takes the place of a progress bar, which is drawn again below.
        place = "\r\033[K" if sys.stderr.isatty() else ""
        super().__init__(f"{place}%(asctime)s %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%SZ")
        self.converter = time.gmtime

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging calls it that
        """The line, without a traceback."""
        line = super().formatMessage(record)
        request_id = REQUEST_ID.get()
        return f"{line} [{request_id}]" if request_id else line


class JsonFormatter(logging.Formatter):
    """A JSON object with `time`, `level`, `logger`, `message`, `request_id`, `exception`, and fields of the event."""

    def format(self, record: logging.LogRecord) -> str:
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


def logging_configuration(level: str, form: str = "text") -> dict[str, Any]:
    """A configuration for logging.config.dictConfig: this level and above, as `text` or `json`."""
    shown = {"handlers": ["stderr"], "propagate": False}
    formatters = {"text": {"()": TextFormatter}, "json": {"()": JsonFormatter}}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": formatters[form]},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "stream": "ext://sys.stderr"}},
        "root": {"level": level.upper(), "handlers": ["stderr"]},
        "loggers": {
            "gunicorn.error": {"level": level.upper(), **shown},
            ACCESS: {"level": "INFO", **shown},
            # They log errors that they also raise, and that the store reports itself.
            "clickhouse_connect": {"level": "CRITICAL"},
            "urllib3": {"level": "CRITICAL"},
            # It logs each request to another deployment.
            "httpx": {"level": "WARNING"},
        },
    }


def set_up_logging(level: str, form: str) -> None:
    """Log this level (debug, info, warning or error) and above, as `text` or `json`. Python's warnings are logged, too,
    and in JSON also the exception that ends the process."""
    logging.config.dictConfig(logging_configuration(level, form))
    logging.captureWarnings(True)
    if form == "json":
        sys.excepthook = _log_last_exception


def begin_logging(environ: Mapping[str, str]) -> None:
    """Set up JSON lines, if configured, before settings are read: the error about a wrong setting must be JSON, too."""
    if environ.get("ANALYTICS_LOG_FORMAT") == "json":
        set_up_logging("info", "json")


def is_json() -> bool:
    return any(isinstance(handler.formatter, JsonFormatter) for handler in logging.root.handlers)


def echo(message: str, *, is_error: bool = False) -> None:
    """Print a message of a command for people, or log it if lines are JSON."""
    if is_json():
        logging.getLogger(__name__).log(logging.ERROR if is_error else logging.INFO, message.strip())
    else:
        print(f"Error: {message}" if is_error else message, file=sys.stderr if is_error else sys.stdout, flush=True)


def _log_last_exception(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    logging.getLogger(__name__).critical("The process failed", exc_info=(kind, error, trace))
