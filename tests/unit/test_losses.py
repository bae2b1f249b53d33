"""What is lost: in words, in ranges, and when it is looked for (rule 8.19)."""

from datetime import UTC, datetime, timedelta

import pytest

from analytics_service.clickhouse.columns import SnapshotTable
from analytics_service.clickhouse.connection import Store
from analytics_service.errors import Lost, StoreUnavailable
from analytics_service.market.instants import unix_second
from analytics_service.market.kinds import FOREVER
from analytics_service.store.loss_check import BrokenPart
from analytics_service.store.losses import Loss, require_kept, told_losses
from jobs.losses import LossWatch
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
            {"positions": [Loss("position", TEN, FOREVER)]},
            [
                "positions: rows of position are lost from 2025-03-01T10:00:00Z on; run `analytics-service remove "
                "positions --start 2025-03-01T10:00:00Z` and `analytics-service jobs backfill positions --start "
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
            {"": [Loss("claim", 0, FOREVER, PART)]},
            [f"rows of claim are lost; delete detached/{PART} of claim"],
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
            {"loans": [Loss("account_event", TEN, FOREVER, PART), Loss("account_event", NINE, FOREVER, "all_2")]},
            [
                "loans: rows of account_event are lost from 2025-03-01T09:00:00Z on; run `analytics-service "
                "remove loans --start 2025-03-01T09:00:00Z` and `analytics-service jobs backfill loans --start "
                "2025-03-01T09:00:00Z --end now`, or restore a backup, then delete "
                f"detached/{PART} of account_event, detached/all_2 of account_event"
            ],
        ),
        ({"rates": []}, []),
    ],
    ids=["counted", "changes", "needed by all", "silent", "computed", "several parts", "nothing"],
)
def test_operators_are_told_what_is_lost_and_what_to_do(losses: dict[str, list[Loss]], told: list[str]) -> None:
    assert told_losses(losses) == told


def test_answers_need_the_rows_of_their_range() -> None:
    loss = Loss("tvl", NINE, TEN)
    require_kept([loss], TEN + 1, FOREVER)
    require_kept([loss], 0, NINE - 1)
    for first, last in ((TEN, TEN), (NINE, NINE), (0, FOREVER), (NINE + 1, NINE + 1)):
        with pytest.raises(Lost, match=r"rows of tvl are lost between 2025-03-01T09:00:00Z and 2025-03-01T10:00:00Z\."):
            require_kept([loss], first, last)


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


class Watched:
    """A watch whose checks find what the test says: whether anything is lost, or no store."""

    def __init__(self) -> None:
        self.times: list[datetime] = []
        self.finds = False
        self.fails = False
        self.now = datetime(2025, 3, 1, 12, tzinfo=UTC)
        self._watch = LossWatch(FakeStore(), self._check)

    def _check(self, store: Store) -> bool:
        self.times.append(self.now)
        if self.fails:
            raise StoreUnavailable("away")
        return self.finds

    def after(self, wait: timedelta) -> int:
        """The number of checks so far, some time later."""
        self.now += wait
        self._watch.follow(self.now)
        self._watch.wait()
        return len(self.times)


DAY, MINUTE, SECOND = timedelta(days=1), timedelta(minutes=1), timedelta(seconds=1)


def test_a_store_that_is_whole_is_checked_at_the_start_and_each_day() -> None:
    watched = Watched()
    assert [watched.after(wait) for wait in (SECOND, DAY - SECOND, SECOND, MINUTE)] == [1, 1, 2, 2]


@pytest.mark.parametrize("how", ["finds", "fails"])
def test_while_something_is_lost_or_unknown_it_is_checked_each_minute(how: str) -> None:
    watched = Watched()
    setattr(watched, how, True)
    assert [watched.after(wait) for wait in (SECOND, MINUTE - SECOND, SECOND, MINUTE)] == [1, 1, 2, 3]
    setattr(watched, how, False)
    assert [watched.after(wait) for wait in (MINUTE, MINUTE, DAY)] == [4, 4, 5]


def test_a_clock_that_is_set_back_delays_no_check() -> None:
    watched = Watched()
    assert [watched.after(wait) for wait in (SECOND, -DAY, MINUTE)] == [1, 2, 2]
