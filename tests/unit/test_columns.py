"""Values that the store cannot hold are refused by name, and never wrapped around."""

from datetime import UTC, datetime, timedelta

import pytest

from analytics_service.errors import OutOfRange
from analytics_service.store.columns import COUNT, INDEX, TIME, Column, encoded

FIRST, LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2106, 2, 7, 6, 28, 15, tzinfo=UTC)


@pytest.mark.parametrize(
    ("column", "least", "greatest"), [(INDEX, 0, 2**32 - 1), (COUNT, 0, 2**64 - 1), (TIME, FIRST, LAST)]
)
def test_the_least_and_the_greatest_value_are_stored(column: Column, least: object, greatest: object) -> None:
    rows = encoded([{"x": least}, {"x": greatest}, {"x": None}], {"x": column})["x"].to_list()
    assert [value if value is None else column.decode(value) for value in rows] == [least, greatest, None]


@pytest.mark.parametrize(
    ("column", "value", "named"),
    [
        (INDEX, -1, "-1 cannot be stored"),
        (INDEX, 2**32, "4294967296 cannot be stored"),
        (COUNT, -1, "-1 cannot be stored"),
        (COUNT, 2**64, "18446744073709551616 cannot be stored"),
        (TIME, FIRST - timedelta(microseconds=1), "1969-12-31 23:59:59.999999"),
        (TIME, LAST + timedelta(seconds=1), "2106-02-07 06:28:16"),
        (TIME, datetime(2200, 1, 1, tzinfo=UTC), "2200-01-01 00:00:00"),
    ],
)
def test_others_are_refused_by_name(column: Column, value: object, named: str) -> None:
    with pytest.raises(OutOfRange, match=named):
        encoded([{"x": value}], {"x": column})
