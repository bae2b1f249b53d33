"""Unlock arrangements before, at and after each of their instants."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import strategies as st

from analytics_service.market.ptoken import (
    Arrangement,
    MemberClass,
    ScheduleKind,
    UnlockAmounts,
    unlock_amounts,
    unlock_groups,
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


EXPIRED, RECLAIMED = {"expires_at": BEGIN + 6 * DAY}, {"reclaimed_at": BEGIN + 4 * DAY}


@pytest.mark.parametrize(
    ("changes", "after", "expected"),
    [
        # Unlocked amounts are claimable; 150 are claimed, also ahead of the schedule.
        ({}, DAY, UnlockAmounts(1000, 150, 0, 100, 850, 0, 0)),
        ({}, 2 * DAY, UnlockAmounts(1000, 150, 50, 200, 800, 0, 0)),
        # All unclaimed amounts expire at once, while the schedule goes on.
        (EXPIRED, 6 * DAY - SECOND, UnlockAmounts(1000, 150, 449, 599, 401, 0, 0)),
        (EXPIRED, 6 * DAY, UnlockAmounts(1000, 150, 0, 600, 0, 0, 850)),
        (EXPIRED, 20 * DAY, UnlockAmounts(1000, 150, 0, 1000, 0, 0, 850)),
        # Reclamation takes the locked amount, not what was claimed ahead, and leaves the rest claimable.
        (RECLAIMED, 4 * DAY - SECOND, UnlockAmounts(1000, 150, 249, 399, 601, 0, 0)),
        (RECLAIMED, 4 * DAY, UnlockAmounts(1000, 150, 250, 400, 0, 600, 0)),
        (RECLAIMED, 20 * DAY, UnlockAmounts(1000, 150, 250, 1000, 0, 600, 0)),
        ({"reclaimed_at": BEGIN + DAY}, 2 * DAY, UnlockAmounts(1000, 150, 0, 200, 0, 850, 0)),
        # Of both, only the earlier has an effect; expiry at the same instant.
        (EXPIRED | RECLAIMED, 7 * DAY, UnlockAmounts(1000, 150, 250, 700, 0, 600, 0)),
        (EXPIRED | {"reclaimed_at": BEGIN + 6 * DAY}, 9 * DAY, UnlockAmounts(1000, 150, 0, 900, 0, 0, 850)),
        (EXPIRED | {"reclaimed_at": BEGIN + 8 * DAY}, 9 * DAY, UnlockAmounts(1000, 150, 0, 900, 0, 0, 850)),
        # A lump sum that is reclaimed before it begins.
        (
            {"kind": ScheduleKind.LUMP_SUM, "ends_at": None, "claimed": 0, "reclaimed_at": BEGIN - DAY},
            0 * DAY,
            UnlockAmounts(1000, 0, 0, 1000, 0, 1000, 0),
        ),
    ],
)
def test_amounts_by_hand(changes: dict[str, Any], after: timedelta, expected: UnlockAmounts) -> None:
    """Rule 6.3."""
    assert unlock_amounts(replace(LINEAR, **changes), BEGIN + after) == expected


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
