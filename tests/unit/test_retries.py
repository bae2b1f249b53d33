"""The one retry policy."""

import time
from dataclasses import replace

import pytest

from analytics_service.clickhouse.errors import Retries
from analytics_service.errors import StoreUnavailable


def away() -> None:
    raise StoreUnavailable("ClickHouse is away.")


@pytest.mark.parametrize(
    ("retries", "pauses"),
    [
        # 31.75 seconds in all, and another 8 would be too many.
        (Retries(32, first_pause=0.25, longest_pause=8), [0.25, 0.5, 1, 2, 4, 8, 8, 8]),
        (Retries(10), [1, 2, 4]),
        (Retries(91), [1, 2, 4, 8, 16, 30, 30]),
        (Retries(), []),
    ],
)
def test_pauses_double_up_to_the_longest_and_end_before_the_time_is_up(retries: Retries, pauses: list[float]) -> None:
    waited: list[float] = []
    with pytest.raises(StoreUnavailable):
        replace(retries, wait=waited.append)(away)
    assert waited == pauses


def test_the_time_that_attempts_take_counts() -> None:
    pauses: list[float] = []

    def slow() -> None:
        time.sleep(0.06)
        away()

    with pytest.raises(StoreUnavailable):
        Retries(0.05, first_pause=0.001, wait=pauses.append)(slow)
    assert pauses == []
