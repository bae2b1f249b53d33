"""Which raw rows a run computes cells from: those of the cells that it closes or touches (rule 8.11).

Months of many rows are computed in parts.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics_service.store.cells import Span, close_cells, closing_span, compute_touched
from analytics_service.store.sql import Parts
from tests.doubles import LedgerStore

LATEST = 4_000_000_000
STAGED = "observation_staging_7"
MANY = 3_000_000
"""Rows of a month, two of which are too many for one statement."""


def second(*at: int) -> int:
    """Unix second of a UTC time."""
    return int(datetime(*at, tzinfo=UTC).timestamp())  # type: ignore[arg-type]


def cells_of(at: int) -> list[tuple[int, int]]:
    """Where the three cells that hold a second begin and end."""
    day = datetime.fromtimestamp(at, UTC).replace(hour=0, minute=0, second=0)
    month = day.replace(day=1)
    after = month.replace(year=month.year + month.month // 12, month=month.month % 12 + 1)
    midnight = int(day.timestamp())
    return [
        (at - at % 900, at - at % 900 + 900),
        (midnight, midnight + 86_400),
        (int(month.timestamp()), int(after.timestamp())),
    ]


@given(before=st.integers(0, LATEST), length=st.one_of(st.integers(0, 2_000), st.integers(0, 10**8)))
def test_a_run_reads_from_the_beginning_of_the_widest_cell_that_it_closes(before: int, length: int) -> None:
    """A cell is closed by the observation at its last second, or a later one. The cells that hold the first second
    after the former newest observation are those that close first."""
    newest = before + length
    closed = [begin for begin, end in cells_of(before + 1) if end - 1 <= newest]
    assert closing_span(before, newest) == (Span(min(closed), newest + 1) if closed else None)


@pytest.mark.parametrize(
    ("before", "newest", "since"),
    [
        # The last second of 12:00 to 12:15, and the one before it.
        (second(2026, 3, 5, 12, 1), second(2026, 3, 5, 12, 14, 59), second(2026, 3, 5, 12)),
        (second(2026, 3, 5, 12, 1), second(2026, 3, 5, 12, 14, 58), None),
        # Closed already.
        (second(2026, 3, 5, 12, 14, 59), second(2026, 3, 5, 12, 20), None),
        # The last seconds of a day, of a month, and of a February in a leap year.
        (second(2026, 3, 5, 23, 50), second(2026, 3, 5, 23, 59, 59), second(2026, 3, 5)),
        (second(2026, 3, 31, 23, 50), second(2026, 3, 31, 23, 59, 59), second(2026, 3, 1)),
        (second(2024, 2, 28, 23, 50), second(2024, 2, 28, 23, 59, 59), second(2024, 2, 28)),
        (second(2024, 2, 29, 23, 50), second(2024, 3, 1), second(2024, 2, 1)),
        # Nothing new.
        (second(2026, 3, 31, 23, 59, 59), second(2026, 3, 31, 23, 59, 59), None),
        # Many months; those before are closed already.
        (second(2025, 11, 30, 23, 59, 59), second(2026, 3, 1), second(2025, 12, 1)),
    ],
)
def test_cells_close_at_their_last_second(before: int, newest: int, since: int | None) -> None:
    assert closing_span(before, newest) == (None if since is None else Span(since, newest + 1))


@dataclass(frozen=True)
class Month:
    """A month, by a number that grows by one each month."""

    number: int

    @property
    def begin(self) -> int:
        return second(self.number // 12, self.number % 12 + 1, 1)

    @property
    def name(self) -> str:
        return f"{self.number // 12}{self.number % 12 + 1:02}"


class FilledStore(LedgerStore):
    """A store of prices with so many rows in each month, which remembers the spans of cells that are computed.

    Its rows are of the series a to e, alike; `parts` are the spans of some series, one for each statement. `staged` are
    the months of which a rewrite has brought rows.
    """

    def __init__(self, stored: Mapping[Month, int], staged: Iterable[Month] = ()) -> None:
        super().__init__()
        self._stored = stored
        self._staged = staged
        self.parts: list[Span] = []

    @property
    def spans(self) -> list[Span]:
        """The spans of all series, in the order in which they were computed."""
        return list(dict.fromkeys(Span(one.since, one.until) for one in self.parts))

    def frame(self, query: str, parts: Parts = (), **parameters: object) -> pl.DataFrame:
        if query == "staged_months":
            staged = [("price", month.begin) for month in self._staged]
            return pl.DataFrame(staged, schema={"history": pl.String, "month": pl.UInt32}, orient="row")
        assert parameters["history"] == "price"
        since, until = int(str(parameters["since"])), int(str(parameters["until"]))
        rows = {month.begin: (Month(month.number + 1).begin, count) for month, count in self._stored.items()}
        if query == "rows_by_month":
            counts = [(begin, count) for begin, (_, count) in rows.items() if since <= begin < until]
            return pl.DataFrame(counts, schema={"month": pl.UInt32, "rows": pl.UInt64}, orient="row")
        assert query == "rows_by_series"
        # A month counts in part where the span has a part of it.
        share = sum(
            count * (min(until, end) - max(since, begin)) // (31 * 86_400)
            for begin, (end, count) in rows.items()
            if since < end and until > begin
        )
        series = [(name, share // 5) for name in "ebcda"]
        return pl.DataFrame(series, schema={"asset_id": pl.String, "rows": pl.UInt64}, orient="row")

    def run(self, query: str, parts: Parts = (), **parameters: object) -> None:
        assert query == "fill_cells"
        self.parts.append(Span(**{name: parameters[name] for name in ("since", "until", "first", "before")}))  # type: ignore[arg-type]


def months(*numbers: int, rows: int = 1) -> dict[Month, int]:
    """So many rows in each of some months, counted from January 2025."""
    return {Month(2025 * 12 + number): rows for number in numbers}


def spans(store: FilledStore, before: int, newest: int, *, rewrites: bool = False) -> list[tuple[str, str]]:
    """From when to when the cells of a run are computed, as dates and times."""
    if rewrites:
        compute_touched(store, ["price"], STAGED, before, newest, version=7)
    else:
        close_cells(store, ["price"], before, newest)
    return [(_shown(span.since), _shown(span.until)) for span in store.spans]


def _shown(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")


NEW_YEAR = second(2025, 12, 31, 23, 50), second(2026, 1, 1)
QUIET = second(2026, 1, 1, 12, 1), second(2026, 1, 1, 12, 2)


def test_a_tick_that_closes_nothing_computes_nothing() -> None:
    assert spans(FilledStore({}), *QUIET) == []


def test_what_closes_within_a_month_is_one_statement_that_begins_there() -> None:
    rows = FilledStore(months(*range(14), rows=MANY))
    found = spans(rows, second(2026, 1, 5, 12, 1), second(2026, 1, 5, 12, 15))
    assert found == [("2026-01-05 12:00", "2026-01-05 12:15")]


def test_a_run_that_closes_a_month_reads_it_from_its_first_second() -> None:
    assert spans(FilledStore(months(*range(13))), *NEW_YEAR) == [("2025-12-01 00:00", "2026-02-01 00:00")]


def test_months_apart_are_statements_of_their_own_and_months_in_a_row_are_one() -> None:
    """March, and July to August; nothing closes."""
    store = FilledStore(months(*range(13)), months(2, 6, 7))
    assert spans(store, *QUIET, rewrites=True) == [
        ("2025-03-01 00:00", "2025-04-01 00:00"),
        ("2025-07-01 00:00", "2025-09-01 00:00"),
    ]


def test_months_with_many_rows_are_statements_of_their_own() -> None:
    store = FilledStore(months(0, 1, 2, rows=MANY) | months(3, 4), months(0, 1, 2, 3, 4))
    assert spans(store, *QUIET, rewrites=True) == [
        ("2025-01-01 00:00", "2025-02-01 00:00"),
        ("2025-02-01 00:00", "2025-03-01 00:00"),
        ("2025-03-01 00:00", "2025-06-01 00:00"),
    ]


def test_many_months_are_several_statements() -> None:
    """Twelve years, of which each has a partition for each month. An insert may write to a hundred."""
    store = FilledStore(months(*range(144)), months(*range(144)))
    found = spans(store, *QUIET, rewrites=True)
    assert [found[0][0], found[-1][1]] == ["2025-01-01 00:00", "2037-01-01 00:00"]
    assert [end for _, end in found[:-1]] == [begin for begin, _ in found[1:]]
    assert all(span.until - span.since < 98 * 28 * 86_400 for span in store.spans)


def test_what_a_rewrite_touches_and_what_it_closes_are_both_computed() -> None:
    """It corrects a day of March, and closes the last quarters of an hour on 5 December."""
    store = FilledStore(months(*range(12)), months(2, 11))
    assert spans(store, second(2025, 12, 5, 12, 1), second(2025, 12, 5, 12, 15), rewrites=True) == [
        ("2025-03-01 00:00", "2025-04-01 00:00"),
        ("2025-12-01 00:00", "2026-01-01 00:00"),
    ]


@given(
    stored=st.dictionaries(st.integers(0, 40), st.sampled_from([1, MANY, 9 * MANY])),
    touched=st.sets(st.integers(0, 40), max_size=9),
    before=st.integers(second(2025, 1, 1), second(2028, 6, 1)),
    length=st.one_of(st.integers(0, 2_000), st.integers(0, 10**7)),
)
def test_spans_hold_all_that_a_run_closes_or_touches_once(
    stored: dict[int, int], touched: set[int], before: int, length: int
) -> None:
    rows = {Month(2025 * 12 + number): count for number, count in stored.items()}
    store = FilledStore(rows, sorted(months(*touched), key=lambda month: month.number))
    if touched:
        compute_touched(store, ["price"], STAGED, before, before + length, version=7)
    else:
        close_cells(store, ["price"], before, before + length)
    own = [(month.begin, Month(month.number + 1).begin) for month in months(*touched)]
    closing = closing_span(before, before + length)
    own += [(closing.since, closing.until)] if closing else []
    assert store.spans == sorted(store.spans, key=lambda span: span.since)
    assert all(one.until <= other.since for one, other in zip(store.spans, store.spans[1:], strict=False))
    for begin, end in own:
        assert sum(max(0, min(end, span.until) - max(begin, span.since)) for span in store.spans) == end - begin
    for span in store.spans:
        inside = [count for month, count in rows.items() if span.since <= month.begin < span.until]
        assert len(inside) <= 1 or sum(inside) <= 4_000_000
        assert_all_series_once([one for one in store.parts if (one.since, one.until) == (span.since, span.until)])


def assert_all_series_once(parts: Sequence[Span]) -> None:
    """Each series from a to e is in one of the parts, and so is any other: single series have an empty id."""
    for name in ("", "0", "a", "aa", "b", "bb", "c", "cc", "d", "dd", "e", "f"):
        assert sum(one.first <= name and (not one.before or name < one.before) for one in parts) == 1
