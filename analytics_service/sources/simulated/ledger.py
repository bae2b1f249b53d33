"""The simulated protocol from its launch on: its state at any second is the result of its transactions."""

import threading
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from heapq import heapreplace
from typing import Any, NamedTuple

from analytics_service.market.decimals import usd_value
from analytics_service.market.events import Action, Event, Leg
from analytics_service.market.instants import DAY, HOUR, from_unix
from analytics_service.market.ptoken import unlock_amounts
from analytics_service.sources.simulated import people
from analytics_service.sources.simulated.people import Key, Wish, profile, user_address
from analytics_service.sources.simulated.state import CASCADING, Amounts, Pool, WorldState, fraction
from analytics_service.sources.simulated.terms import COLLATERALS, CONFIG, LAUNCH, LENT, POOLS, UNITS
from analytics_service.sources.simulated.universe import LISTINGS, ORIGINS, UNIT, Draws, usd_price

_LTVS = {one: (int(rules.allowable_ltv * 100), int(rules.liquidation_ltv * 100)) for one, rules in COLLATERALS.items()}
_CONTRACTS = {name: people.contract_address(name) for name in ("markets", "staking", "bank", "unlocks", "war chest")}
_PTK = CONFIG.ptoken
# In `UNIT`. Liquidators ignore smaller debts (USD).
_WORTHWHILE = 100 * UNIT
_TARGET, _WIDTH = (int(ratio * UNIT) for ratio in (CONFIG.target_liquidation_health, CONFIG.dynamic_discount_width))
_BOOST, _STAKED = (int(ratio * UNIT) for ratio in (CONFIG.staking_health_modifier, CONFIG.stake_collateral_ratio))


class Standing(NamedTuple):
    """An account in `UNIT` USD: collaterals and debts by asset, the debt that it may add, and its liquidation limit.
    Health (rule 6.4, account health) is in `UNIT`, too."""

    collaterals: dict[str, int]
    debts: dict[str, int]
    free: int
    secured: int
    health: int


class Turn:
    """A user's next actions by the protocol's rules, or a liquidation of its account. A turn changes the state. A turn
    with events is a transaction, with a second of its own."""

    def __init__(self, seed: str, state: WorldState) -> None:
        due, self._user, self._step = state.agenda[0]
        self._seed, self._state = seed, state
        self._pace, self._savings, self._wishes = profile(seed, self._user)
        self._second = max(due, state.second + 1)
        self._draws = Draws(f"{seed}|{self._user}|{self._step}")
        self._mine = Amounts(state.users[self._user])
        self._is_first = self._step < len(self._wishes)
        self._events: list[Event] = []

    def take(self) -> None:
        """Take the first turn of the agenda, and schedule the user's next turn."""
        for key in self._savings if self._step == 0 else ():
            self._mine[key] += self._savings[key]
        wish = self._wishes[self._step % len(self._wishes)]
        getattr(self, f"_{wish.act}")(wish)
        self._state.put(self._user, self._mine)
        if self._events:
            self._state.second = self._second
        wait = (11, 95) if self._is_first else (self._pace // 2, self._pace * 3 // 2)
        heapreplace(self._state.agenda, (self._second + self._draws.between(*wait), self._user, self._step + 1))

    def events(self) -> Iterator[Event]:
        """The events, with prices. Call it before the next turn changes the state."""
        transaction = f"{self._user}-{self._step}"
        tx_hash = sha256(f"{self._seed}|{transaction}".encode()).hexdigest().upper()
        for item, event in enumerate(self._events):
            price = fraction(self._price(event.asset_id))
            decimals = len(str(UNITS[event.asset_id])) - 1
            usd = None if event.amount is None else usd_value(event.amount, decimals, price)
            yield replace(event, id=f"{transaction}-{item}", usd=usd, price=price, tx_hash=tx_hash)

    def _claim(self, _: Wish) -> None:
        """Claim everything that can be claimed."""
        ended = [key for key in self._mine if key.of == "unbonding" and key.account <= self._second]
        unbonded, rewards = sum(self._mine[key] for key in ended), self._mine[Key("claimable")]
        self._mine.update(dict.fromkeys((*ended, Key("claimable")), 0))
        self._mine[Key("claimed")] += rewards
        self._settle(Action.CLAIM_UNBONDED, _PTK, unbonded, "staking")
        self._settle(Action.CLAIM_REWARDS, _PTK, rewards, "staking")

    def _lend(self, wish: Wish) -> None:
        """Lend more where more is borrowed, so that utilization stays moderate."""
        receipt = wish.key.asset_id
        pool = self._pool(ORIGINS[receipt])
        owned = sum(amount for key, amount in self._mine.items() if key.asset_id == receipt)
        change = self._change(pool.redeemed(owned), wish.size * (UNIT * 2 // 5 + pool.used) // UNIT)
        if change := max(change, -min(pool.redeemed(self._mine[wish.key]), pool.lendable)):
            self._put(pool.lent(change), wish.key)
            self._settle(Action.LEND if change > 0 else Action.REDEEM, pool.asset_id, -change)

    def _account(self, wish: Wish) -> None:
        """Change a collateral or a debt, unless a liquidator comes first. Receipt tokens come from the wallet only."""
        key, (of, index, asset_id) = wish.key, wish.key
        account = self._standing(index)
        free = self._bought(asset_id, account.free)
        if account.health < UNIT and self._liquidate(index, account):
            return
        if of == "debt":
            pool = self._pool(asset_id)
            if change := min(self._change(pool.owed(self._mine[key]), wish.size), free, pool.lendable):
                self._put(pool.borrowed(change), key)
            action = Action.BORROW if change > 0 else Action.RETURN
        else:
            change = -max(self._change(self._mine[key], wish.size), -free * 100 // _LTVS[asset_id][0])
            if asset_id in ORIGINS:
                change = max(change, -(self._mine[Key("wallet", 0, asset_id)] // 2))
            self._mine[key] -= change
            action = Action.WITHDRAW_COLLATERAL if change > 0 else Action.DEPOSIT_COLLATERAL
        self._settle(action, asset_id, change, account_index=index)

    def _stake(self, wish: Wish) -> None:
        """Stake more or less in a pool. Rewards up to now become unclaimed, and earlier rewards claimable."""
        mine, state, (_, index, number) = self._mine, self._state, wish.key
        pool, earned, staked = POOLS[int(number)], Key("earned", index, number), mine[wish.key]
        if change := self._change(staked, wish.size):
            state.rewards, state.rewarded = state.rewards_at(self._second), self._second
            mine[Key("claimable")] += mine[Key("unclaimed")]
            mine[Key("unclaimed")] = int(pool.reward_weight * staked) * (state.rewards - mine[earned]) // UNIT
            mine[earned] = state.rewards
            mine[wish.key] += change
            mine[Key("unbonding", self._second + pool.duration)] = max(-change, 0)
            self._receive(_PTK, min(-change, 0))
            self._emit(Action.BOND if change > 0 else Action.UNBOND, _PTK, abs(change), "staking", account_index=index)
        if number in CASCADING:
            self._emit(Action.CASCADE, _PTK, None, "staking")

    def _send(self, _: Wish) -> None:
        key = self._draws.pick(sorted(key for key in self._mine if key.of == "wallet" and key.asset_id in LISTINGS))
        to = (self._user + self._draws.between(1, people.USERS - 1)) % people.USERS
        if amount := self._mine[key] * self._draws.between(10, 60) // 100:
            self._mine[key] -= amount
            theirs = self._state.users[to]
            self._state.put(to, Amounts({**theirs, key: theirs[key] + amount}))
            self._emit(Action.SEND, key.asset_id, amount, "bank", destination=user_address(to))

    def _flash_loan(self, _: Wish) -> None:
        """Borrow a part of a pool, and return it with the fee."""
        pool = self._pool(self._draws.pick(tuple(LENT)))
        amount = pool.lendable * self._draws.between(1, 50) // 100
        if fee := int(amount * CONFIG.flash_loan_fee):
            self._put(pool._replace(reserves=pool.reserves + fee))
            self._emit(Action.BORROW_FLASH_LOAN, pool.asset_id, amount)
            self._emit(Action.RETURN_FLASH_LOAN, pool.asset_id, amount + fee)

    def _war_chest(self, _: Wish) -> None:
        """Claim the fees of a pool."""
        pool = self._pool(self._draws.pick(tuple(LENT)))
        if pool.reserves:
            self._put(pool._replace(reserves=0))
            self._settle(Action.CLAIM_WAR_CHEST, pool.asset_id, pool.reserves, "war chest")

    def _unlock(self, wish: Wish) -> None:
        """Create an arrangement, reclaim its locked amount, or claim its unlocked amount."""
        number, now, listed = wish.key.account, from_unix(self._second), self._state.arrangements
        amounts = unlock_amounts(listed[number], now)
        if self._is_first:
            self._emit(Action.CREATE_TOKEN_UNLOCK, _PTK, amounts.amount, "unlocks")
        elif number == people.RECLAIMED and not amounts.reclaimed:
            listed[number] = replace(listed[number], reclaimed_at=now)
            self._emit(Action.RECLAIM_TOKEN_UNLOCK, _PTK, amounts.locked, "unlocks")
        elif amounts.claimable:
            listed[number] = replace(listed[number], claimed=amounts.claimed + amounts.claimable, last_claimed_at=now)
            self._settle(Action.CLAIM_TOKEN_UNLOCK, _PTK, amounts.claimable, "unlocks")

    def _liquidate(self, index: int, account: Standing) -> bool:
        """Repay debt, and seize collateral of equal value plus the discount, until health is at its target.

        The discount grows as health decreases. Nobody liquidates if that would lower the account's health. Liquidators
        accept no receipt tokens.
        """
        owed, health, secured = sum(account.debts.values()), account.health, account.secured
        debt_id = max(account.debts, key=lambda asset_id: account.debts[asset_id])
        taken_id = max(LISTINGS, key=lambda asset_id: account.collaterals.get(asset_id, 0))
        debt, collateral, rules = account.debts[debt_id], account.collaterals.get(taken_id, 0), COLLATERALS[taken_id]
        least, most = (int(discount * UNIT) for discount in (rules.min_discount, rules.max_discount))
        factor = UNIT + least + (most - least) * min(UNIT - health, _WIDTH) // _WIDTH
        lost = _LTVS[taken_id][1] * factor // 100
        if min(owed, collateral) < _WORTHWHILE or lost * owed >= secured * UNIT:
            return False
        value = min((_TARGET * owed - secured * UNIT) // (_TARGET - lost), debt, collateral * UNIT // factor)
        key, pool = Key("debt", index, debt_id), self._pool(debt_id)
        repaid = min(self._bought(debt_id, value), pool.owed(self._mine[key]))
        taken = self._bought(taken_id, self._worth(debt_id, repaid) * factor // UNIT)
        self._put(pool.borrowed(-repaid), key)
        self._mine[Key("collateral", index, taken_id)] -= taken
        self._emit(Action.LIQUIDATE, debt_id, repaid, account_index=index, leg=Leg.DEBT)
        self._emit(Action.LIQUIDATE, taken_id, taken, account_index=index, leg=Leg.COLLATERAL)
        return True

    def _standing(self, index: int) -> Standing:
        """An account at the prices of this second."""
        collaterals: dict[str, int] = {}
        debts: dict[str, int] = {}
        staked = 0
        for (of, account, asset_id), amount in self._mine.items():
            if account == index and of == "collateral":
                collaterals[asset_id] = self._worth(asset_id, amount)
            elif account == index and of == "debt":
                pool = self._pool(asset_id)
                debts[asset_id] = self._worth(asset_id, amount * pool.balance // pool.shares)
            elif account == index and of == "stake":
                staked += int(self._worth(_PTK, amount) * POOLS[int(asset_id)].health_weight)
        allowed, secured = (sum(n * _LTVS[one][i] // 100 for one, n in collaterals.items()) for i in (0, 1))
        owed, required = sum(debts.values()), sum(collaterals.values()) * _STAKED // UNIT
        boost = _BOOST * min(staked, required) // required if required else 0
        health = secured * UNIT // owed + boost if owed else 10 * UNIT
        return Standing(collaterals, debts, max(allowed - owed, 0), secured, health)

    def _emit(self, action: Action, asset_id: str, amount: int | None, to: str = "markets", **fields: Any) -> None:
        address, at = user_address(self._user), from_unix(self._second)
        self._events.append(Event("", action, asset_id, address, at, amount, contract=_CONTRACTS[to], **fields))

    def _settle(self, action: Action, asset_id: str, amount: int, *to: str, **fields: Any) -> None:
        """Receive an amount, or pay it if negative, with an event."""
        if amount:
            self._receive(asset_id, amount)
            self._emit(action, asset_id, abs(amount), *to, **fields)

    def _receive(self, asset_id: str, amount: int) -> None:
        """Receive an amount. A negative amount is paid: up to half of the wallet, and the rest over a bridge."""
        key = Key("wallet", 0, asset_id)
        self._mine[key] += max(amount, -(self._mine[key] // 2))

    def _pool(self, asset_id: str) -> Pool:
        return self._state.pools[asset_id].at(self._second)

    def _put(self, pool: Pool, key: Key | None = None) -> None:
        """Store a changed pool. The user's receipts or shares, named by `key`, change with it."""
        before, self._state.pools[pool.asset_id] = self._state.pools[pool.asset_id], pool
        if key:
            self._mine[key] += pool.shares - before.shares + pool.receipts - before.receipts

    def _change(self, now: int, wanted: int) -> int:
        """The change to the wanted amount, a third more or less; 0 if it is less than a tenth."""
        change = wanted * self._draws.between(667, 1_333) // 1_000 - now
        return change if abs(change) * 10 > wanted else 0

    def _price(self, asset_id: str) -> int:
        """The oracle's price; for a receipt token, the price of its redemption now (rule 4.6, receipt prices)."""
        usd: int = usd_price(self._seed, ORIGINS.get(asset_id, asset_id), self._second)
        return self._pool(ORIGINS[asset_id]).redeemed(usd) or usd if asset_id in ORIGINS else usd

    def _worth(self, asset_id: str, amount: int) -> int:
        return amount * self._price(asset_id) // UNITS[asset_id]

    def _bought(self, asset_id: str, value: int) -> int:
        return value * UNITS[asset_id] // self._price(asset_id)


class WorldLedger:
    """Keeps the states at the starts of days, each computed from the day before on first use."""

    def __init__(self, seed: str) -> None:
        agenda = [(LAUNCH + user * 6 * HOUR, user, 0) for user in range(people.USERS)]
        pools = {asset_id: Pool(asset_id) for asset_id in LENT}
        self._seed, self._lock = seed, threading.Lock()
        self._days = [WorldState([Amounts()] * people.USERS, pools, people.ARRANGEMENTS, agenda, Counter())]

    def at(self, second: int) -> WorldState:
        """The state after all transactions up to a second."""
        day = max(second - LAUNCH, 0) // DAY
        with self._lock:
            while len(self._days) <= day:
                self._days.append(self._after(self._days[-1], LAUNCH + len(self._days) * DAY - 1))
        return self._after(self._days[day], second)

    def events(self, after: int, until: int) -> list[Event]:
        """The events after the second `after`, up to `until` included, oldest first."""
        return [event for turn in self._turns(self.at(after), until) for event in turn.events()]

    def _after(self, state: WorldState, second: int) -> WorldState:
        state = state.copy()
        deque(self._turns(state, second), maxlen=0)
        return state

    def _turns(self, state: WorldState, until: int) -> Iterator[Turn]:
        while state.agenda[0][0] <= until and state.second < until:
            turn = Turn(self._seed, state)
            turn.take()
            yield turn


# All sources of a process share the ledger of a seed.
world_ledger = lru_cache(maxsize=4)(WorldLedger)
