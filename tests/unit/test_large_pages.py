"""Large pages take turns, so that the memory they need does not add up; others are put together at once."""

import threading
from zoneinfo import ZoneInfo

import polars as pl
import pytest

from analytics_service.history import page
from analytics_service.history.grid import Period
from analytics_service.history.page import Query, read_page
from analytics_service.history.rows import Buckets, SeriesInfo
from analytics_service.history.states import State
from analytics_service.store.ledger import Head

HEAD = Head("prices", 7200, 7200, 1, 1)
# Three buckets of one series.
QUERY = Query(0, 7200, Period.HOUR, 1, ZoneInfo("UTC"), 10, 0, True, None)


class MeetingReader:
    """A reader that waits for a second caller while it reads, and notes whether one came."""

    def __init__(self, patience: float) -> None:
        self.met = False
        self._meeting = threading.Barrier(2, timeout=patience)

    def at(self, head: Head) -> State:
        return State("price", head, {"token;a": SeriesInfo(0, 7200, "1")}, (), (), [(0, -1)], None)

    def values(self, state: State, ids: list[str], buckets: Buckets) -> pl.Series:
        try:
            self._meeting.wait()
            self.met = True
        except threading.BrokenBarrierError:
            pass
        return pl.Series(["1"] * buckets.count * len(ids))


def two_pages(reader: MeetingReader) -> list[bytes]:
    """The points of a page that two threads ask for."""
    points: list[bytes] = []

    def read() -> None:
        points.append(read_page(reader, QUERY, HEAD).points)  # type: ignore[arg-type]

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return points


@pytest.mark.parametrize(("large", "patience", "met"), [(3, 60, True), (2, 1, False)])
def test_only_large_pages_wait_for_each_other(
    monkeypatch: pytest.MonkeyPatch, large: int, patience: float, met: bool
) -> None:
    monkeypatch.setattr(page, "_LARGE", large)
    reader = MeetingReader(patience)
    first, second = two_pages(reader)
    assert first == second
    assert reader.met == met
