"""What operators are told of a run's values that it leaves out."""

import logging
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

from analytics_service.market.misfits import Misfit, listed, misfits, named

log = logging.getLogger(__name__)

_R = TypeVar("_R")
# The part of an answer, such as prices, and what is wrong with some of its records; and the name of one of these.
_Fault = tuple[str, tuple[str, str]]
_Noted = tuple[_Fault, str]
# Who met a fault in their last run.
Told = dict[_Noted, set["LeftOut"]]


class _Words(NamedTuple):
    """What is said of a record if it is the first of a fault, up to `others` and after them, or one of the others."""

    first: str
    rest: str
    other: str


class LeftOut:
    """Notes what runs of a job leave out, each within a `with`, and warns of it: once, as long as the last run
    of this job, or of another one that shares `told`, met it, too."""

    def __init__(self, told: Told | None = None) -> None:
        self._told: Told = {} if told is None else told
        self._last: set[_Noted] = set()
        self._noted: dict[_Fault, dict[str, _Words]] = defaultdict(dict)

    def __enter__(self) -> None:
        self._noted.clear()

    def __exit__(self, *_: object) -> None:
        # Jobs in other threads may do this at the same time. At worst, a fault is told twice.
        for fault, records in self._noted.items():
            if new := [words for name, words in records.items() if not self._told.get((fault, name))]:
                others = f", and so is that of {listed(words.other for words in new[1:])}" if new[1:] else ""
                log.warning("%s%s%s", new[0].first, others, new[0].rest)
        now = {(fault, name) for fault, records in self._noted.items() for name in records}
        for noted in now - self._last:
            self._told.setdefault(noted, set()).add(self)
        for noted in self._last - now:
            self._told[noted].discard(self)
        self._last = now

    def note(self, part: str, record: Any, misfit: Misfit) -> None:
        """Note what is wrong with a record of a part of the source's answers."""
        name = named(record)
        first, rest = f"{part}: {misfit.of(record)} It is left out", ": what the store has stays."
        words = _Words(first, rest, f"{name} ({misfit.value!s:.40})")
        self._noted[part, misfit.cause].setdefault(name, words)

    def faults(self, part: str, record: Any, of: Any) -> list[Misfit]:
        """What is wrong with a record of a type, if anything is, which is noted."""
        found = list(misfits(record, of))
        for misfit in found:
            self.note(part, record, misfit)
        return found

    def fit(self, part: str, records: Iterable[_R], of: type[_R]) -> list[_R]:
        """The records that can be stored."""
        return [record for record in records if not self.faults(part, record, of)]
