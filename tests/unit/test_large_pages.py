"""Large pages take turns, so that neither their memory nor the threads that they occupy add up."""

import threading
from zoneinfo import ZoneInfo

import pytest

from analytics_service import app
from analytics_service.config import Settings
from analytics_service.errors import LargePagesBusy
from analytics_service.history.grid import Period
from analytics_service.history.large_pages import LargePages
from analytics_service.history.page import Query, is_large
from analytics_service.history.states import SeriesInfo, State
from analytics_service.store.ledger import Head
from tests.processes import PATIENCE, until

HEAD = Head("prices", 7200, 7200, 1, 1)


class Reader:
    """A reader that knows two series."""

    def at(self, head: Head) -> State:
        series = {asset_id: SeriesInfo(0, 7200, "1") for asset_id in ("token;a", "token;b")}
        return State("price", head, series, (), (), [(0, -1)], None)


def query(buckets: int, ids: list[str] | None) -> Query:
    """A page of this many hours."""
    return Query(0, buckets * 3600 - 1, Period.HOUR, 1, ZoneInfo("UTC"), 100_000, 0, True, ids)


@pytest.mark.parametrize(
    ("buckets", "ids", "large"),
    [
        (25_000, None, False),
        (25_001, None, True),
        (50_000, ["token;a"], False),
        (50_001, ["token;a"], True),
        (25_001, ["token;a", "token;b"], True),
    ],
)
def test_a_page_of_more_than_50_000_points_is_large(buckets: int, ids: list[str] | None, large: bool) -> None:
    assert is_large(Reader(), query(buckets, ids), HEAD) is large  # type: ignore[arg-type]


def test_a_second_page_waits_for_its_turn_and_a_third_is_refused_at_once() -> None:
    turns, order = LargePages(threads=2, patience=PATIENCE), []

    def second() -> None:
        with turns.turn():
            order.append("second")

    waiting = threading.Thread(target=second)
    with turns.turn():
        waiting.start()
        until(lambda: refused(turns))
        order.append("first")
    waiting.join()
    assert order == ["first", "second"]
    with turns.turn():
        order.append("third")


@pytest.mark.parametrize(("threads", "share"), [(3, 1), (8, 2)])
def test_a_quarter_of_the_threads_may_be_at_large_pages_and_always_one(
    threads: int, share: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    monkeypatch.setattr(app, "LargePages", made.append)
    app.create_app(Settings(clickhouse_url="http://127.0.0.1:1", threads=threads))
    assert made == [share]


def test_the_only_thread_at_large_pages_waits_for_no_other() -> None:
    turns = LargePages(threads=1)
    with turns.turn():
        assert refused(turns)
    with turns.turn():
        pass


def refused(turns: LargePages) -> bool:
    """Whether all places to wait are taken. If they are not, this thread must not take one: it has the turn itself."""
    if turns._threads.acquire(blocking=False):
        turns._threads.release()
        return False
    with pytest.raises(LargePagesBusy, match="smaller pages"), turns.turn():
        raise AssertionError("this is not its turn")
    return True


def test_a_page_whose_turn_does_not_come_in_time_is_refused_and_leaves_its_place_to_others() -> None:
    turns = LargePages(threads=2, patience=0.001)
    with turns.turn():
        with pytest.raises(LargePagesBusy), turns.turn():
            raise AssertionError("this is not its turn")
        assert not refused(turns)
    with turns.turn():
        pass


def test_a_turn_ends_with_an_error() -> None:
    turns = LargePages(threads=2, patience=0.001)
    with pytest.raises(ZeroDivisionError), turns.turn():
        raise ZeroDivisionError
    with turns.turn():
        pass
