"""The simulated protocol token: its emission, staking pools and unlock agreements. The same for every seed."""

from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from analytics_service.market.instants import DAY, instant
from analytics_service.market.ptoken import Arrangement, MemberClass, ScheduleKind, StakingPool
from analytics_service.market.rates import SECONDS_PER_YEAR
from analytics_service.sources.simulated.people import contract_address, user_address
from analytics_service.sources.simulated.terms import LAUNCH
from analytics_service.sources.simulated.universe import UNIT

TOKEN = 10**6
# In denom units; emitted each year from launch on.
TOTAL_SUPPLY = 1_000_000_000 * TOKEN
ISSUED_AT_LAUNCH = 400_000_000 * TOKEN
EMISSION_RATE = 40_000_000 * TOKEN
TOKENS_PER_WEIGHT = 1_000_000
_ADMIN = contract_address("unlock admin")


def _pool(index: int, days: int, weight: str, health_weight: str) -> StakingPool:
    reward, health = Decimal(weight), Decimal(health_weight)
    return StakingPool(index, days * DAY, reward, reward, health, health, total_bonded=0)


POOLS = (
    _pool(0, 14, "0.25", "0.5"),
    _pool(1, 90, "0.5", "0.75"),
    _pool(2, 180, "0.75", "0.9"),
    _pool(3, 365, "1", "1"),
)


class Rewards(NamedTuple):
    """What a unit of staked weight has earned by a second, in `UNIT`. Stakes share all that is emitted."""

    since: int = LAUNCH
    earned: int = 0
    weight: int = 0

    def at(self, second: int) -> "Rewards":
        """At a later second, with the same stakes."""
        emitted = issued(second) - issued(self.since)
        return Rewards(second, self.earned + (emitted * UNIT // self.weight if self.weight else 0), self.weight)


def issued(second: int) -> int:
    """Denom units issued up to a second, never more than the total supply."""
    return min(ISSUED_AT_LAUNCH + EMISSION_RATE * max(second - LAUNCH, 0) // SECONDS_PER_YEAR, TOTAL_SUPPLY)


def weight(pool: int, amount: int) -> int:
    """The reward weight of a stake in a pool."""
    return amount * int(POOLS[pool].reward_weight * 100) // 100


class Agreement(NamedTuple):
    """An unlock arrangement as agreed with a user: from `begins` on, for so many days, or 0 for a lump sum.

    The user claims everything claimable every `claims` days, or never if that is 0. Days count from launch.
    """

    user: int
    member_class: MemberClass
    tokens: int
    begins: int
    days: int
    claims: int = 45
    expires: int | None = None
    reclaimed: int | None = None


_TEAM, _ADVISOR, _INVESTOR = MemberClass
AGREEMENTS = (
    Agreement(0, _TEAM, 20_000_000, begins=0, days=1_460, claims=30, expires=1_825),
    Agreement(0, _TEAM, 500_000, begins=20, days=0, claims=10, expires=730),
    Agreement(2, _TEAM, 25_000_000, begins=0, days=1_460),
    # Reclaimed after a month, when the member left.
    Agreement(3, _TEAM, 15_000_000, begins=0, days=1_460, claims=10, reclaimed=31),
    Agreement(4, _TEAM, 2_000_000, begins=365, days=730, claims=60),
    Agreement(5, _ADVISOR, 3_000_000, begins=0, days=730, claims=20),
    # Expires before half of it is claimed.
    Agreement(6, _ADVISOR, 1_000_000, begins=5, days=40, claims=18, expires=40),
    # Begins in 2035.
    Agreement(7, _ADVISOR, 750_000, begins=3_652, days=0),
    Agreement(8, _INVESTOR, 40_000_000, begins=0, days=1_095, claims=90),
    Agreement(9, _INVESTOR, 30_000_000, begins=180, days=900, claims=90),
    Agreement(10, _INVESTOR, 5_000_000, begins=30, days=0, claims=0),
    Agreement(11, _INVESTOR, 8_000_000, begins=10, days=0, claims=25),
)


def _day(day: int) -> datetime:
    return instant(LAUNCH + day * DAY)


# As they begin; an address numbers its own.
ARRANGEMENTS = tuple(
    Arrangement(
        address=user_address(agreed.user),
        index=sum(before.user == agreed.user for before in AGREEMENTS[:number]),
        member_class=agreed.member_class,
        kind=ScheduleKind.LINEAR if agreed.days else ScheduleKind.LUMP_SUM,
        amount=agreed.tokens * TOKEN,
        claimed=0,
        begins_at=_day(agreed.begins),
        ends_at=_day(agreed.begins + agreed.days) if agreed.days else None,
        expires_at=None if agreed.expires is None else _day(agreed.expires),
        last_claimed_at=None,
        admin=_ADMIN,
        reclaimed_at=None,
        staked=0,
        held=0,
    )
    for number, agreed in enumerate(AGREEMENTS)
)
