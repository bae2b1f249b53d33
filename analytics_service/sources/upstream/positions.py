"""The position of an address in upstream's answers."""

from analytics_service.market.positions import (
    Account,
    Balance,
    Holding,
    LendPosition,
    Position,
    Stake,
    Unbonding,
)
from analytics_service.sources.upstream.fields import Field, optional

_INDEX = 2**32


def read_position(address: str, user: Field) -> Position:
    """Everything that an address has, but for its unlock arrangements."""
    markets, staking = user["markets"], user["ptoken"]["staking"]
    return Position(
        address=address,
        accounts=tuple(_account(account) for account in markets["borrow"]["accounts"].items()),
        lends=tuple(_lend(pool) for pool in markets["lend"]["asset_pools"].items()),
        wallet=tuple(_balances(user["wallets"]["balances"])),
        stakes=tuple(stake for pool in staking["pools"].items() for stake in _stakes(pool)),
        unbondings=tuple(
            Unbonding(item["amount"].whole(), item["unlock_at"].time())
            for item in staking["unbonding"]["contents"].items()
        ),
        unclaimed=staking["unclaimed"].whole(),
        claimable_rewards=staking["claimable_rewards"].whole(),
        claimable_unbonding=staking["claimable_unbonding"].whole(),
    )


def _account(account: Field) -> Account:
    return Account(
        index=account["index"].whole(_INDEX),
        collaterals=tuple(_holding(item) for item in account["collaterals"].items()),
        debts=tuple(_holding(item) for item in account["debts"].items()),
    )


def _holding(item: Field) -> Holding:
    return Holding(item["asset_info"]["asset"].asset_id(), item["shares"].whole())


def _lend(pool: Field) -> LendPosition:
    receipts = pool["receipt_amounts"]
    return LendPosition(
        pool["asset_info"]["asset"].asset_id(), receipts["held"].whole(), receipts["collateralized"].whole()
    )


def _balances(balances: Field) -> list[Balance]:
    """The balances with an amount; kinds other than known may lack it."""
    listed = []
    for item in balances.items():
        values = item["values"]
        amount = values["amount"] if values["kind"].text() == "known" else values.get("amount")
        if amount is not None:
            listed.append(Balance(item["asset"].asset_id(), amount.whole()))
    return listed


def _stakes(pool: Field) -> list[Stake]:
    index = pool["common"]["index"].whole(_INDEX)
    return [
        Stake(
            pool=index,
            account_index=item["account_index"].whole(_INDEX),
            amount=item["amount"].whole(),
            cascade=item["cascade"].flag(),
            transition_at=optional(item.get("transition_at"), Field.time),
            last_stake_acc=item["last_stake_acc"].decimal(),
        )
        for item in pool["contents"].items()
    ]
