"""The state of the simulated protocol at an instant."""

from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from analytics_service.market.instants import DAY, instant
from analytics_service.market.markets import DebtMarket, LendMarket
from analytics_service.market.rates import SECONDS_PER_YEAR
from analytics_service.sources.simulated.people import USERS, profile
from analytics_service.sources.simulated.terms import LAUNCH, LENT, in_force
from analytics_service.sources.simulated.token import AGREEMENTS, Rewards
from analytics_service.sources.simulated.universe import UNIT


class Pool(NamedTuple):
    """A pool in denom units as of the second `since` of its last event, such as a deposit or a loan.

    Its rates follow from its utilization then, and hold until the next. Divisions leave the remainder in the pool, so
    it always has what it owes. `reserves` are the fees, and `utilization_seconds` is in `UNIT`.
    """

    asset_id: str
    since: int
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
    def cash(self) -> int:
        """What is there."""
        return max(self.principal + self.reserves - self.balance, 0)

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
        seconds = second - self.since
        if not seconds:
            return self
        interest = self.balance * self.apr * seconds // (UNIT * SECONDS_PER_YEAR)
        earned = interest * LENT[self.asset_id].kept // UNIT
        principal, balance, reserves = (
            self.principal + earned,
            self.balance + interest,
            self.reserves + interest - earned,
        )
        accumulated = self.utilization_seconds + self.used * seconds
        return Pool(self.asset_id, second, principal, self.receipts, balance, self.shares, reserves, accumulated)

    def lent(self, amount: int) -> "Pool":
        """After a deposit, for which there are new receipts."""
        receipts = amount * self.receipts // self.principal if self.receipts else amount
        return self._replace(principal=self.principal + amount, receipts=self.receipts + receipts)

    def redeemed(self, receipts: int) -> "Pool":
        """After receipts were redeemed."""
        amount = receipts * self.principal // self.receipts
        return self._replace(principal=self.principal - amount, receipts=self.receipts - receipts)

    def borrowed(self, amount: int) -> "Pool":
        """After a loan, which is owed by new shares."""
        shares = -(-amount * self.shares // self.balance) if self.shares else amount
        return self._replace(balance=self.balance + amount, shares=self.shares + shares)

    def returned(self, amount: int, owned: int) -> "Pool":
        """After an amount was returned by the owner of shares. All that they owe takes all of them."""
        shares = owned if amount >= self.owed(owned) else amount * self.shares // self.balance
        return self._replace(balance=self.balance - amount, shares=self.shares - shares)

    def owed(self, shares: int) -> int:
        """What must be returned for shares."""
        return -(-shares * self.balance // self.shares) if self.shares else 0

    def markets(self, second: int) -> tuple[LendMarket, DebtMarket]:
        """What is shown at a second: the rates in force, and the interest so far."""
        now, rules = self.at(second), LENT[self.asset_id]
        lend_apr, apr, accumulated = (
            Decimal(units).scaleb(-18)
            for units in (self.apr * self.used * rules.kept // UNIT**2, self.apr, now.utilization_seconds)
        )
        debt = DebtMarket(in_force(rules.config, second), apr, now.balance, now.shares, instant(second), accumulated)
        return LendMarket(lend_apr, now.principal, now.receipts), debt


class Of:
    """What an amount is: held, posted, owed (in shares), or staked.

    A stake has its pool in place of an asset. Beside it are what a unit of weight had `EARNED` when it last changed,
    and the second of its `CASCADE`. An unbonding amount has the second of its end in place of an account, an unlocked
    one the number of its agreement, beside the seconds of the last claim and of reclamation.
    """

    WALLET, COLLATERAL, DEBT, STAKE, EARNED, CASCADE = "wallet", "collateral", "debt", "stake", "earned", "cascade"
    UNBONDING, UNCLAIMED, CLAIMABLE, REWARDED = "unbonding", "unclaimed", "claimable", "rewarded"
    UNLOCKED, UNLOCKED_AT, RECLAIMED_AT = "unlocked", "unlocked at", "reclaimed at"


class Key(NamedTuple):
    """What one of a user's amounts is, in which account and asset."""

    of: str
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

    `second` is that of the last transaction: no other has the same.
    """

    users: list[Amounts]
    pools: dict[str, Pool]
    rewards: Rewards
    agenda: list[Due]
    totals: Counter[tuple[str, str]]
    second: int = LAUNCH - 1

    @classmethod
    def first(cls, seed: str) -> "State":
        """Before the first transaction."""
        users = [(profile(seed, number).joined, number) for number in range(USERS)]
        agenda = [Due(second, "visit", number) for second, number in users]
        agenda += [Due(second + DAY, "watch", number) for second, number in users]
        agenda += [Due(LAUNCH, "flash_loan"), Due(LAUNCH, "war_chest")]
        agenda += [Due(LAUNCH, "unlock", number) for number in range(len(AGREEMENTS))]
        pools = {asset_id: Pool(asset_id, LAUNCH) for asset_id in LENT}
        return cls([{} for _ in users], pools, Rewards(), sorted(agenda), Counter())

    def copy(self) -> "State":
        """A state that can be changed without changing this one."""
        return State(
            self.users.copy(), self.pools.copy(), self.rewards, self.agenda.copy(), self.totals.copy(), self.second
        )

    def set(self, user: int, key: Key, amount: int) -> None:
        """Change an amount of a user; 0 removes it."""
        before = self.users[user]
        amounts = self.users[user] = {**before, key: amount}
        if not amount:
            del amounts[key]
        self.totals[key.of, key.asset_id] += amount - before.get(key, 0)

    def sums(self, of: str) -> Counter[str]:
        """The sums of all users by asset id, or by pool."""
        return Counter({asset_id: amount for (kind, asset_id), amount in self.totals.items() if kind == of})
