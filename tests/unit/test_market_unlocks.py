"""Unlock arrangements before, at and after each of their instants."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics_service.market.ptoken import Arrangement, MemberClass, ScheduleKind
from analytics_service.market.unlocks import (
    UnlockAmounts,
    unlock_amounts,
    unlock_groups,
    unlock_totals,
    unlocked_at,
)

BEGIN = datetime(2025, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
DAY = timedelta(days=1)
# 1000 over 10 days, 100 per day; 150 are claimed.
LINEAR = Arrangement(
    address="0x1",
    index=0,
    member_class=MemberClass.TEAM,
    kind=ScheduleKind.LINEAR,
    amount=1000,
    claimed=150,
    begins_at=BEGIN,
    ends_at=BEGIN + 10 * DAY,
    expires_at=None,
    last_claimed_at=None,
    admin="0x9",
    reclaimed_at=None,
    staked=7,
    held=3,
)
LUMP = replace(LINEAR, kind=ScheduleKind.LUMP_SUM, ends_at=None)


@pytest.mark.parametrize(
    ("after", "unlocked"),
    [
        (-SECOND, 0),
        (timedelta(hours=2, minutes=24) - SECOND, 9),
        (timedelta(hours=2, minutes=24), 10),
        (10 * DAY - SECOND, 999),
        (10 * DAY, 1000),
        (99 * DAY, 1000),
    ],
)
def test_a_linear_schedule_unlocks_in_proportion_to_time_rounded_down(after: timedelta, unlocked: int) -> None:
    """A hundredth of ten days is 2 h 24 min."""
    amounts = unlock_amounts(LINEAR, BEGIN + after)
    assert (amounts.unlocked, amounts.time_locked) == (unlocked, 1000 - unlocked)


@pytest.mark.parametrize(("after", "unlocked"), [(-SECOND, 0), (0 * DAY, 1000)])
def test_a_lump_sum_unlocks_all_when_it_begins(after: timedelta, unlocked: int) -> None:
    assert unlocked_at(LUMP, BEGIN + after) == unlocked


def test_a_linear_schedule_of_zero_length_unlocks_all_when_it_begins() -> None:
    instant = replace(LINEAR, ends_at=BEGIN)
    assert [unlocked_at(instant, BEGIN + after) for after in (-SECOND, 0 * DAY)] == [0, 1000]


@pytest.mark.parametrize(("days", "claimable"), [(1, 0), (2, 50), (10, 850)])
def test_unlocked_amounts_are_claimable_until_claimed(days: int, claimable: int) -> None:
    assert unlock_amounts(LINEAR, BEGIN + days * DAY).claimable == claimable


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (6 * DAY - SECOND, UnlockAmounts(1000, 150, 449, 599, 401, 0, 0)),
        (6 * DAY, UnlockAmounts(1000, 150, 0, 600, 0, 0, 850)),
        (20 * DAY, UnlockAmounts(1000, 150, 0, 1000, 0, 0, 850)),
    ],
)
def test_all_unclaimed_amounts_expire_at_once_while_the_schedule_goes_on(
    after: timedelta, expected: UnlockAmounts
) -> None:
    assert unlock_amounts(replace(LINEAR, expires_at=BEGIN + 6 * DAY), BEGIN + after) == expected


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (4 * DAY - SECOND, UnlockAmounts(1000, 150, 249, 399, 601, 0, 0)),
        (4 * DAY, UnlockAmounts(1000, 150, 250, 400, 0, 600, 0)),
        (20 * DAY, UnlockAmounts(1000, 150, 250, 1000, 0, 600, 0)),
    ],
)
def test_reclamation_takes_the_locked_amount_and_leaves_the_rest_claimable(
    after: timedelta, expected: UnlockAmounts
) -> None:
    assert unlock_amounts(replace(LINEAR, reclaimed_at=BEGIN + 4 * DAY), BEGIN + after) == expected


def test_an_arrangement_reclaimed_before_it_expires_never_expires() -> None:
    both = replace(LINEAR, reclaimed_at=BEGIN + 4 * DAY, expires_at=BEGIN + 6 * DAY)
    assert unlock_amounts(both, BEGIN + 7 * DAY) == UnlockAmounts(1000, 150, 250, 700, 0, 600, 0)


@pytest.mark.parametrize("days", [6, 8])
def test_reclamation_of_an_expired_arrangement_takes_nothing(days: int) -> None:
    both = replace(LINEAR, reclaimed_at=BEGIN + days * DAY, expires_at=BEGIN + 6 * DAY)
    assert unlock_amounts(both, BEGIN + 9 * DAY) == UnlockAmounts(1000, 150, 0, 900, 0, 0, 850)


def test_amounts_claimed_ahead_of_the_schedule_are_not_locked() -> None:
    """150 are claimed when 100 are unlocked."""
    assert unlock_amounts(LINEAR, BEGIN + DAY) == UnlockAmounts(1000, 150, 0, 100, 850, 0, 0)


def test_amounts_claimed_ahead_of_the_schedule_are_not_reclaimed() -> None:
    """150 are claimed when 100 are unlocked."""
    early = replace(LINEAR, reclaimed_at=BEGIN + DAY)
    assert unlock_amounts(early, BEGIN + 2 * DAY) == UnlockAmounts(1000, 150, 0, 200, 0, 850, 0)


def test_a_lump_sum_reclaimed_before_it_begins_is_reclaimed_entirely() -> None:
    lost = replace(LUMP, claimed=0, reclaimed_at=BEGIN - DAY)
    assert unlock_amounts(lost, BEGIN) == UnlockAmounts(1000, 0, 0, 1000, 0, 1000, 0)


_instants = st.integers(-20, 60).map(lambda second: BEGIN + second * SECOND)


@st.composite
def arrangements(draw: st.DrawFn, most: int) -> Arrangement:
    """Any arrangement, linear or a lump sum, of up to `most` units, which may expire, be reclaimed and be claimed."""
    arrangement = replace(
        draw(st.sampled_from([LINEAR, LUMP])),
        amount=(amount := draw(st.integers(0, most))),
        claimed=draw(st.integers(0, amount)),
        expires_at=draw(st.none() | _instants),
        reclaimed_at=draw(st.none() | _instants),
    )
    return (
        replace(arrangement, ends_at=BEGIN + draw(st.integers(0, 40)) * SECOND) if arrangement.ends_at else arrangement
    )


def fate(unit: int, arrangement: Arrangement, at: datetime) -> str:
    """What has become of a unit, numbered from 1 in the order of unlocking, by following its life."""

    def is_unlocked(when: datetime) -> bool:
        """In a linear schedule, unit n of N unlocks once n/N of the time is over."""
        if arrangement.ends_at is None or arrangement.ends_at == arrangement.begins_at:
            return when >= arrangement.begins_at
        return (
            Fraction((when - arrangement.begins_at) // SECOND, (arrangement.ends_at - arrangement.begins_at) // SECOND)
            * arrangement.amount
            >= unit
        )

    if unit <= arrangement.claimed:
        return "claimed"
    events = [(arrangement.expires_at, "expired"), (arrangement.reclaimed_at, "reclaimed")]
    # Of two events at the same instant, the expiry is the first.
    happened = sorted((when, name) for when, name in events if when is not None and when <= at)
    for when, event in happened[:1]:
        if event == "expired" or not is_unlocked(when):
            return event
        return "claimable"
    return "claimable" if is_unlocked(at) else "locked"


FATES = ("claimed", "claimable", "locked", "expired", "reclaimed")


@given(arrangements(most=30), _instants)
def test_each_amount_counts_the_units_that_have_this_fate(arrangement: Arrangement, at: datetime) -> None:
    fates = Counter(fate(unit, arrangement, at) for unit in range(1, arrangement.amount + 1))
    amounts = unlock_amounts(arrangement, at)
    assert {name: getattr(amounts, name) for name in FATES} == {name: fates[name] for name in FATES}


@given(arrangements(most=2**256 - 1), _instants)
def test_claimed_claimable_locked_expired_and_reclaimed_add_up_to_the_amount(
    arrangement: Arrangement, at: datetime
) -> None:
    amounts = unlock_amounts(arrangement, at)
    parts = [getattr(amounts, name) for name in FATES]
    assert sum(parts) == amounts.amount == arrangement.amount
    assert min(parts) >= 0
    assert amounts.unlocked + amounts.time_locked == arrangement.amount


def test_totals_sum_each_amount() -> None:
    amounts = [UnlockAmounts(1, 2, 3, 4, 5, 6, 7), UnlockAmounts(10, 20, 30, 40, 50, 60, 70)]
    assert unlock_totals(amounts) == UnlockAmounts(11, 22, 33, 44, 55, 66, 77)
    assert unlock_totals([]) == UnlockAmounts()


def test_groups_sum_arrangements_but_count_each_members_stake_and_holding_once() -> None:
    second = replace(LINEAR, index=1, amount=500, claimed=0, reclaimed_at=BEGIN)
    other = replace(LUMP, address="0x2", staked=100, held=1)
    investor = replace(LINEAR, member_class=MemberClass.INVESTOR, expires_at=BEGIN)
    team, advisors, investors = unlock_groups([LINEAR, second, other, investor], BEGIN + 5 * DAY)
    assert team.member_class is MemberClass.TEAM
    assert team.amounts == UnlockAmounts(
        amount=2500,
        claimed=300,
        claimable=350 + 0 + 850,
        unlocked=500 + 250 + 1000,
        locked=500,
        reclaimed=500,
        expired=0,
    )
    # What was reclaimed is still locked by its schedule, and what has expired was unlocked by its own.
    assert (team.amounts.time_locked, investors.amounts.time_locked) == (500 + 250, 500)
    assert (team.staked, team.held) == (107, 4)
    assert (advisors.member_class, advisors.amounts, advisors.held) == (MemberClass.ADVISOR, UnlockAmounts(), 0)
    assert (investors.amounts.amount, investors.amounts.expired) == (1000, 850)
