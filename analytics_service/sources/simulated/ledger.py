"""The simulated protocol from its launch on: its state at any second is the fold of its transactions."""

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache
from hashlib import sha256
from heapq import heapreplace
from typing import Any, NamedTuple

from analytics_service.market.events import Action, Event, Leg
from analytics_service.market.health import account_health
from analytics_service.market.instants import DAY, HOUR, MINUTE, instant
from analytics_service.market.unlocks import unlock_amounts
from analytics_service.market.values import usd_value
from analytics_service.sources.simulated.people import LEAVES, USERS, Wish, contract_address, profile, user_address
from analytics_service.sources.simulated.state import Amounts, Due, Key, Pool, State, fraction
from analytics_service.sources.simulated.terms import COLLATERALS, CONFIG, LAUNCH, LENT, POOLS, TOKEN, UNITS
from analytics_service.sources.simulated.universe import LISTINGS, ORIGINS, UNIT, Draws, usd_price

_LTVS = {one: (int(rules.allowable_ltv * 100), int(rules.liquidation_ltv * 100)) for one, rules in COLLATERALS.items()}
_CONTRACTS = {name: contract_address(name) for name in ("markets", "staking", "bank", "unlocks", "war chest")}
_PTK = CONFIG.ptoken
# Stakes in these pools move to the next by themselves.
_CASCADING = "12"
# Prices that need not be exact are as old as this at most, because many turns then share them.
_STALE = 4 * DAY
# In `UNIT`. Liquidators leave smaller debts (USD) alone, and watch an account closely below the health.
_WORTHWHILE, _CLOSE = 500 * UNIT, UNIT * 51 // 50
_TARGET, _WIDTH = (int(ratio * UNIT) for ratio in (CONFIG.target_liquidation_health, CONFIG.dynamic_discount_width))

# States that are kept, and the days whose states stay when there are more.
_MAX_KEPT, _STAYING = 500, 32 * DAY


class Standing(NamedTuple):
    """An account in `UNIT` USD: its collaterals and debts by asset, what it may owe, and at most before it is
    liquidated."""

    collaterals: dict[str, int]
    debts: dict[str, int]
    allowed: int
    secured: int
    owed: int


class Turn:
    """What an actor does, by the protocol's rules, and the events that tell it.

    Changes the state at once. With events it is a transaction, which has a second of its own.
    """

    def __init__(self, seed: str, state: State, due: Due) -> None:
        self._seed, self._state, self._due, self._user = seed, state, due, due.number
        self._second = max(due.second, state.second + 1)
        self._earlier = self._second - self._second % _STALE
        self._draws = Draws(f"{seed}|{due.act}|{due.number}|{due.step}")
        self._told: list[Event] = []

    def take(self) -> Due:
        """Do what is due. Returns what the actor does next."""
        following: int = getattr(self, f"_{self._due.act}")()
        if self._told:
            self._state.second = self._second
        return Due(following, self._due.act, self._due.number, self._due.step + 1)

    def events(self) -> Iterator[Event]:
        """The events, with prices. Ask before the next turn changes the state."""
        transaction = f"{self._due.act}-{self._due.number}-{self._due.step}"
        tx_hash = sha256(f"{self._seed}|{transaction}".encode()).hexdigest().upper()
        for item, event in enumerate(self._told):
            price = fraction(self._price(event.asset_id, self._second))
            decimals = len(str(UNITS[event.asset_id])) - 1
            usd = None if event.amount is None else usd_value(event.amount, decimals, price)
            yield replace(event, id=f"{transaction}-{item}", usd=usd, price=price, tx_hash=tx_hash)

    def _visit(self) -> int:
        """A user goes on to the next wish that leads to a transaction."""
        user = profile(self._seed, self._user)
        visit, item = divmod(self._due.step, len(user.wishes))
        for asset_id, size in () if self._due.step else user.savings:
            self._receive(asset_id, self._sized(asset_id, size) if asset_id in LISTINGS else size)
        while item < len(user.wishes) and not self._told:
            getattr(self, f"_{user.wishes[item].act}")(user.wishes[item])
            item += 1
        self._due = self._due._replace(step=visit * len(user.wishes) + item - 1)
        if item < len(user.wishes):
            # Reading and signing take a while.
            return self._second + self._draws.between(11, 95)
        return user.joined + (visit + 1) * user.period + self._draws.below(6 * HOUR)

    def _claim(self, _: Wish) -> None:
        """All that is free. Rewards of stakes that have changed can be claimed from the next visit on."""
        ended = [key for key in self._amounts if key.of == "unbonding" and key.account <= self._second]
        unbonded, rewards = sum(map(self._amount, ended)), self._amount(Key("claimable"))
        changes = {key: -self._amount(key) for key in (*ended, Key("unclaimed"))}
        changes[Key("claimable")] = self._amount(Key("unclaimed")) - rewards
        for key, change in changes.items():
            self._add(key, change)
        self._state.rewards = self._state.rewards._replace(claimed=self._state.rewards.claimed + rewards)
        self._settle((Action.CLAIM_UNBONDED,), _PTK, unbonded, "staking")
        self._settle((Action.CLAIM_REWARDS,), _PTK, rewards, "staking")

    def _lend(self, wish: Wish) -> None:
        """More where more is borrowed, so that utilization stays in the middle."""
        pool, receipt = self._pool(wish.asset_id), Key("wallet", 0, LISTINGS[wish.asset_id].asset.receipt_asset or "")
        owned = sum(amount for key, amount in self._amounts.items() if key.asset_id == receipt.asset_id)
        wanted = self._sized(wish.asset_id, wish.size) * (UNIT * 2 // 5 + pool.used) // UNIT
        change = self._change(owned * pool.principal // pool.receipts if owned else 0, wanted)
        if change < 0:
            change = max(change, -(self._amount(receipt) * pool.principal // pool.receipts), -pool.redeemable)
        if change:
            self._put(pool.lent(change), receipt)
            self._settle((Action.REDEEM, Action.LEND), wish.asset_id, -change)

    def _collateral(self, wish: Wish) -> None:
        """Receipt tokens come from the wallet only. Users keep a distance of 5 % to what they may owe."""
        index, asset_id, key = wish.account, wish.asset_id, Key("collateral", *wish[1:3])
        change = self._change(self._amount(key), self._sized(asset_id, wish.size))
        if asset_id in ORIGINS:
            change = min(change, self._amount(Key("wallet", 0, asset_id)) * 2 // 3)
        if change < 0:
            account = self._standing(index, self._second)
            spare = max(account.allowed - account.owed * 21 // 20, 0) * 100 // _LTVS[asset_id][0]
            change = max(change, -self._bought(asset_id, spare))
        self._add(key, change)
        actions = (Action.WITHDRAW_COLLATERAL, Action.DEPOSIT_COLLATERAL)
        self._settle(actions, asset_id, -change, account_index=index)

    def _debt(self, wish: Wish) -> None:
        _, index, asset_id, percent = wish
        key, pool, account = Key("debt", index, asset_id), self._pool(asset_id), self._standing(index, self._earlier)
        value = self._change(account.debts.get(asset_id, 0), account.allowed * percent // 100)
        if value > 0:
            account = self._standing(index, self._second)
            free = max(min(value, account.allowed - account.owed), 0)
            change = min(self._bought(asset_id, free), pool.lendable)
        else:
            change = -min(self._bought(asset_id, -value, self._earlier), pool.owed(self._amount(key)))
        if change:
            self._put(pool.borrowed(change), key)
            self._settle((Action.BORROW, Action.RETURN), asset_id, change, account_index=index)

    def _stake(self, wish: Wish) -> None:
        """More or less in a pool; rewards so far are earned. A move to the next pool is put off past the next visit."""
        _, index, pool, tokens = wish
        key, earned, terms = Key("stake", index, pool), Key("earned", index, pool), POOLS[int(pool)]
        staked, rewards = self._amount(key), self._state.rewards.at(self._second)
        if change := self._change(staked, tokens * TOKEN):
            before, after = (int(terms.reward_weight * amount) for amount in (staked, staked + change))
            self._add(Key("unclaimed"), before * (rewards.earned - self._amount(earned)) // UNIT)
            self._add(earned, rewards.earned - self._amount(earned))
            self._state.rewards = rewards._replace(weight=rewards.weight + after - before)
            self._add(key, change)
            self._add(Key("unbonding", self._second + terms.duration), max(-change, 0))
            self._receive(_PTK, min(-change, 0))
            action = Action.BOND if change > 0 else Action.UNBOND
            self._tell(action, _PTK, abs(change), "staking", account_index=index)
        if pool in _CASCADING:
            due = self._second + profile(self._seed, self._user).period + 7 * DAY
            self._state.set(self._user, Key("cascade", index, pool), due)
            self._tell(Action.CASCADE, _PTK, None, "staking")

    def _send(self, _: Wish) -> None:
        owned = sorted(key for key in self._amounts if key.of == "wallet" and key.asset_id in LISTINGS)
        if owned and self._draws.chance(40):
            key = self._draws.pick(owned)
            to = (self._user + self._draws.between(1, USERS - 1)) % USERS
            if amount := self._amount(key) * self._draws.between(10, 60) // 100:
                self._add(key, -amount)
                self._state.set(to, key, self._state.users[to].get(key, 0) + amount)
                self._tell(Action.SEND, key.asset_id, amount, "bank", destination=user_address(to))

    def _watch(self) -> int:
        """A liquidator looks after a user's accounts: the closer the worst of them, the more often."""
        worst = 3 * UNIT
        for index in sorted({key.account for key in self._amounts if key.of == "debt"}):
            account = self._standing(index, self._earlier)
            if account.owed >= _WORTHWHILE:
                worst = min(worst, account.secured * UNIT // account.owed)
                if account.secured * UNIT < account.owed * _CLOSE and self._liquidate(index):
                    return self._second + self._draws.between(3 * MINUTE, HOUR)
        return self._second + self._draws.between(8 * HOUR, 40 * HOUR) + max(worst - _CLOSE, 0) * 30 * DAY // UNIT

    def _liquidate(self, index: int) -> bool:
        """Repay debt, and take collateral of the same value and the discount, until health is at its target.

        The discount grows as health falls. Nobody liquidates where that would lower the account's health. Liquidators
        want no receipt tokens.
        """
        account = self._standing(index, self._second)
        health, owed = self._health(index, account), account.owed
        debt_id = max(account.debts, key=lambda asset_id: account.debts[asset_id])
        taken_id = max(LISTINGS, key=lambda asset_id: account.collaterals.get(asset_id, 0))
        rules = COLLATERALS[taken_id]
        least, most = (int(discount * UNIT) for discount in (rules.min_discount, rules.max_discount))
        factor = UNIT + least + (most - least) * min(UNIT - health, _WIDTH) // _WIDTH
        lost = _LTVS[taken_id][1] * factor // 100
        if health >= UNIT or lost * owed >= account.secured * UNIT or account.collaterals.get(taken_id, 0) < UNIT:
            return False
        is_partial = owed >= CONFIG.partial_liquidation_threshold * UNIT
        value = (_TARGET * owed - account.secured * UNIT) // (_TARGET - lost) if is_partial else owed
        value = min(value, account.debts[debt_id], account.collaterals[taken_id] * UNIT // factor)
        key, pool = Key("debt", index, debt_id), self._pool(debt_id)
        repaid = min(self._bought(debt_id, value), pool.owed(self._amount(key)))
        taken = self._bought(taken_id, self._worth(debt_id, repaid, self._second) * factor // UNIT)
        self._put(pool.borrowed(-repaid), key)
        self._add(Key("collateral", index, taken_id), -taken)
        self._tell(Action.LIQUIDATE, debt_id, repaid, account_index=index, leg=Leg.DEBT)
        self._tell(Action.LIQUIDATE, taken_id, taken, account_index=index, leg=Leg.COLLATERAL)
        return True

    def _health(self, index: int, account: Standing) -> int:
        """Health in `UNIT` (rule 6.4)."""
        stakes = [(key, n) for key, n in self._amounts.items() if key[:2] == ("stake", index)]
        staked = sum(self._worth(_PTK, n, self._second) * POOLS[int(key[2])].health_weight for key, n in stakes)
        pairs = [(Decimal(value), COLLATERALS[one].liquidation_ltv) for one, value in account.collaterals.items()]
        return int(account_health(pairs, Decimal(account.owed), Decimal(staked), CONFIG).result * UNIT)

    def _flash_loan(self, _: Wish) -> None:
        """Up to half of what can be borrowed from a pool, to which the fee goes."""
        pool = self._pool(self._draws.pick(tuple(LENT)))
        amount = min(self._sized(pool.asset_id, self._draws.sized(5_000, 9)), pool.lendable // 2)
        fee = int(amount * CONFIG.flash_loan_fee)
        if fee:
            self._put(pool._replace(reserves=pool.reserves + fee))
            self._tell(Action.BORROW_FLASH_LOAN, pool.asset_id, amount)
            self._tell(Action.RETURN_FLASH_LOAN, pool.asset_id, amount + fee)

    def _war_chest(self, _: Wish) -> None:
        """Claim the fees of a pool."""
        pool = self._pool(self._draws.pick(tuple(LENT)))
        if pool.reserves:
            self._put(pool._replace(reserves=0))
            self._settle((Action.CLAIM_WAR_CHEST,), pool.asset_id, pool.reserves, "war chest")

    def _unlock(self, wish: Wish) -> None:
        """An arrangement is created, what has not unlocked is taken back, or what has is claimed."""
        number, now, listed = wish.account, instant(self._second), self._state.arrangements
        amounts = unlock_amounts(listed[number], now)
        if self._due.step < len(profile(self._seed, self._user).wishes):
            self._tell(Action.CREATE_TOKEN_UNLOCK, _PTK, amounts.amount, "unlocks")
        elif self._second >= LEAVES.get(number, self._second + 1) and not amounts.reclaimed:
            listed[number] = replace(listed[number], reclaimed_at=now)
            self._tell(Action.RECLAIM_TOKEN_UNLOCK, _PTK, amounts.locked, "unlocks")
        elif amounts.claimable:
            listed[number] = replace(listed[number], claimed=amounts.claimed + amounts.claimable, last_claimed_at=now)
            self._settle((Action.CLAIM_TOKEN_UNLOCK,), _PTK, amounts.claimable, "unlocks")

    def _tell(self, action: Action, asset_id: str, amount: int | None, to: str = "markets", **fields: Any) -> None:
        address, at = user_address(self._user), instant(self._second)
        self._told.append(Event("", action, asset_id, address, at, amount, contract=_CONTRACTS[to], **fields))

    def _settle(self, actions: Sequence[Action], asset_id: str, amount: int, *to: str, **fields: Any) -> None:
        """Receive an amount, or pay it, if negative, and tell it as the one action or the other."""
        if amount:
            self._receive(asset_id, amount)
            self._tell(actions[amount < 0], asset_id, abs(amount), *to, **fields)

    @property
    def _amounts(self) -> Amounts:
        return self._state.users[self._user]

    def _amount(self, key: Key) -> int:
        return self._amounts.get(key, 0)

    def _add(self, key: Key, change: int) -> None:
        self._state.set(self._user, key, self._amount(key) + change)

    def _receive(self, asset_id: str, amount: int) -> None:
        """Or pay, if negative: up to two thirds of the wallet. The rest comes over a bridge, which is no event."""
        key = Key("wallet", 0, asset_id)
        self._add(key, max(amount, -(self._amount(key) * 2 // 3)))

    def _pool(self, asset_id: str) -> Pool:
        return self._state.pools[asset_id].at(self._second)

    def _put(self, pool: Pool, key: Key | None = None) -> None:
        """A changed pool. The user has its new receipts or shares, or had those that are gone."""
        before, self._state.pools[pool.asset_id] = self._state.pools[pool.asset_id], pool
        if key:
            self._add(key, pool.shares - before.shares + pool.receipts - before.receipts)

    def _change(self, now: int, wanted: int) -> int:
        """Mostly up to a third more or less than what is wanted, but not for less than a tenth."""
        change = wanted * self._draws.between(667, 1_333) // 1_000 - now
        return change if not now or (abs(change) * 10 > wanted and self._draws.chance(70)) else 0

    def _price(self, asset_id: str, second: int) -> int:
        """The oracle's price at a second; that of a receipt token follows from what it redeems now (rule 4.6)."""
        if asset_id not in ORIGINS:
            return usd_price(self._seed, asset_id, second)
        pool = self._pool(ORIGINS[asset_id])
        usd: int = usd_price(self._seed, pool.asset_id, second)
        return usd * pool.principal // pool.receipts if pool.receipts else usd

    def _worth(self, asset_id: str, amount: int, second: int) -> int:
        return amount * self._price(asset_id, second) // UNITS[asset_id]

    def _bought(self, asset_id: str, value: int, second: int | None = None) -> int:
        return value * UNITS[asset_id] // self._price(asset_id, second or self._second)

    def _sized(self, asset_id: str, usd: int) -> int:
        return self._bought(asset_id, usd * UNIT, self._earlier)

    def _standing(self, index: int, second: int) -> Standing:
        """An account of the user, at the prices of a second."""
        collaterals: dict[str, int] = {}
        debts: dict[str, int] = {}
        allowed = secured = 0
        for (of, account, asset_id), amount in self._amounts.items():
            if account == index and of == "collateral":
                value = collaterals[asset_id] = self._worth(asset_id, amount, second)
                allowable, liquidation = _LTVS[asset_id]
                allowed += value * allowable // 100
                secured += value * liquidation // 100
            elif account == index and of == "debt":
                pool = self._pool(asset_id) if second == self._second else self._state.pools[asset_id]
                debts[asset_id] = self._worth(asset_id, amount * pool.balance // pool.shares, second)
        return Standing(collaterals, debts, allowed, secured, sum(debts.values()))


class Ledger:
    """Goes on from checkpoints: the states at the starts of days, and those of the last requests."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._kept = {0: State.first(seed)}
        self._lock = threading.RLock()

    def at(self, second: int) -> State:
        """The state after all that happens up to a second."""
        with self._lock:
            begin = max(kept for kept in self._kept if kept <= max(second, 0))
            state = self._kept[begin].copy()
            deque(self._turns(state, begin, second), maxlen=0)
            return state

    def events(self, after: int, until: int) -> list[Event]:
        """The events of the seconds after `after` up to `until`, oldest first."""
        with self._lock:
            return [event for turn in self._turns(self.at(after), after, until) for event in turn.events()]

    def _turns(self, state: State, second: int, until: int) -> Iterator[Turn]:
        days = range(max(second, LAUNCH) // DAY * DAY + DAY, until, DAY)
        for end in (*days, until):
            while state.agenda[0].second <= end and state.second < end:
                turn = Turn(self._seed, state, state.agenda[0])
                heapreplace(state.agenda, turn.take())
                yield turn
            self._kept.setdefault(end, state.copy())
            if len(self._kept) > _MAX_KEPT:
                del self._kept[next(kept for kept in self._kept if kept % _STAYING)]


@lru_cache(maxsize=4)
def ledger(seed: str) -> Ledger:
    """The ledger of a seed, which all sources of a process share."""
    return Ledger(seed)
