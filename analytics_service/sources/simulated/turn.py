"""A turn in the simulated protocol: what an actor does, by the protocol's rules, and the events that tell it."""

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from hashlib import sha256
from typing import Any, NamedTuple

from analytics_service.market.events import Action, Event, Leg
from analytics_service.market.health import account_health
from analytics_service.market.instants import DAY, HOUR, MINUTE, instant
from analytics_service.market.unlocks import unlocked_at
from analytics_service.market.values import usd_value
from analytics_service.sources.simulated import prices
from analytics_service.sources.simulated.people import USERS, Draws, Wish, contract_address, profile, user_address
from analytics_service.sources.simulated.state import Due, Key, Of, Pool, State
from analytics_service.sources.simulated.terms import COLLATERALS, CONFIG, LAUNCH, LENT, ORIGINS, in_force
from analytics_service.sources.simulated.token import AGREEMENTS, ARRANGEMENTS, POOLS, TOKEN, weight
from analytics_service.sources.simulated.universe import ASSETS, LISTINGS, UNIT

_UNITS: dict[str, int] = {asset.id: 10**asset.decimals_denom for asset in ASSETS}
_LTVS = {one: (int(rules.allowable_ltv * 100), int(rules.liquidation_ltv * 100)) for one, rules in COLLATERALS.items()}
_CONTRACTS = {name: contract_address(name) for name in ("markets", "staking", "bank", "unlocks", "war chest")}
_PTK = CONFIG.ptoken
_COLLATERAL, _DEBT = Of.COLLATERAL, Of.DEBT
# Prices that need not be exact are as old as this at most, because many turns then share them.
_STALE = 4 * DAY
# In `UNIT`. Liquidators leave smaller debts (USD) alone, and watch an account closely below the health.
_WORTHWHILE, _CLOSE = 500 * UNIT, UNIT * 51 // 50
_TARGET, _WIDTH = (int(ratio * UNIT) for ratio in (CONFIG.target_liquidation_health, CONFIG.dynamic_discount_width))


class Standing(NamedTuple):
    """An account in `UNIT` USD: its collaterals and debts by asset, what it may owe, and at most before it is
    liquidated."""

    collaterals: dict[str, int]
    debts: dict[str, int]
    allowed: int
    secured: int
    owed: int


class Turn:
    """Changes the state at once. With events it is a transaction, which has a second of its own."""

    def __init__(self, seed: str, state: State, due: Due) -> None:
        self._seed, self._state, self._due, self._user = seed, state, due, due.number
        self._second = max(due.second, state.second + 1)
        self._earlier = self._second - self._second % _STALE
        self._draws = Draws(f"{seed}|{due.act}|{due.number}|{due.step}")
        self._told: list[Event] = []

    def take(self) -> Due | None:
        """Do what is due. Returns what the actor does next, if anything."""
        following: int | None = getattr(self, f"_{self._due.act}")()
        if self._told:
            self._state.second = self._second
        return self._due._replace(second=following, step=self._due.step + 1) if following else None

    def events(self) -> Iterator[Event]:
        """The events, with prices. Ask before the next turn changes the state."""
        transaction = f"{self._due.act}-{self._due.number}-{self._due.step}"
        tx_hash = sha256(f"{self._seed}|{transaction}".encode()).hexdigest().upper()
        for item, event in enumerate(self._told):
            price = Decimal(self._price(event.asset_id, self._second)).scaleb(-18)
            decimals = len(str(_UNITS[event.asset_id])) - 1
            usd = None if event.amount is None else usd_value(event.amount, decimals, price)
            yield replace(event, id=f"{transaction}-{item}", usd=usd, price=price, tx_hash=tx_hash)

    def _visit(self) -> int:
        """A user fulfils the next wish that leads to a transaction."""
        user = profile(self._seed, self._user)
        for asset_id, size in () if self._due.step else user.savings:
            self._receive(asset_id, self._sized(asset_id, size) if asset_id in LISTINGS else size)
        visit, item = divmod(self._due.step, len(user.wishes))
        while item < len(user.wishes) and not self._told:
            getattr(self, f"_{user.wishes[item].act}")(user.wishes[item])
            item += 1
        self._due = self._due._replace(step=visit * len(user.wishes) + item - 1)
        if item < len(user.wishes):
            # Reading and signing take a while.
            return self._second + self._draws.between(11, 95)
        return user.joined + (visit + 1) * user.period + self._draws.below(6 * HOUR)

    def _claim_unbonded(self, _: Wish) -> None:
        ended = [key for key in self._amounts if key.of == Of.UNBONDING and key.account <= self._second]
        if amount := sum(map(self._amount, ended)):
            for key in ended:
                self._add(key, -self._amount(key))
            self._receive(_PTK, amount)
            self._tell(Action.CLAIM_UNBONDED, _PTK, amount, "staking")

    def _claim_rewards(self, _: Wish) -> None:
        """Rewards of stakes that have changed can be claimed from the next visit on."""
        unclaimed, amount = self._amount(Key(Of.UNCLAIMED)), self._amount(Key(Of.CLAIMABLE))
        self._add(Key(Of.UNCLAIMED), -unclaimed)
        self._add(Key(Of.CLAIMABLE), unclaimed)
        if amount and self._draws.chance(80):
            self._add(Key(Of.CLAIMABLE), -amount)
            self._add(Key(Of.REWARDED), amount)
            self._receive(_PTK, amount)
            self._tell(Action.CLAIM_REWARDS, _PTK, amount, "staking")

    def _lend(self, wish: Wish) -> None:
        """More where more is borrowed, so that utilization stays in the middle."""
        asset_id, pool = wish.asset_id, self._pool(wish.asset_id)
        receipt = Key(Of.WALLET, 0, LISTINGS[asset_id].asset.receipt_asset or "")
        owned = sum(n for key, n in self._amounts.items() if key.asset_id == receipt.asset_id)
        wanted = self._sized(asset_id, self._varied(wish.size)) * (UNIT * 2 // 5 + pool.used) // UNIT
        change = self._change(owned * pool.principal // pool.receipts if owned else 0, wanted)
        if change > 0:
            self._pay(asset_id, change)
            self._put(pool.lent(change), receipt)
            self._tell(Action.LEND, asset_id, change)
        elif change < 0:
            receipts = min(self._amount(receipt), min(-change, pool.redeemable) * pool.receipts // pool.principal)
            if amount := pool.principal - pool.redeemed(receipts).principal:
                self._put(pool.redeemed(receipts), receipt)
                self._receive(asset_id, amount)
                self._tell(Action.REDEEM, asset_id, amount)

    def _collateral(self, wish: Wish) -> None:
        _, index, asset_id, size = wish
        key = Key(Of.COLLATERAL, index, asset_id)
        if asset_id in ORIGINS:
            wanted = sum(map(self._amount, (key, Key(Of.WALLET, 0, asset_id)))) * size // 100
        else:
            wanted = self._sized(asset_id, self._varied(size))
        change = self._change(self._amount(key), wanted)
        if change > 0 and in_force(COLLATERALS[asset_id], self._second).enabled:
            self._pay(asset_id, change)
            self._add(key, change)
            self._tell(Action.DEPOSIT_COLLATERAL, asset_id, change, account_index=index)
        elif change < 0:
            # Users keep a distance of 5 % to what they may owe.
            account = self._standing(index, self._second)
            spare = max(account.allowed - account.owed * 21 // 20, 0) * 100 // _LTVS[asset_id][0]
            if amount := min(-change, self._bought(asset_id, spare) if account.owed else -change):
                self._add(key, -amount)
                self._receive(asset_id, amount)
                self._tell(Action.WITHDRAW_COLLATERAL, asset_id, amount, account_index=index)

    def _debt(self, wish: Wish) -> None:
        _, index, asset_id, percent = wish
        key, pool, account = Key(Of.DEBT, index, asset_id), self._pool(asset_id), self._standing(index, self._earlier)
        wanted = account.allowed * self._varied(percent) // 100
        change = self._change(account.debts.get(asset_id, 0), wanted)
        if change > 0 and in_force(LENT[asset_id].config, self._second).enabled:
            account = self._standing(index, self._second)
            free = max(min(change, account.allowed - account.owed), 0)
            if amount := min(self._bought(asset_id, free), pool.lendable):
                self._put(pool.borrowed(amount), key)
                self._receive(asset_id, amount)
                self._tell(Action.BORROW, asset_id, amount, account_index=index)
        elif change < 0:
            amount = min(self._bought(asset_id, -change, self._earlier), pool.owed(self._amount(key)))
            self._pay(asset_id, amount)
            self._put(pool.returned(amount, self._amount(key)), key)
            self._tell(Action.RETURN, asset_id, amount, account_index=index)

    def _stake(self, wish: Wish) -> None:
        _, index, pool, tokens = wish
        key, earned = Key(Of.STAKE, index, pool), Key(Of.EARNED, index, pool)
        staked, number = self._amount(key), int(pool)
        if change := self._change(staked, self._varied(tokens) * TOKEN):
            rewards = self._state.rewards.at(self._second)
            before, after = weight(number, staked), weight(number, staked + change)
            self._add(Key(Of.UNCLAIMED), before * (rewards.earned - self._amount(earned)) // UNIT)
            self._add(earned, rewards.earned - self._amount(earned))
            self._state.rewards = rewards._replace(weight=rewards.weight + after - before)
            self._add(key, change)
            if change > 0:
                self._pay(_PTK, change)
            else:
                self._add(Key(Of.UNBONDING, self._second + POOLS[number].duration), -change)
            action = Action.BOND if change > 0 else Action.UNBOND
            self._tell(action, _PTK, abs(change), "staking", account_index=index)

    def _cascade(self, wish: Wish) -> None:
        """Postpone the move to the next pool until after the next visit."""
        if self._amount(Key(Of.STAKE, wish.account, wish.asset_id)):
            due = self._second + profile(self._seed, self._user).period + 7 * DAY
            self._state.set(self._user, Key(Of.CASCADE, wish.account, wish.asset_id), due)
            self._tell(Action.CASCADE, _PTK, None, "staking")

    def _send(self, _: Wish) -> None:
        owned = sorted(key for key in self._amounts if key.of == Of.WALLET and key.asset_id in LISTINGS)
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
        for index in sorted({key.account for key in self._amounts if key.of == _DEBT}):
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
        key, pool = Key(Of.DEBT, index, debt_id), self._pool(debt_id)
        repaid = min(self._bought(debt_id, value), pool.owed(self._amount(key)))
        taken = self._bought(taken_id, self._worth(debt_id, repaid, self._second) * factor // UNIT)
        self._put(pool.returned(repaid, self._amount(key)), key)
        self._add(Key(Of.COLLATERAL, index, taken_id), -taken)
        self._tell(Action.LIQUIDATE, debt_id, repaid, account_index=index, leg=Leg.DEBT)
        self._tell(Action.LIQUIDATE, taken_id, taken, account_index=index, leg=Leg.COLLATERAL)
        return True

    def _health(self, index: int, account: Standing) -> int:
        """Health in `UNIT` (rule 6.4)."""
        stakes = [(key, n) for key, n in self._amounts.items() if key[:2] == (Of.STAKE, index)]
        staked = sum(self._worth(_PTK, n, self._second) * POOLS[int(key[2])].health_weight for key, n in stakes)
        pairs = [(Decimal(value), COLLATERALS[one].liquidation_ltv) for one, value in account.collaterals.items()]
        return int(account_health(pairs, Decimal(account.owed), Decimal(staked), CONFIG).result * UNIT)

    def _flash_loan(self) -> int:
        """Up to half of what is in a pool, to which the fee goes."""
        pool, self._user = self._pool(self._draws.pick(tuple(LENT))), self._draws.below(USERS)
        amount = min(self._sized(pool.asset_id, self._draws.sized(5_000, 9)), pool.cash // 2)
        if fee := int(amount * CONFIG.flash_loan_fee):
            self._put(pool._replace(reserves=pool.reserves + fee))
            self._tell(Action.BORROW_FLASH_LOAN, pool.asset_id, amount)
            self._tell(Action.RETURN_FLASH_LOAN, pool.asset_id, amount + fee)
        return self._due.second + self._draws.between(3 * HOUR, 21 * HOUR)

    def _war_chest(self) -> int:
        """The first user claims the fees of a pool."""
        pool = self._pool(self._draws.pick(tuple(LENT)))
        if amount := min(pool.reserves, pool.cash):
            self._put(pool._replace(reserves=pool.reserves - amount))
            self._receive(pool.asset_id, amount)
            self._tell(Action.CLAIM_WAR_CHEST, pool.asset_id, amount, "war chest")
        return self._due.second + 30 * DAY

    def _unlock(self) -> int | None:
        """Create an arrangement, claim what has unlocked, or take back what has not."""
        number, step = self._due.number, self._due.step
        agreed, arrangement, self._user = AGREEMENTS[number], ARRANGEMENTS[number], AGREEMENTS[number].user
        key, now = Key(Of.UNLOCKED, number), instant(self._second)
        unlocked, claimed = unlocked_at(arrangement, now), self._amount(key)
        ends = LAUNCH + agreed.reclaimed * DAY if agreed.reclaimed else self._second + DAY**2
        if step and arrangement.expires_at and now >= arrangement.expires_at:
            return None
        if self._due.second == ends:
            self._add(Key(Of.RECLAIMED_AT, number), self._second)
            self._tell(Action.RECLAIM_TOKEN_UNLOCK, _PTK, arrangement.amount - unlocked, "unlocks")
            return None
        if not step:
            self._tell(Action.CREATE_TOKEN_UNLOCK, _PTK, arrangement.amount, "unlocks")
        elif unlocked > claimed:
            self._state.set(self._user, key, unlocked)
            self._state.set(self._user, Key(Of.UNLOCKED_AT, number), self._second)
            self._receive(_PTK, unlocked - claimed)
            self._tell(Action.CLAIM_TOKEN_UNLOCK, _PTK, unlocked - claimed, "unlocks")
        if not agreed.claims or self._amount(key) == arrangement.amount:
            return None
        return min(LAUNCH + (agreed.begins + (step + 1) * agreed.claims) * DAY, ends)

    def _tell(self, action: Action, asset_id: str, amount: int | None, to: str = "markets", **fields: Any) -> None:
        address, at = user_address(self._user), instant(self._second)
        self._told.append(Event("", action, asset_id, address, at, amount, contract=_CONTRACTS[to], **fields))

    @property
    def _amounts(self) -> dict[Key, int]:
        return self._state.users[self._user]

    def _amount(self, key: Key) -> int:
        return self._amounts.get(key, 0)

    def _add(self, key: Key, change: int) -> None:
        self._state.set(self._user, key, self._amount(key) + change)

    def _receive(self, asset_id: str, amount: int) -> None:
        self._add(Key(Of.WALLET, 0, asset_id), amount)

    def _pay(self, asset_id: str, amount: int) -> None:
        """Up to two thirds of the wallet; the rest comes over a bridge, of which the protocol knows nothing. Receipt
        tokens are in the wallet only."""
        key = Key(Of.WALLET, 0, asset_id)
        self._add(key, -min(amount, self._amount(key) if asset_id in ORIGINS else self._amount(key) * 2 // 3))

    def _pool(self, asset_id: str) -> Pool:
        return self._state.pools[asset_id].at(self._second)

    def _put(self, pool: Pool, key: Key | None = None) -> None:
        """A changed pool. The user has its new receipts or shares, or had those that are gone."""
        before, self._state.pools[pool.asset_id] = self._state.pools[pool.asset_id], pool
        if key:
            self._add(key, pool.shares - before.shares + pool.receipts - before.receipts)

    def _varied(self, size: int) -> int:
        """Up to a third more or less."""
        return size * self._draws.between(667, 1_333) // 1_000

    def _change(self, now: int, wanted: int) -> int:
        """Mostly what is wanted, but not for less than a tenth."""
        change = wanted - now
        return change if not now or (abs(change) * 10 > wanted and self._draws.chance(70)) else 0

    def _sized(self, asset_id: str, usd: int) -> int:
        """Denom units that USD buy at an earlier price."""
        return usd * _UNITS[asset_id] * UNIT // prices.price(self._seed, asset_id, self._earlier)

    def _price(self, asset_id: str, second: int) -> int:
        """The oracle's price at a second; that of a receipt token follows from what it redeems now (rule 4.6)."""
        if asset_id not in ORIGINS:
            return prices.price(self._seed, asset_id, second)
        pool = self._pool(ORIGINS[asset_id])
        return prices.price(self._seed, pool.asset_id, second) * pool.principal // max(pool.receipts, 1)

    def _worth(self, asset_id: str, amount: int, second: int) -> int:
        return amount * self._price(asset_id, second) // _UNITS[asset_id]

    def _bought(self, asset_id: str, value: int, second: int | None = None) -> int:
        return value * _UNITS[asset_id] // self._price(asset_id, second or self._second)

    def _standing(self, index: int, second: int) -> Standing:
        """An account of the user, at the prices of a second."""
        collaterals: dict[str, int] = {}
        debts: dict[str, int] = {}
        allowed = secured = owed = 0
        for (of, account, asset_id), amount in self._amounts.items():
            if account != index:
                continue
            if of == _COLLATERAL:
                value = collaterals[asset_id] = self._worth(asset_id, amount, second)
                allowable, liquidation = _LTVS[asset_id]
                allowed += value * allowable // 100
                secured += value * liquidation // 100
            elif of == _DEBT:
                pool = self._pool(asset_id) if second == self._second else self._state.pools[asset_id]
                value = debts[asset_id] = self._worth(asset_id, amount * pool.balance // pool.shares, second)
                owed += value
        return Standing(collaterals, debts, allowed, secured, owed)
