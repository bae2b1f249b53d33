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


@pytest.mark.parametrize(
    ("losses", "told"),
    [
        (
            {"markets": [Loss("market_lend", NINE, TEN), Loss("market_debt", NINE, TEN)]},
            [
                "markets: rows of market_lend, market_debt are lost between 2025-03-01T09:00:00Z and "
                "2025-03-01T10:00:00Z; run `analytics-service jobs backfill markets --start 2025-03-01T09:00:00Z --end "
                "2025-03-01T10:00:00Z --again`, import again or restore a backup"
            ],
        ),
        (
            {"positions": [Loss("position_change", TEN, FOREVER)]},
            [
                "positions: rows of position_change are lost from 2025-03-01T10:00:00Z on; run `analytics-service "
                "remove positions --start 2025-03-01T10:00:00Z` and `analytics-service jobs backfill positions --start "
                "2025-03-01T10:00:00Z --end now`, or restore a backup"
            ],
        ),
        (
            {
                "prices": [Loss("asset_definition", NINE, FOREVER, PART)],
                "rates": [Loss("asset_definition", TEN, FOREVER, PART)],
            },
            [
                "rows of asset_definition are lost from 2025-03-01T09:00:00Z on; run "
                "`analytics-service jobs backfill prices --start 2025-03-01T09:00:00Z --end now --again`, "
                f"import again or restore a backup, then delete detached/{PART} of asset_definition"
            ],
        ),
        (
            {"": [Loss("owner", 0, FOREVER, PART)]},
            [f"rows of owner are lost; delete detached/{PART} of owner"],
        ),
        (
            {"positions": [Loss("debt_at_risk", NINE, TEN), Loss("bad_debt", NINE, TEN)]},
            [
                "positions: rows of debt_at_risk, bad_debt are lost between 2025-03-01T09:00:00Z and "
                "2025-03-01T10:00:00Z; run `analytics-service jobs recompute positions --start 2025-03-01T09:00:00Z "
                "--end 2025-03-01T10:00:00Z`, import again or restore a backup"
            ],
        ),
        (
            {"loans": [Loss("event_version", TEN, FOREVER, PART), Loss("event_version", NINE, FOREVER, "all_2")]},
            [
                "loans: rows of event_version are lost from 2025-03-01T09:00:00Z on; run `analytics-service "
                "remove loans --start 2025-03-01T09:00:00Z` and `analytics-service jobs backfill loans --start "
                "2025-03-01T09:00:00Z --end now`, or restore a backup, then delete "
                f"detached/{PART} of event_version, detached/all_2 of event_version"
            ],
        ),
        ({"rates": []}, []),
    ],
    ids=["counted", "changes", "needed by all", "silent", "computed", "several parts", "nothing"],
)
def test_operators_are_told_what_is_lost_and_what_to_do(losses: dict[str, list[Loss]], told: list[str]) -> None:
    assert describe_losses(losses) == told


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
