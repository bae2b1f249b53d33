"""What there is to say about a source."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

# How many ids a message names.
_NAMED = 3


class Level(StrEnum):
    """How serious a finding is: data is lost or wrong, data is probably wrong, or something is not shown."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong with a source, and what to do, in one or two sentences."""

    level: Level
    message: str


def error(message: str) -> Finding:
    """A finding about data that is lost or wrong."""
    return Finding(Level.ERROR, message)


def warning(message: str) -> Finding:
    """A finding about data that is probably wrong."""
    return Finding(Level.WARNING, message)


def note(message: str) -> Finding:
    """A finding about something that is not shown."""
    return Finding(Level.NOTE, message)


def sentence(words: object) -> str:
    """The words of others, such as those of an exception, with a single full stop."""
    return f"{str(words).rstrip('. ')}."


def listed(names: Iterable[str]) -> str:
    """The first names, and the number of the others."""
    every = list(dict.fromkeys(names))
    rest = len(every) - _NAMED
    return ", ".join(every[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")
