"""The acts of a simulated user in a trade, derived from the changes of the position."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from analytics_service.market.events import Action, Leg
from analytics_service.market.positions import Account, Position
from analytics_service.sources.simulated.accrual import accrued
from analytics_service.sources.simulated.draws import Draws
from analytics_service.sources.simulated.holdings import cents, position, traded_at, units
from analytics_service.sources.simulated.noise import UNIT
from analytics_service.sources.simulated.people import USERS, Profile, contract_address, profile, user_address
from analytics_service.sources.simulated.terms import CONFIG
from analytics_service.sources.simulated.universe import LISTINGS

MARKETS = contract_address("markets")
_STAKING = contract_address("staking")
_BANK = contract_address("bank")
# One in 12 reductions of debt is a liquidation, if a collateral of the account is reduced at the same time.
_LIQUIDATED_EVERY = 12
# The liquidator takes collateral for this many percent of the debt.
_TAKEN_PERCENT = 110
# One in 5 reductions of a wallet's balance is sent to another user; the others are no events.
_SENT_EVERY = 5


@dataclass(frozen=True, slots=True)
class Act:
    """An event without its price. Acts of the same `transaction` share a hash."""

    id: str
    action: Action
    asset_id: str
    address: str
    second: int
    amount: int | None
    contract: str
    transaction: str
    account_index: int | None = None
    destination: str | None = None
    leg: Leg | None = None


@dataclass(frozen=True, slots=True)
class _Trade:
    """A user's trade, and the positions before and after it. Before the first trade there is no position."""

    seed: str
    number: int
    made: int
    user: Profile
    second: int
    now: Position
    before: Position | None

    def act(
        self, item: str, action: Action, asset_id: str, amount: int | None, contract: str = MARKETS, **fields: Any
    ) -> Act:
        """An act of the user in this trade, in its own transaction unless `fields` has another."""
        act_id = f"{self.number}-{self.made}-{item}"
        fields = {"transaction": act_id, **fields}
        return Act(act_id, action, asset_id, self.user.address, self.second, amount, contract, **fields)


def trade_acts(seed: str, number: int, made: int) -> Iterator[Act]:
    """All acts of a user's trade."""
    user = profile(seed, number)
    before = position(seed, number, made - 1) if made else None
    trade = _Trade(seed, number, made, user, traded_at(user, made), position(seed, number, made), before)
    yield from _borrowing(trade)
    yield from _lending(trade)
    yield from _staking(trade)
    yield from _sending(trade)


def _borrowing(trade: _Trade) -> Iterator[Act]:
    """Changes of debts and collaterals, account by account."""
    draws = Draws(f"{trade.seed}|event|{trade.number}|{trade.made}")
    item = 0
    for slot, account in enumerate(trade.now.accounts):
        old = trade.before.accounts[slot] if trade.before else Account(account.index)
        collaterals = _changes(account, old)
        for i, debt in enumerate(account.debts):
            change = debt.shares - (old.debts[i].shares if old.debts else 0)
            forced = draws.below(_LIQUIDATED_EVERY) == 0
            amount = abs(change) * accrued(trade.seed, debt.asset_id, trade.second).debt_index // UNIT
            fields: dict[str, Any] = {"account_index": account.index}
            taken = _taken(trade, collaterals, debt.asset_id, amount) if forced and change < 0 else None
            if amount and taken:
                yield trade.act(f"{item}", Action.LIQUIDATE, debt.asset_id, amount, leg=Leg.DEBT, **fields)
                asset_id, units_taken = taken
                collaterals[asset_id] += units_taken
                fields |= {"leg": Leg.COLLATERAL, "transaction": f"{trade.number}-{trade.made}-{item}"}
                yield trade.act(f"{item}-taken", Action.LIQUIDATE, asset_id, units_taken, **fields)
            elif amount:
                yield trade.act(
                    f"{item}", Action.BORROW if change > 0 else Action.RETURN, debt.asset_id, amount, **fields
                )
            item += 1
        for i, (asset_id, change) in enumerate(collaterals.items()):
            action = Action.DEPOSIT_COLLATERAL if change > 0 else Action.WITHDRAW_COLLATERAL
            if change:
                yield trade.act(f"c{slot}-{i}", action, asset_id, abs(change), account_index=account.index)


def _changes(now: Account, old: Account) -> dict[str, int]:
    """Changes of collaterals by asset id."""
    changes = {holding.asset_id: holding.shares for holding in now.collaterals}
    for holding in old.collaterals:
        changes[holding.asset_id] = changes.get(holding.asset_id, 0) - holding.shares
    return changes


def _taken(trade: _Trade, collaterals: Mapping[str, int], debt_id: str, owed: int) -> tuple[str, int] | None:
    """The collateral that a liquidation takes, and its amount: at most the account's loss, None without a loss."""
    for asset_id, change in collaterals.items():
        if change < 0 and asset_id in LISTINGS:
            worth = cents(trade.seed, debt_id, owed, trade.second) * _TAKEN_PERCENT // 100
            amount = min(-change, units(trade.seed, asset_id, worth, trade.second))
            return (asset_id, amount) if amount else None
    return None


def _lending(trade: _Trade) -> Iterator[Act]:
    """Changes of deposits, in the lent asset."""
    item = sum(len(account.debts) for account in trade.now.accounts)
    for i, lent in enumerate(trade.now.lends):
        old = trade.before.lends[i] if trade.before else None
        before = old.held + old.collateralized if old else 0
        change = lent.held + lent.collateralized - before
        amount = abs(change) * accrued(trade.seed, lent.asset_id, trade.second).lend_index // UNIT
        if amount:
            yield trade.act(f"{item + i}", Action.LEND if change > 0 else Action.REDEEM, lent.asset_id, amount)


def _staking(trade: _Trade) -> Iterator[Act]:
    """Claims of amounts that have become claimable since the last trade, bonds and unbonds, and postponed cascades."""
    before = trade.before

    def act(item: str, action: Action, amount: int | None, index: int | None = None) -> Act:
        return trade.act(item, action, CONFIG.ptoken, amount, _STAKING, account_index=index)

    if before and (unbonded := sum(unbonding.amount for unbonding in before.unbondings)):
        yield act("claim-unbonded", Action.CLAIM_UNBONDED, unbonded)
    if before and before.claimable_rewards:
        yield act("claim-rewards", Action.CLAIM_REWARDS, before.claimable_rewards)
    # Unbonding amounts come from the first stake.
    unbonding_sum = sum(unbonding.amount for unbonding in trade.now.unbondings)
    for i, unbonding in enumerate(trade.now.unbondings):
        yield act(f"u{i}", Action.UNBOND, unbonding.amount, trade.now.stakes[0].account_index)
    for i, stake in enumerate(trade.now.stakes):
        change = stake.amount - (before.stakes[i].amount if before else 0) + (0 if i else unbonding_sum)
        if change:
            action = Action.BOND if change > 0 else Action.UNBOND
            yield act(f"s{i}", action, abs(change), stake.account_index)
        if stake.cascade:
            yield act(f"m{i}", Action.CASCADE, None)


def _sending(trade: _Trade) -> Iterator[Act]:
    """Transfers to other users, for some of the reduced balances."""
    if trade.before is None:
        return
    draws = Draws(f"{trade.seed}|send|{trade.number}|{trade.made}")
    # Receipt tokens and unknown assets follow the assets of the profile.
    for i, (old, new) in enumerate(zip(trade.before.wallet, trade.now.wallet, strict=False)):
        if i < len(trade.user.wallet) and old.amount > new.amount and not draws.below(_SENT_EVERY):
            recipient = (trade.number + 1 + draws.below(USERS - 1)) % USERS
            amount, to = old.amount - new.amount, user_address(recipient)
            yield trade.act(f"w{i}", Action.SEND, new.asset_id, amount, _BANK, destination=to)
