"""The simulated protocol token: its state, and its unlock arrangements."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from analytics_service.market.events import Action
from analytics_service.market.instants import DAY, MINUTE, instant, unix_second
from analytics_service.market.positions import Position
from analytics_service.market.ptoken import Arrangement, MemberClass, Ptoken, ScheduleKind, StakingPool
from analytics_service.market.unlocks import unlock_amounts, unlocked_at
from analytics_service.sources.simulated import emission
from analytics_service.sources.simulated.acts import Act
from analytics_service.sources.simulated.census import census
from analytics_service.sources.simulated.clock import LAUNCH
from analytics_service.sources.simulated.markets import positions
from analytics_service.sources.simulated.people import contract_address, user_address
from analytics_service.sources.simulated.terms import CONFIG

_ADMIN = contract_address("unlock admin")
_UNLOCKS = contract_address("unlocks")
_TOKEN = 10**6


@dataclass(frozen=True, slots=True)
class Agreement:
    """An arrangement as agreed with a user. Days count from launch; `days` is its length, 0 for a lump sum.

    From its start on, the user claims everything claimable every `claims` days, or never if that is 0.
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
_AGREEMENTS = (
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


def ptoken(seed: str, second: int) -> Ptoken:
    """The protocol token. Its pools hold the sums of all positions' stakes."""
    holders = list(positions(seed, second))
    issued = emission.issued(second)
    bonded = census(seed, second).bonded
    unbonding = sum(holder.amount for position in holders for holder in position.unbondings)
    return Ptoken(
        asset_id=CONFIG.ptoken,
        emission_rate=emission.EMISSION_RATE,
        tokens_per_weight=emission.TOKENS_PER_WEIGHT,
        total_issued=issued,
        total_claimed=issued - sum(holder.unclaimed + holder.claimable_rewards for holder in holders),
        total_locked=sum(bonded.values()) + unbonding + sum(_kept(seed, second)),
        total_supply=emission.TOTAL_SUPPLY,
        rewards_last_distributed=instant(emission.distributed_at(second)),
        stake_acc=emission.stake_acc(second),
        pools=tuple(
            StakingPool(
                index,
                pool.duration,
                pool.reward_weight,
                pool.gov_weight,
                pool.health_weight,
                pool.flash_loan_weight,
                bonded[index],
            )
            for index, pool in enumerate(emission.POOLS)
        ),
    )


def arrangements(seed: str, second: int) -> list[Arrangement]:
    """Every arrangement with its state at a second; the same agreements for every seed."""
    by_address = {position.address: position for position in census(seed, second).positions}
    made: dict[int, int] = {}
    result = []
    for agreement in _AGREEMENTS:
        index = made[agreement.user] = made.get(agreement.user, -1) + 1
        result.append(_arrangement(agreement, index, by_address.get(user_address(agreement.user)), second))
    return result


def unlock_acts(until: int) -> Iterator[Act]:
    """Creation, claims and reclamation of every agreement up to a second."""
    for number, agreement in enumerate(_AGREEMENTS):
        agreed = _arrangement(agreement, 0, None, until)
        act = partial(_act, f"unlock-{number}", agreed.address)
        yield act("created", Action.CREATE_TOKEN_UNLOCK, LAUNCH + MINUTE, agreed.amount)
        claimed = 0
        for count, second in enumerate(_claims(agreement, until)):
            unlocked = unlocked_at(agreed, instant(second))
            if unlocked > claimed:
                yield act(f"claim-{count}", Action.CLAIM_TOKEN_UNLOCK, second, unlocked - claimed)
            claimed = unlocked
        if agreed.reclaimed_at:
            locked = agreed.amount - unlocked_at(agreed, agreed.reclaimed_at)
            yield act("reclaimed", Action.RECLAIM_TOKEN_UNLOCK, unix_second(agreed.reclaimed_at), locked)


def _act(unlock: str, address: str, item: str, action: Action, second: int, amount: int) -> Act:
    act_id = f"{unlock}-{item}"
    return Act(act_id, action, CONFIG.ptoken, address, second, amount, _UNLOCKS, act_id)


def _arrangement(agreement: Agreement, index: int, member: Position | None, second: int) -> Arrangement:
    begins = LAUNCH + agreement.begins * DAY
    reclaimed = None if agreement.reclaimed is None else LAUNCH + agreement.reclaimed * DAY
    bare = Arrangement(
        address=user_address(agreement.user),
        index=index,
        member_class=agreement.member_class,
        kind=ScheduleKind.LINEAR if agreement.days else ScheduleKind.LUMP_SUM,
        amount=agreement.tokens * _TOKEN,
        claimed=0,
        begins_at=instant(begins),
        ends_at=instant(begins + agreement.days * DAY) if agreement.days else None,
        expires_at=None if agreement.expires is None else instant(LAUNCH + agreement.expires * DAY),
        last_claimed_at=None,
        admin=_ADMIN,
        reclaimed_at=instant(reclaimed) if reclaimed is not None and reclaimed <= second else None,
        staked=sum(stake.amount for stake in member.stakes) if member else 0,
        held=sum(balance.amount for balance in member.wallet if balance.asset_id == CONFIG.ptoken) if member else 0,
    )
    return _claimed(bare, agreement, second)


def _claimed(bare: Arrangement, agreement: Agreement, second: int) -> Arrangement:
    """The arrangement after its last claim."""
    claims = _claims(agreement, second)
    if not claims:
        return bare
    claimed_at = instant(claims[-1])
    return replace(bare, claimed=unlocked_at(bare, claimed_at), last_claimed_at=claimed_at)


def _claims(agreement: Agreement, second: int) -> range:
    """The seconds of all claims up to a second. Claims end once nothing is left to claim."""
    begins = LAUNCH + agreement.begins * DAY
    ends = [agreement.expires, agreement.reclaimed]
    if agreement.days:
        # The first claim after everything has unlocked is the last.
        ends.append(agreement.begins + agreement.days + agreement.claims)
    else:
        ends.append(agreement.begins + agreement.claims + 1)
    last = min([second, *(LAUNCH + day * DAY - 1 for day in ends if day is not None)])
    interval = agreement.claims * DAY
    return range(begins + interval, last + 1, interval) if interval else range(0)


def _kept(seed: str, second: int) -> Iterator[int]:
    """The amount of each arrangement that is locked or not claimed yet."""
    for arrangement in arrangements(seed, second):
        amounts = unlock_amounts(arrangement, instant(second))
        yield amounts.claimable + amounts.locked
