"""Tests of the source. `check` finds most mistakes that any source can make."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from my_source import ATOM, LAUNCH, USDT, MySource

from analytics_service.market.prices import Price
from jobs.check import Finding, Level, Plan, check, scratch_store

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_each_hour_has_its_price() -> None:
    prices = [Price(ATOM.id, NOON, Decimal("10.62")), Price(USDT.id, NOON, Decimal(1))]
    assert MySource("").prices(NOON + timedelta(minutes=59)) == prices


def test_each_event_belongs_to_one_range() -> None:
    day = timedelta(days=1)
    assert [event.at for event in MySource("").events(LAUNCH - day, LAUNCH)] == []
    assert [event.at for event in MySource("").events(LAUNCH, LAUNCH + day)] == [LAUNCH]


def test_nothing_is_wrong_with_it() -> None:
    with scratch_store() as store:
        found = [step for step in check(MySource(""), store, Plan(NOON)) if isinstance(step, Finding)]
    assert [finding for finding in found if finding.level is not Level.NOTE] == []
