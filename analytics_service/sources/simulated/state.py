"""The state of the simulated protocol at an instant."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from analytics_service.market.instants import DAY, from_unix
from analytics_service.market.markets import DebtMarket, LendMarket
from analytics_service.market.positions import Account, Balance, Holding, LendPosition, Position, Stake, Unbonding
from analytics_service.market.ptoken import Arrangement
from analytics_service.market.rates import SECONDS_PER_YEAR
from analytics_service.sources.simulated.people import Key, Of, user_address
from analytics_service.sources.simulated.terms import CURVES, LAUNCH, LENT, POOLS, issued
from analytics_service.sources.simulated.universe import ORIGINS, UNIT

# Stakes in these pools move to the next pool by themselves, ten years after the launch.
CASCADING = "12"
_MOVES_AT = from_unix(LAUNCH + 3_650 * DAY)
# Lenders' part of the interest, and the highest utilization, in `UNIT`.
_KEPT = {asset_id: UNIT - int(config.interest_fee * UNIT) for asset_id, config in LENT.items()}
_LIMITS = {asset_id: int(config.borrow_halt_utilization * UNIT) for asset_id, config in LENT.items()}


class Pool(NamedTuple):
    """A pool in denom units as of the second `since` of its last event, such as a deposit or a loan.

    Its utilization then decides its rates until the next event. Divisions leave remainders in the pool, so it is always
    solvent. `reserves` are fees, and `utilization_seconds` is in `UNIT`.
    """

    asset_id: str
    since: int = LAUNCH
    principal: int = 0
    receipts: int = 0
    balance: int = 0
    shares: int = 0
    reserves: int = 0
    utilization_seconds: int = 0

    @property
    def used(self) -> int:
        """Utilization, in `UNIT`."""
        return self.balance * UNIT // self.principal if self.principal else 0

    @property
    def apr(self) -> int:
        """The borrow rate, in `UNIT`."""
        base, slope, steep, kink = CURVES[self.asset_id]
        below, above = min(self.used, kink), max(self.used - kink, 0)
        return base + slope * below // kink + steep * above // (UNIT - kink)

    @property
    def lendable(self) -> int:
        """The amount that can be borrowed, or redeemed, before utilization reaches its limit."""
        return max(_LIMITS[self.asset_id] * self.principal // UNIT - self.balance, 0)

    def at(self, second: int) -> "Pool":
        """The pool at a later second, with the interest since, of which a fee goes to the reserves."""
        seconds, used = second - self.since, self.used
        interest = self.balance * self.apr * seconds // (UNIT * SECONDS_PER_YEAR)
        earned = interest * _KEPT[self.asset_id] // UNIT
        principal, balance = self.principal + earned, self.balance + interest
        reserves, accumulated = self.reserves + interest - earned, self.utilization_seconds + used * seconds
        return Pool(self.asset_id, second, principal, self.receipts, balance, self.shares, reserves, accumulated)

    def lent(self, amount: int) -> "Pool":
        """The pool after a deposit, which issues receipts, or a redemption if negative. Rounds in the pool's favour."""
        receipts = amount * self.receipts // self.principal if self.receipts else amount
        return self._replace(principal=self.principal + amount, receipts=self.receipts + receipts)

    def borrowed(self, amount: int) -> "Pool":
        """The pool after a loan, which issues shares, or a return if negative. Rounds in the pool's favour."""
        shares = -(-amount * self.shares // self.balance) if self.shares else amount
        return self._replace(balance=self.balance + amount, shares=self.shares + shares)

    def redeemed(self, receipts: int) -> int:
        """The amount that receipts redeem."""
        return receipts * self.principal // self.receipts if self.receipts else 0

    def owed(self, shares: int) -> int:
        """The amount that shares owe."""
        return -(-shares * self.balance // self.shares) if self.shares else 0

    def markets(self, second: int) -> tuple[LendMarket, DebtMarket]:
        """The pool's markets at a second, with present rates, and interest up to then."""
        now = self.at(second)
        lend_apr, apr = fraction(self.apr * self.used * _KEPT[self.asset_id] // UNIT**2), fraction(self.apr)
        accumulated = fraction(now.utilization_seconds)
        debt = DebtMarket(LENT[self.asset_id], apr, now.balance, now.shares, from_unix(second), accumulated)
        return LendMarket(lend_apr, now.principal, now.receipts), debt


def fraction(units: int) -> Decimal:
    """The value of a number in `UNIT`."""
    return Decimal(units).scaleb(-18)


class Amounts(dict[Key, int]):
    """A user's amounts; missing amounts are 0."""

    def __missing__(self, _: Key) -> int:
        return 0


@dataclass(slots=True)
class WorldState:
    """The amounts of each user, the pools, and the agenda: a heap of second, user and number of each user's next turn.

    `totals` are sums of amounts by kind and asset. A unit of staked weight had earned `rewards`, in `UNIT`, at the
    second `rewarded`. `second` is the second of the last transaction; each transaction has its own.
    """

    users: list[Amounts]
    pools: dict[str, Pool]
    arrangements: list[Arrangement]
    agenda: list[tuple[int, int, int]]
    totals: Counter[tuple[Of, str]]
    rewards: int = 0
    rewarded: int = LAUNCH
    second: int = LAUNCH - 1

    def copy(self) -> "WorldState":
        """A copy that can be changed by itself. Unchanged parts are shared."""
        lists = self.users.copy(), self.pools.copy(), self.arrangements.copy(), self.agenda.copy(), self.totals.copy()
        return WorldState(*lists, self.rewards, self.rewarded, self.second)

    def put(self, user: int, amounts: Amounts) -> None:
        """Replace the amounts of a user. Drops amounts of 0."""
        before, self.users[user] = self.users[user], Amounts({key: n for key, n in amounts.items() if n})
        for key, amount in amounts.items():
            if amount != before[key]:
                self.totals[key.of, key.asset_id] += amount - before[key]

    def sums(self, of: Of) -> Counter[str]:
        """The sums of all users by asset id, or by pool."""
        return Counter({asset_id: amount for (kind, asset_id), amount in self.totals.items() if kind == of})

    def rewards_at(self, second: int) -> int:
        """The reward of a unit of staked weight by a second, in `UNIT`. Stakes share the whole emission."""
        weight = sum(int(pool.reward_weight * self.totals["stake", str(pool.index)]) for pool in POOLS)
        emitted = issued(second) - issued(self.rewarded)
        return self.rewards + (emitted * UNIT // weight if weight else 0)

    def position(self, user: int, second: int) -> Position:
        """The position of a user at a second."""
        amounts = self.users[user]
        items = [(*key, amount) for key, amount in sorted(amounts.items())]

        def holdings(side: Of, account: int) -> tuple[Holding, ...]:
            return tuple(Holding(one, shares) for of, index, one, shares in items if (of, index) == (side, account))

        lent: defaultdict[str, Counter[Of]] = defaultdict(Counter)
        stakes, unbondings = [], []
        for of, index, asset_id, amount in items:
            if asset_id in ORIGINS:
                lent[ORIGINS[asset_id]][of] += amount
            elif of == "stake":
                moves_at = _MOVES_AT if asset_id in CASCADING else None
                earned = fraction(amounts[Key("earned", index, asset_id)])
                stakes.append(Stake(int(asset_id), index, amount, bool(moves_at), moves_at, earned))
            elif of == "unbonding":
                unbondings.append(Unbonding(amount, from_unix(index)))
        return Position(
            user_address(user),
            tuple(
                Account(index, holdings("collateral", index), holdings("debt", index))
                for index in sorted({index for of, index, *_ in items if of in ("collateral", "debt")})
            ),
            tuple(LendPosition(one, sides["wallet"], sides["collateral"]) for one, sides in sorted(lent.items())),
            tuple(Balance(asset_id, amount) for of, _, asset_id, amount in items if of == "wallet"),
            tuple(stakes),
            tuple(one for one in unbondings if one.unlock_at > from_unix(second)),
            amounts[Key("unclaimed")],
            amounts[Key("claimable")],
            sum(one.amount for one in unbondings if one.unlock_at <= from_unix(second)),
        )
