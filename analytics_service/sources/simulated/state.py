"""The state of the simulated protocol at an instant."""

from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, NamedTuple

from analytics_service.market.instants import DAY, instant
from analytics_service.market.markets import DebtMarket, LendMarket
from analytics_service.market.positions import Account, Balance, Holding, LendPosition, Position, Stake, Unbonding
from analytics_service.market.ptoken import Arrangement
from analytics_service.market.rates import SECONDS_PER_YEAR
from analytics_service.sources.simulated.people import ARRANGEMENTS, USERS, profile, user_address
from analytics_service.sources.simulated.terms import LAUNCH, LENT, issued
from analytics_service.sources.simulated.universe import ORIGINS, UNIT


class Pool(NamedTuple):
    """A pool in denom units as of the second `since` of its last event, such as a deposit or a loan.

    Its rates follow from its utilization then, and hold until the next. Divisions leave the remainder in the pool, so
    it always has what it owes. `reserves` are the fees, and `utilization_seconds` is in `UNIT`.
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
        """The rate that borrowers pay, in `UNIT`."""
        curve, used = LENT[self.asset_id], self.used
        below, above = min(used, curve.kink), max(used - curve.kink, 0)
        return curve.base + curve.slope * below // curve.kink + curve.steep * above // (UNIT - curve.kink)

    @property
    def lendable(self) -> int:
        """What can be borrowed before utilization reaches its limit."""
        return max(LENT[self.asset_id].limit * self.principal // UNIT - self.balance, 0)

    @property
    def redeemable(self) -> int:
        """What lenders can take before utilization reaches the same limit."""
        return max(self.principal - self.balance * UNIT // LENT[self.asset_id].limit, 0)

    def at(self, second: int) -> "Pool":
        """The pool at a later second, with the interest since. A fee of it is kept from lenders."""
        seconds, used = second - self.since, self.used
        if not seconds:
            return self
        interest = self.balance * self.apr * seconds // (UNIT * SECONDS_PER_YEAR)
        earned = interest * LENT[self.asset_id].kept // UNIT
        principal, balance = self.principal + earned, self.balance + interest
        reserves, accumulated = self.reserves + interest - earned, self.utilization_seconds + used * seconds
        return Pool(self.asset_id, second, principal, self.receipts, balance, self.shares, reserves, accumulated)

    def lent(self, amount: int) -> "Pool":
        """After a deposit, for which there are new receipts, or a redemption, if negative. Rounded for the pool."""
        receipts = amount * self.receipts // self.principal if self.receipts else amount
        return self._replace(principal=self.principal + amount, receipts=self.receipts + receipts)

    def borrowed(self, amount: int) -> "Pool":
        """After a loan, which is owed by new shares, or a return, if negative. Rounded for the pool."""
        shares = -(-amount * self.shares // self.balance) if self.shares else amount
        return self._replace(balance=self.balance + amount, shares=self.shares + shares)

    def owed(self, shares: int) -> int:
        """What must be returned for shares."""
        return -(-shares * self.balance // self.shares) if self.shares else 0

    def markets(self, second: int) -> tuple[LendMarket, DebtMarket]:
        """What is shown at a second: the rates in force, and the interest so far."""
        now, rules = self.at(second), LENT[self.asset_id]
        lend_apr, apr, accumulated = map(
            fraction, (self.apr * self.used * rules.kept // UNIT**2, self.apr, now.utilization_seconds)
        )
        debt = DebtMarket(rules.config, apr, now.balance, now.shares, instant(second), accumulated)
        return LendMarket(lend_apr, now.principal, now.receipts), debt


class Rewards(NamedTuple):
    """What a unit of staked weight has earned by a second, in `UNIT`. Stakes share all that is emitted."""

    since: int = LAUNCH
    earned: int = 0
    weight: int = 0
    claimed: int = 0

    def at(self, second: int) -> "Rewards":
        """At a later second, with the same stakes."""
        emitted = issued(second) - issued(self.since)
        share = emitted * UNIT // self.weight if self.weight else 0
        return self._replace(since=second, earned=self.earned + share)


def fraction(units: int) -> Decimal:
    """The value of a number in `UNIT`."""
    return Decimal(units).scaleb(-18)


# What an amount of a user is. A debt is in shares. A stake has its pool in place of an asset; beside it are what a unit
# of weight had earned when it last changed, and the second of its cascade. An unbonding amount has the second of its
# end in place of an account. Rewards are unclaimed, then claimable.
Of = Literal["wallet", "collateral", "debt", "stake", "earned", "cascade", "unbonding", "unclaimed", "claimable"]


class Key(NamedTuple):
    """What one of a user's amounts is, in which account and asset."""

    of: Of
    account: int = 0
    asset_id: str = ""


Amounts = dict[Key, int]


class Due(NamedTuple):
    """The next turn of an actor, after so many others. `act` names a method of `Turn`."""

    second: int
    act: str
    number: int = 0
    step: int = 0


@dataclass(slots=True)
class State:
    """The amounts of each user, the pools, and a heap of what is due next. Copies share what has not changed.

    `totals` are sums of amounts by kind and asset. `second` is that of the last transaction: no other has the same.
    """

    users: list[Amounts]
    pools: dict[str, Pool]
    rewards: Rewards
    arrangements: list[Arrangement]
    agenda: list[Due]
    totals: Counter[tuple[Of, str]]
    second: int = LAUNCH - 1

    @classmethod
    def first(cls, seed: str) -> "State":
        """Before the first transaction."""
        joined = [(profile(seed, number).joined, number) for number in range(USERS)]
        agenda = [Due(second, "visit", number) for second, number in joined]
        agenda += [Due(second + DAY, "watch", number) for second, number in joined]
        pools = {asset_id: Pool(asset_id) for asset_id in LENT}
        return cls([{} for _ in joined], pools, Rewards(), ARRANGEMENTS, sorted(agenda), Counter())

    def copy(self) -> "State":
        """A state that can be changed without changing this one."""
        lists = self.users.copy(), self.pools.copy(), self.rewards, self.arrangements.copy(), self.agenda.copy()
        return State(*lists, self.totals.copy(), self.second)

    def set(self, user: int, key: Key, amount: int) -> None:
        """Change an amount of a user; 0 removes it."""
        before = self.users[user]
        amounts = self.users[user] = {**before, key: amount}
        if not amount:
            del amounts[key]
        self.totals[key.of, key.asset_id] += amount - before.get(key, 0)

    def sums(self, of: Of) -> Counter[str]:
        """The sums of all users by asset id, or by pool."""
        return Counter({asset_id: amount for (kind, asset_id), amount in self.totals.items() if kind == of})

    def position(self, user: int, second: int) -> Position:
        """What is shown of a user at a second."""
        amounts = self.users[user]
        accounts: dict[int, tuple[list[Holding], list[Holding]]] = {}
        lends: dict[str, list[int]] = {}
        wallet, stakes, unbondings, free = [], [], [], 0
        for (of, index, asset_id), amount in sorted(amounts.items()):
            if of in ("collateral", "debt"):
                accounts.setdefault(index, ([], []))[of == "debt"].append(Holding(asset_id, amount))
            elif of == "wallet":
                wallet.append(Balance(asset_id, amount))
            elif of == "unbonding" and index > second:
                unbondings.append(Unbonding(amount, instant(index)))
            elif of == "unbonding":
                free += amount
            elif of == "stake":
                moves, earned = amounts.get(Key("cascade", index, asset_id)), Key("earned", index, asset_id)
                moves_at = instant(moves) if moves else None
                stakes.append(
                    Stake(int(asset_id), index, amount, bool(moves), moves_at, fraction(amounts.get(earned, 0)))
                )
            if of in ("collateral", "wallet") and asset_id in ORIGINS:
                lends.setdefault(ORIGINS[asset_id], [0, 0])[of == "collateral"] += amount
        return Position(
            user_address(user),
            tuple(Account(index, *map(tuple, sides)) for index, sides in sorted(accounts.items())),
            tuple(LendPosition(asset_id, *parts) for asset_id, parts in sorted(lends.items())),
            tuple(wallet),
            tuple(stakes),
            tuple(unbondings),
            amounts.get(Key("unclaimed"), 0),
            amounts.get(Key("claimable"), 0),
            free,
        )
