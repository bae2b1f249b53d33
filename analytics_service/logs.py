"""Logging: one line of plain text per event on standard error, in UTC, for the commands and for gunicorn alike."""

import logging
import logging.config
import time
from typing import Any


class LineFormatter(logging.Formatter):
    """`2026-03-01T12:00:00Z INFO jobs.runner: message`."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%SZ")
        self.converter = time.gmtime


def configuration(level: str) -> dict[str, Any]:
    """A configuration for logging.config.dictConfig that shows this level and above."""
    shown = {"handlers": ["stderr"], "propagate": False}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": LineFormatter}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "stream": "ext://sys.stderr"}},
        "root": {"level": level.upper(), "handlers": ["stderr"]},
        "loggers": {
            "gunicorn.error": {"level": level.upper(), **shown},
            # They log errors that they also raise; the store reports those in its own words.
            "clickhouse_connect": {"level": "CRITICAL"},
            "urllib3": {"level": "CRITICAL"},
        },
    }


def set_up(level: str) -> None:
    """From now on log this level and above: debug, info, warning or error."""
    logging.config.dictConfig(configuration(level))
