"""Reports records that jobs reject."""

import logging
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from analytics_service.market.instants import HOUR
from analytics_service.market.validation import ValidationError, validate

log = logging.getLogger(__name__)

_R = TypeVar("_R")
# The part of a source's answers, such as prices, and the fault of a field.
_Cause = tuple[str, tuple[str, str]]
# By cause: when it was last logged, and how many records were rejected since.
LastLogged = dict[_Cause, tuple[float, int]]


class Rejections:
    """Counts the records that a job rejects in a `with` block, and logs each cause at most once an hour, for all jobs
    that share `last_logged`."""

    def __init__(self, last_logged: LastLogged | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._last_logged: LastLogged = {} if last_logged is None else last_logged
        self._clock = clock
        # By cause: the number of records in this block, and the fault of the first.
        self._counts: dict[_Cause, tuple[int, str]] = {}

    def __enter__(self) -> None:
        self._counts.clear()

    def __exit__(self, *_: object) -> None:
        # Jobs in other threads may do this at the same time. At worst, a cause is logged twice.
        now = self._clock()
        for cause, (count, example) in self._counts.items():
            logged_at, before = self._last_logged.get(cause, (now - HOUR, 0))
            count += before
            if now - logged_at >= HOUR:
                also = f" {count:,} records were rejected for this cause." if count > 1 else ""
                log.warning("%s: %s It is rejected; the stored value is kept.%s", cause[0], example, also)
                logged_at, count = now, 0
            self._last_logged[cause] = logged_at, count

    def add(self, part: str, record: Any, invalid: ValidationError) -> None:
        """Count a rejected record of a part of the source's answers."""
        count, example = self._counts.get((part, invalid.cause), (0, ""))
        self._counts[part, invalid.cause] = count + 1, example or invalid.of(record)

    def validate(self, part: str, record: Any, of: Any) -> list[ValidationError]:
        """The faults of a record of a type, each of which is counted."""
        faults = list(validate(record, of))
        for invalid in faults:
            self.add(part, record, invalid)
        return faults

    def valid_records(self, part: str, records: Iterable[_R], of: type[_R]) -> list[_R]:
        """The records that can be stored."""
        return [record for record in records if not self.validate(part, record, of)]
