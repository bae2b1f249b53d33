"""Loans: cumulative sums are exact. tests/integration/test_liquidations.py takes snapshots in any order."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from analytics_service.clickhouse.connection import Store
from analytics_service.errors import SourceError
from analytics_service.market.events import Action, Event, EventFilter, EventQuery, Sum, Totals
from analytics_service.market.instants import multiples_between
from analytics_service.market.markets import Market
from analytics_service.market.sums import TOTAL
from analytics_service.store.datasets.events import read_events
from analytics_service.store.datasets.histories import LOANS
from analytics_service.store.datasets.observations import read_latest
from analytics_service.store.datasets.sums import Loans, read_loans
from analytics_service.store.ledger import read_heads
from jobs.registry import JOBS
from jobs.runner import backfill, take_snapshot
from tests.integration.handmade import FINEST, HUGE, NOON, HandMade, market

JOB = JOBS["loans"]
MINUTE = timedelta(minutes=1)
SECOND = int(NOON.timestamp())
EPOCH = datetime.fromtimestamp(0, NOON.tzinfo)
MARKETS = [market("token;a", apr="0.1"), market("token;b", apr="0.1"), market("token;lend")]


def event(id_: str, minutes: float, usd: str, asset_id: str = "token;a", action: Action = Action.BORROW) -> Event:
    """An event some minutes after noon."""
    return Event(id_, action, asset_id, "0xabc", NOON + minutes * MINUTE, HUGE, Decimal(usd))


EVENTS = [
    event("first", -90_000, "1000000000.000000000000000001"),
    event("second", 0, "10"),
    event("third", 0.5, "100", "token;b"),
    event("flash", 0.75, "7", action=Action.BORROW_FLASH_LOAN),
    event("repaid", 0.8, "5000", action=Action.RETURN),
    event("fourth", 1.5, "0.000000000000000001"),
]
# Worked out by hand: the sums of the events above at noon, one minute and two minutes later.
AT_NOON = Decimal("1000000010.000000000000000001")
TOTALS = [AT_NOON, AT_NOON + 100, AT_NOON + 100 + FINEST]


def run(source: HandMade, store: Store, minutes: int) -> Loans:
    """Take the snapshot of some minutes after noon, and return its cumulative loans."""
    take_snapshot(JOB, source, store, NOON + minutes * MINUTE)
    return read_loans(store, SECOND + 60 * minutes)


def totals(store: Store, *minutes: int) -> list[Decimal]:
    """The totals of the snapshots of some minutes after noon."""
    return [read_loans(store, SECOND + 60 * minute).total for minute in minutes]


def test_loans_add_up_from_the_first_one_by_asset_and_in_all(store: Store) -> None:
    """There are histories of the total and of each asset, as new as the newest snapshot even without events."""
    source = HandMade(markets_=MARKETS, events_=EVENTS)
    assert run(source, store, 0) == Loans(AT_NOON, {"token;a": AT_NOON, "token;b": Decimal(0)}, Decimal(0))
    assert run(source, store, 1) == Loans(AT_NOON + 100, {"token;a": AT_NOON, "token;b": Decimal(100)}, Decimal(7))
    assert run(source, store, 2).by_asset == {"token;a": AT_NOON + FINEST, "token;b": Decimal(100)}
    assert totals(store, 0, 1, 2) == TOTALS
    found = read_latest(store, LOANS, [TOTAL, "token;b"], SECOND + 2 * 60)
    assert found == {TOTAL: (TOTALS[2], NOON + 1.5 * MINUTE), "token;b": (Decimal(100), NOON + 0.5 * MINUTE)}
    run(source, store, 9)
    assert read_heads(store)["loans"].last_observed_at == SECOND + 9 * 60


def test_sums_that_the_source_states_take_the_place_of_sums_of_events(store: Store) -> None:
    """Those that it does not state are still summed, and nothing is asked of its markets."""

    class Stating(HandMade):
        def totals(self, at: datetime) -> Totals:
            return Totals(Sum(Decimal(9), {"token;a": Decimal(5), "token;c": Decimal(4)}))

        def markets(self, at: datetime) -> Sequence[Market]:
            raise SourceError("The markets are away.")

    source = Stating(events_=EVENTS)
    by_asset = {"token;a": Decimal(5), "token;c": Decimal(4)}
    assert run(source, store, 0) == Loans(Decimal(9), by_asset, Decimal(0))
    assert run(source, store, 1) == Loans(Decimal(9), by_asset, Decimal(7))


def test_the_source_is_asked_only_for_new_events(store: Store) -> None:
    source = HandMade(events_=EVENTS)
    run(source, store, 0)
    run(source, store, 2)
    run(source, store, 1)
    second = timedelta(seconds=1)
    assert source.asked == [(EPOCH, NOON + second), (NOON, NOON + 2 * MINUTE + second)]


def test_a_backfill_between_and_before_later_snapshots_is_right(store: Store) -> None:
    """Minute 2 is stored; then minutes -1 to 3 are filled, 0 and 1 of them from stored events."""
    source = HandMade(events_=EVENTS)
    run(source, store, 2)
    assert backfill(JOB, source, store, multiples_between(NOON - MINUTE, NOON + 4 * MINUTE, MINUTE)) == 4
    assert totals(store, -1, 0, 1, 2, 3) == [AT_NOON - 10, *TOTALS, TOTALS[-1]]


# The last price is below the limit of 10^20, and is that limit when it is rounded to 18 decimals.
def test_an_event_whose_value_cannot_be_stored_is_of_unknown_value_and_holds_up_nothing(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    unfit = [("1e20", "1E+30"), ("NaN", "1"), ("-7", "1"), ("7", "99999999999999999999.9999999999999999995")]
    strange = [
        replace(event(f"strange {number}", 0.2, usd), price=Decimal(price)) for number, (usd, price) in enumerate(unfit)
    ]
    source = HandMade(markets_=MARKETS, events_=[*EVENTS[:2], *strange, *EVENTS[2:]])
    assert run(source, store, 2).total == TOTALS[2]
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        f"The value of event strange {number} is unknown: {Decimal(usd)} USD at a price of {price}."
        for number, (usd, price) in enumerate(unfit)
    ]
    page = read_events(store, SECOND + 121, EventQuery(EventFilter("0xabc"), 100, ascending=True))
    assert {(one.usd, one.price) for one in page if "strange" in one.id} == {(None, None)}
    assert len(page) == len(EVENTS) + len(unfit)
