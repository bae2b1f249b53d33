"""The ranges of time in which staged rows are added."""

import pytest

from analytics_service.store.bulk_copy import day_batches

DAY = 86_400


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ({}, []),
        # Days with few rows are one piece, whatever lies between them.
        ({0: 1, 400: 2}, [(0, 401)]),
        ({0: 4, 1: 6}, [(0, 2)]),
        ({0: 4, 1: 7}, [(0, 1), (1, 2)]),
        # A day is never divided.
        ({0: 1, 1: 25, 2: 1}, [(0, 1), (1, 2), (2, 3)]),
        ({5: 3, 6: 3, 7: 3, 8: 3, 20: 7}, [(5, 8), (8, 21)]),
    ],
)
def test_a_piece_has_ten_rows_at_most_or_a_single_day(rows: dict[int, int], expected: list[tuple[int, int]]) -> None:
    days = [(day * DAY, count) for day, count in rows.items()]
    assert list(day_batches(days, 10)) == [(since * DAY, until * DAY) for since, until in expected]
