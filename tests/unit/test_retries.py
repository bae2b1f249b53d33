"""The one retry policy; tests/unit/test_runner.py has its use by jobs."""

import time

import pytest

from analytics_service.errors import SourceError, StoreUnavailable
from analytics_service.store.retries import Retries


def away() -> None:
    raise StoreUnavailable("ClickHouse is away.")


def test_pauses_double_up_to_the_longest_and_end_before_the_time_is_up() -> None:
    """A quarter of a second to eight seconds: 31.75 seconds in all, and another 8 would be too many."""
    pauses: list[float] = []
    with pytest.raises(StoreUnavailable):
        Retries(32, first_pause=0.25, longest_pause=8, wait=pauses.append)(away)
    assert pauses == [0.25, 0.5, 1, 2, 4, 8, 8, 8]


def test_the_time_that_attempts_take_counts() -> None:
    pauses: list[float] = []

    def slow() -> None:
        time.sleep(0.06)
        away()

    with pytest.raises(StoreUnavailable):
        Retries(0.05, first_pause=0.001, wait=pauses.append)(slow)
    assert pauses == []


def test_only_the_named_errors_are_retried() -> None:
    def fail() -> None:
        raise SourceError("The source is away.")

    pauses: list[float] = []
    with pytest.raises(SourceError):
        Retries(10, wait=pauses.append)(fail)
    assert pauses == []


def test_each_retry_is_reported_with_its_error_and_pause() -> None:
    told: list[tuple[str, float]] = []
    answers = iter([StoreUnavailable("first"), StoreUnavailable("second"), None])

    def flaky() -> str:
        if error := next(answers):
            raise error
        return "done"

    retries = Retries(10, wait=lambda seconds: None, on_retry=lambda error, pause: told.append((str(error), pause)))
    assert retries(flaky) == "done"
    assert told == [("first", 1), ("second", 2)]
