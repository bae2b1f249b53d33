"""What a run computes rollups from: raw rows of the days that it touches and of the 15 minutes that it closes, and the
rollups of these (rule 8.11)."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics_service.clickhouse.queries import Placeholders
from analytics_service.store.rollups import Span, TouchedRollups, close_rollups, closing_span, compute_touched
from tests.doubles import LedgerStore

LATEST = 4_000_000_000
TOUCHED = TouchedRollups("observation_staging_7", "", version=7)
MANY = 3_000_000
"""Rows of a day, two of which are too many for one statement."""
DAY = 86_400


def second(*at: int) -> int:
    return int(datetime(*at, tzinfo=UTC).timestamp())  # type: ignore[arg-type]


@given(before=st.integers(0, LATEST), length=st.one_of(st.integers(0, 2_000), st.integers(0, 10**8)))
def test_a_run_reads_from_the_beginning_of_the_first_quarter_that_it_closes(before: int, length: int) -> None:
    """A rollup is closed by the observation at its last second, or a later one."""
    end, begin = before + length, before // 900 * 900
    assert closing_span(before, end) == (Span(begin, end) if begin + 900 <= end else None)


class FilledStore(LedgerStore):
    """A store of prices with so many rows in each day (by its start), which remembers the rollups that are computed.

    `staged` are the days of which a rewrite has brought rows. `spans` are those of quarters, and `wider` has width and
    span of the rollups of days and months, each in the order in which they were computed.
    """

    def __init__(self, stored: Mapping[int, int], staged: Iterable[int] = ()) -> None:
        super().__init__()
        self._stored = stored
        self._staged = staged
        self.spans: list[Span] = []
        self.wider: list[tuple[str, Span]] = []

    def query(self, query: str, parts: Placeholders = (), **parameters: object) -> pl.DataFrame:
        if query == "list_staged_days":
            staged = [("price", day) for day in self._staged]
            return pl.DataFrame(staged, schema={"history": pl.String, "day": pl.UInt32}, orient="row")
        if query == "make_version":
            return pl.DataFrame({"version": [8]})
        assert parameters["histories"] == ["price"]
        since, until = int(str(parameters["start"])), int(str(parameters["end"]))
        assert query == "count_rows_by_day"
        counts = [(day, count) for day, count in self._stored.items() if since <= day < until]
        return pl.DataFrame(counts, schema={"day": pl.UInt32, "rows": pl.UInt64}, orient="row")

    def run(self, query: str, parts: Placeholders = (), **parameters: object) -> None:
        span = Span(int(str(parameters["start"])), int(str(parameters["end"])))
        if query == "compute_15min_rollups":
            self.spans.append(span)
        else:
            assert query == "compute_wider_rollups"
            self.wider.append((str(parameters["width"]), span))


def days(*numbers: int, rows: int = 1) -> dict[int, int]:
    """So many rows in each of some days, counted from 1 January 2025."""
    return {second(2025, 1, 1) + number * DAY: rows for number in numbers}


def spans(store: FilledStore, before: int, newest: int, *, rewrites: bool = False) -> list[tuple[str, str]]:
    """From when to when the rollups of a run are computed, as dates and times."""
    if rewrites:
        compute_touched(store, ["price"], TOUCHED, before + 1, newest + 1)
    else:
        close_rollups(store, ["price"], before + 1, newest + 1)
    return [(shown(span.start), shown(span.end)) for span in store.spans]


def shown(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")


@pytest.mark.parametrize(
    ("before", "newest", "quarters", "wider"),
    [
        # The last second of 12:00 to 12:15, and the one before it.
        (second(2026, 3, 5, 12, 1), second(2026, 3, 5, 12, 14, 59), "2026-03-05 12:00", {}),
        (second(2026, 3, 5, 12, 1), second(2026, 3, 5, 12, 14, 58), None, {}),
        # Closed already; and nothing new.
        (second(2026, 3, 5, 12, 14, 59), second(2026, 3, 5, 12, 20), None, {}),
        (second(2026, 3, 31, 23, 59, 59), second(2026, 3, 31, 23, 59, 59), None, {}),
        # The last seconds of a day, of a month, and of a February in a leap year.
        (second(2026, 3, 5, 23, 50), second(2026, 3, 5, 23, 59, 59), "2026-03-05 23:45", {"day": "2026-03-05 00:00"}),
        (
            second(2026, 3, 31, 23, 50),
            second(2026, 3, 31, 23, 59, 59),
            "2026-03-31 23:45",
            {"day": "2026-03-31 00:00", "month": "2026-03-01 00:00"},
        ),
        (second(2024, 2, 28, 23, 50), second(2024, 2, 28, 23, 59, 59), "2024-02-28 23:45", {"day": "2024-02-28 00:00"}),
        (
            second(2024, 2, 29, 23, 50),
            second(2024, 3, 1),
            "2024-02-29 23:45",
            {"day": "2024-02-29 00:00", "month": "2024-02-01 00:00"},
        ),
        # Many months; those before are closed already.
        (
            second(2025, 11, 30, 23, 59, 59),
            second(2026, 3, 1),
            "2025-12-01 00:00",
            {"day": "2025-12-01 00:00", "month": "2025-12-01 00:00"},
        ),
    ],
)
def test_rollups_close_at_their_last_second(
    before: int, newest: int, quarters: str | None, wider: dict[str, str]
) -> None:
    """From when on rollups of each width are computed, days before months. The rows of a month are not read for it."""
    store = FilledStore({})
    assert [begin for begin, _ in spans(store, before, newest)] == ([quarters] if quarters else [])
    assert [(width, shown(span.start)) for width, span in store.wider] == list(wider.items())
    assert all(span.end > newest for _, span in store.wider)


def test_what_a_rewrite_touches_and_what_it_closes_are_both_computed() -> None:
    """It corrects 2 March, and closes the last quarters of an hour on 5 December."""
    store = FilledStore(days(*range(360), rows=1_000), days(60))
    assert spans(store, second(2025, 12, 5, 12, 1), second(2025, 12, 5, 12, 15), rewrites=True) == [
        ("2025-03-02 00:00", "2025-03-03 00:00"),
        ("2025-12-05 12:00", "2025-12-06 00:00"),
    ]


@given(
    stored=st.dictionaries(st.integers(0, 1_200), st.sampled_from([1, 200_000, MANY, 9 * MANY])),
    touched=st.sets(st.integers(0, 1_200), max_size=9),
    before=st.integers(second(2025, 1, 1), second(2028, 6, 1)),
    length=st.one_of(st.integers(0, 2_000), st.integers(0, 10**7)),
)
def test_spans_hold_all_that_a_run_closes_or_touches_once(
    stored: dict[int, int], touched: set[int], before: int, length: int
) -> None:
    rows = {second(2025, 1, 1) + number * DAY: count for number, count in stored.items()}
    store = FilledStore(rows, days(*sorted(touched)))
    if touched:
        compute_touched(store, ["price"], TOUCHED, before, before + length)
    else:
        close_rollups(store, ["price"], before, before + length)
    own = [(day, day + DAY) for day in days(*touched)]
    closing = closing_span(before, before + length)
    own += [(closing.start, closing.end)] if closing else []
    assert store.spans == sorted(store.spans, key=lambda span: span.start)
    assert all(one.end <= other.start for one, other in zip(store.spans, store.spans[1:], strict=False))
    for begin, end in own:
        assert sum(max(0, min(end, span.end) - max(begin, span.start)) for span in store.spans) == end - begin
    for span in store.spans:
        inside = [count for day, count in rows.items() if span.start <= day < span.end]
        assert len(inside) <= 1 or sum(inside) <= 4_000_000
