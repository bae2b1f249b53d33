"""Which rows a page of candles is planned to read."""

from bisect import bisect_right

from hypothesis import given, settings
from hypothesis import strategies as st

from analytics_service.history.plan import CandlePlan, plan_candles

QUARTER, DAY = 900, 86_400

# Buckets of ten minutes to three days, which begin at any second or with any quarter of an hour.
widths = st.one_of(st.integers(600, 3 * DAY), st.integers(1, 300).map(lambda quarters: quarters * QUARTER))
starts = st.one_of(st.integers(0, 5 * DAY), st.integers(0, 480).map(lambda quarters: quarters * QUARTER))


def sources(plan: CandlePlan, second: int) -> list[tuple[int, int]]:
    """The spans of the cells and of the single observations that have what was observed at a second."""
    day, quarter = second - second % DAY, second - second % QUARTER
    has_day = plan.by_days and plan.since <= day < plan.days_to and day not in plan.edge_days
    is_edge = quarter in plan.edge_quarters
    by_quarters = not plan.by_days or quarter >= plan.days_to or day in plan.edge_days
    found = [(day, day + DAY)] if has_day else []
    if plan.since <= quarter < plan.raw_from and not is_edge and by_quarters:
        found.append((quarter, quarter + QUARTER))
    return found + [(second, second + 1)] * (is_edge + (second >= plan.raw_from))


@given(start=starts, width=widths, count=st.integers(1, 12), cut=st.integers(0, DAY), data=st.data())
@settings(max_examples=300, deadline=None)
def test_cells_and_rows_cover_the_range_of_candles_once(
    start: int, width: int, count: int, cut: int, data: st.DataObject
) -> None:
    """No cell reaches over the beginning of a bucket, nor over the end of the page."""
    begins = [start + number * width for number in range(count + 1)]
    until = max(begins[-1] - cut, start + 1)
    plan = plan_candles(begins, until)
    edges = [second + delta for second in (*begins, until) for delta in (-QUARTER, -1, 0, 1, QUARTER)]
    drawn = data.draw(st.lists(st.integers(start, until - 1), max_size=50))
    for second in (*drawn, *(edge for edge in edges if start <= edge < until)):
        ((first, end),) = sources(plan, second)
        assert first >= start and end <= until
        assert bisect_right(begins, first) == bisect_right(begins, end - 1)


def test_only_quarter_hours_that_a_bucket_begins_within_are_read_in_single_observations() -> None:
    """200 days that begin a minute after midnight, and a page that ends 100 seconds into a quarter of an hour."""
    begins = [60 + number * DAY for number in range(201)]
    plan = plan_candles(begins, 199 * DAY + 1_000)
    assert plan.edge_quarters == [number * DAY for number in range(200)]
    assert (plan.raw_from, plan.by_days) == (199 * DAY + 900, True)
    assert plan.parts == ["candle_days", "candle_edges", "candle_tail"]
