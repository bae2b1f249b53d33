"""What is lost: in words, in ranges, and when it is looked for (rule 8.19)."""

import threading
from datetime import datetime

import pytest

from analytics_service.clickhouse.columns import SnapshotTable
from analytics_service.clickhouse.connection import Store
from analytics_service.errors import Lost, StoreUnavailable
from analytics_service.market.instants import unix_second
from analytics_service.market.kinds import FOREVER
from analytics_service.store.loss_check import BrokenPart
from analytics_service.store.losses import Loss, describe_losses, require_kept
from jobs.scheduler import watch_losses
from tests.doubles import FakeStore

NINE, TEN = 1_740_819_600, 1_740_823_200
PART = "broken-on-start_all_1_1_1"


def test_operators_are_told_what_is_lost_and_where_the_remedy_is() -> None:
    """A line for each dataset. Rows of tables that no answer needs belong to none."""
    losses = {
        "rates": [],
        "positions": [Loss("position_change", TEN, FOREVER, PART), Loss("bad_debt", NINE, TEN)],
        "markets": [Loss("market_lend", NINE, TEN), Loss("market_debt", NINE, TEN)],
        "": [Loss("owner", 0, FOREVER, PART)],
    }
    remedy = '; see "Lost rows" in the README of the commands'
    assert describe_losses(losses) == [
        f"rows of owner are lost{remedy}",
        "markets: rows of market_lend, market_debt are lost between 2025-03-01T09:00:00Z and 2025-03-01T10:00:00Z"
        + remedy,
        f"positions: rows of position_change, bad_debt are lost from 2025-03-01T09:00:00Z on{remedy}",
    ]


def test_answers_need_the_rows_of_their_range() -> None:
    loss = Loss("tvl", NINE, TEN)
    require_kept([loss], TEN + 1, FOREVER)
    require_kept([loss], 0, NINE)
    for start, end in ((TEN, TEN + 1), (NINE, NINE + 1), (0, FOREVER), (NINE + 1, NINE + 2)):
        with pytest.raises(Lost, match=r"rows of tvl are lost between 2025-03-01T09:00:00Z and 2025-03-01T10:00:00Z\."):
            require_kept([loss], start, end)


@pytest.mark.parametrize(
    ("partition", "first", "after"),
    [
        ("202502", "2025-02-01", "2025-03-01"),
        ("197001", "1970-01-01", "1970-02-01"),
        ("210512", "2105-12-01", "2106-01-01"),
        ("202401", "2024-01-01", "2024-02-01"),
        ("2024", "2024-01-01", "2025-01-01"),
        ("1-202412", "2024-12-01", "2025-01-01"),
    ],
)
def test_a_broken_part_has_rows_of_its_partition(partition: str, first: str, after: str) -> None:
    since, last = (unix_second(datetime.fromisoformat(f"{day}T00:00Z")) for day in (first, after))
    assert BrokenPart("observation", partition, PART, found_at=0).span == (since, last - 1)


@pytest.mark.parametrize("partition", ["all", "2-0"])
def test_a_part_of_a_table_without_months_has_rows_of_any_time(partition: str) -> None:
    assert BrokenPart("asset_definition", partition, PART, found_at=0).span == (0, FOREVER)


def test_rows_that_a_source_states_twice_count_once() -> None:
    """The table keeps the last of them. A table without further key columns has one row a snapshot."""
    rows = [{"asset_id": asset_id, "price": price} for asset_id, price in (("a", 1), ("b", 2), ("a", 3))]
    assert SnapshotTable("market_price", "markets", {}, ("asset_id",)).count(rows) == 2
    assert [SnapshotTable("market_config", "markets", {}).count(rows[:n]) for n in (0, 1)] == [0, 1]


def test_a_store_is_checked_daily_and_each_minute_while_something_is_lost_or_unknown(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """At once, and after what is found: nothing, a loss, the store away (twice), an error, nothing."""
    stop, pauses = threading.Event(), list[float]()
    found = [False, True, StoreUnavailable("away"), StoreUnavailable("away"), ZeroDivisionError("zero"), False]

    def wait(pause: float) -> bool:
        pauses.append(pause)
        return not found

    def find(store: Store) -> bool:
        result = found.pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    stop.wait = wait  # type: ignore[assignment, method-assign]
    watch_losses(FakeStore(), stop, find)
    assert pauses == [0, 86_400, 60, 60, 60, 60, 86_400]
    assert [message.rpartition(" ")[2] for message in caplog.messages] == ["away", "zero"]
