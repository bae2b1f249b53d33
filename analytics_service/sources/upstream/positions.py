"""The position of an address in upstream's answers."""

from analytics_service.market.kinds import Index
from analytics_service.market.positions import (
    Account,
    Balance,
    Holding,
    LendPosition,
    Position,
    Stake,
    Unbonding,
)
from analytics_service.sources.upstream.fields import AnswerField


def read_position(address: str, user: AnswerField) -> Position:
    """Everything that an address has, but for its unlock arrangements."""
    markets, staking = user["markets"], user["ptoken"]["staking"]
    return staking.record(
        Position,
        address=address,
        accounts=tuple(_account(account) for account in markets["borrow"]["accounts"].items()),
        lends=tuple(_lend(pool) for pool in markets["lend"]["asset_pools"].items()),
        wallet=tuple(_balances(user["wallets"]["balances"])),
        stakes=tuple(stake for pool in staking["pools"].items() for stake in _stakes(pool)),
        unbondings=tuple(item.record(Unbonding) for item in staking["unbonding"]["contents"].items()),
    )


def _account(account: AnswerField) -> Account:
    return account.record(
        Account,
        collaterals=tuple(_holding(item) for item in account["collaterals"].items()),
        debts=tuple(_holding(item) for item in account["debts"].items()),
    )


def _holding(item: AnswerField) -> Holding:
    return item.record(Holding, asset_id=item["asset_info"]["asset"].asset_id())


def _lend(pool: AnswerField) -> LendPosition:
    return pool["receipt_amounts"].record(LendPosition, asset_id=pool["asset_info"]["asset"].asset_id())


def _balances(balances: AnswerField) -> list[Balance]:
    """The balances with an amount; kinds other than known may lack it."""
    listed = []
    for item in balances.items():
        values = item["values"]
        amount = values["amount"] if values["kind"].text() == "known" else values.get("amount")
        if amount is not None:
            listed.append(Balance(item["asset"].asset_id(), amount.whole()))
    return listed


def _stakes(pool: AnswerField) -> list[Stake]:
    index = pool["common"]["index"].whole(Index.limit)
    return [item.record(Stake, pool=index) for item in pool["contents"].items()]
