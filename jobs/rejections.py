"""Warns operators of records that jobs reject."""

import logging
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from analytics_service.market.instants import HOUR
from analytics_service.market.validation import ValidationError, validate

log = logging.getLogger(__name__)

_R = TypeVar("_R")
# The part of a source's answers, such as prices, and what is wrong with a field.
_Cause = tuple[str, tuple[str, str]]
# By cause, when it was logged last, and how many records were rejected since.
LastLogged = dict[_Cause, tuple[float, int]]


class Rejections:
    """Counts the records that a job rejects, each run within a `with`, and logs each cause at most once an hour. Jobs
    that share `told` log a cause once for all of them."""

    def __init__(self, told: LastLogged | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._told: LastLogged = {} if told is None else told
        self._clock = clock
        # By cause, the number of records in this run, and what is wrong with the first.
        self._noted: dict[_Cause, tuple[int, str]] = {}

    def __enter__(self) -> None:
        self._noted.clear()

    def __exit__(self, *_: object) -> None:
        # Jobs in other threads may do this at the same time. At worst, a cause is logged twice.
        now = self._clock()
        for cause, (count, example) in self._noted.items():
            logged_at, before = self._told.get(cause, (now - HOUR, 0))
            count += before
            if now - logged_at >= HOUR:
                also = f" {count:,} records were rejected for this cause." if count > 1 else ""
                log.warning("%s: %s It is rejected; the store keeps what it has.%s", cause[0], example, also)
                logged_at, count = now, 0
            self._told[cause] = logged_at, count

    def add(self, part: str, record: Any, invalid: ValidationError) -> None:
        """Count a record of a part of the source's answers that is rejected."""
        count, example = self._noted.get((part, invalid.cause), (0, ""))
        self._noted[part, invalid.cause] = count + 1, example or invalid.of(record)

    def validate(self, part: str, record: Any, of: Any) -> list[ValidationError]:
        """What is wrong with a record of a type, which is counted if anything is."""
        found = list(validate(record, of))
        for invalid in found:
            self.add(part, record, invalid)
        return found

    def valid_records(self, part: str, records: Iterable[_R], of: type[_R]) -> list[_R]:
        """The records that can be stored."""
        return [record for record in records if not self.validate(part, record, of)]
