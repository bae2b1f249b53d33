"""Positions of addresses: items of which only changes are stored."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

import polars as pl

from analytics_service.market.activity import Activity
from analytics_service.market.positions import (
    Account,
    Balance,
    Holding,
    LendPosition,
    Position,
    Stake,
    Unbonding,
)
from analytics_service.store.columns import (
    COUNT,
    amount_text,
    instant,
    quantize_ratio,
    snapshot_frame,
    whole_second,
)
from analytics_service.store.connection import Store

_KEY = ["address", "kind", "account_index", "asset_id", "pool"]
_SCHEMA: dict[str, type[pl.DataType] | pl.DataType] = {
    "address": pl.String,
    "kind": pl.String,
    "account_index": pl.UInt32,
    "asset_id": pl.String,
    "pool": pl.UInt32,
    "amount": pl.String,
    "cascade": pl.Boolean,
    "until": pl.UInt32,
    "last_stake_acc": pl.Decimal(38, 18),
}
# An item's identity, and all that an item is.
ITEM_KEY = [*_KEY, "item"]
ITEM = [*ITEM_KEY, "amount", "cascade", "until", "last_stake_acc"]
_BATCH = 50_000
_Item = tuple[str, str, int, str, int, str, bool, int | None, Any]


def item_frame(positions: Iterable[Position]) -> pl.DataFrame:
    """All items of positions in the columns of ITEM; addresses in lower case. An empty position has none."""
    remaining = iter(positions)
    frames = [pl.DataFrame(schema=_SCHEMA)]
    while batch := list(islice(remaining, _BATCH)):
        rows = [item for position in batch for item in _items(position)]
        frames.append(pl.DataFrame(rows, schema=_SCHEMA, orient="row"))
    return pl.concat(frames).with_columns(item=pl.int_range(pl.len(), dtype=pl.UInt32).over(_KEY)).select(ITEM)


def _items(position: Position) -> Iterator[_Item]:
    address = position.address.lower()

    def plain(kind: str, asset_id: str, amount: int, account: int = 0) -> _Item:
        return (address, kind, account, asset_id, 0, amount_text(amount), False, None, 0)

    for account in position.accounts:
        for held in account.collaterals:
            yield plain("collateral", held.asset_id, held.shares, account.index)
        for owed in account.debts:
            yield plain("debt", owed.asset_id, owed.shares, account.index)
        if not (account.collaterals or account.debts):
            yield plain("account", "", 0, account.index)
    for lent in position.lends:
        yield plain("lend_held", lent.asset_id, lent.held)
        if lent.collateralized:
            yield plain("lend_collateralized", lent.asset_id, lent.collateralized)
    for balance in position.wallet:
        yield plain("wallet", balance.asset_id, balance.amount)
    for stake in position.stakes:
        until = whole_second(stake.transition_at) if stake.transition_at else None
        rest = (amount_text(stake.amount), stake.cascade, until, quantize_ratio(stake.last_stake_acc))
        yield (address, "stake", stake.account_index, "", stake.pool, *rest)
    for leaving in position.unbondings:
        unlock = whole_second(leaving.unlock_at)
        yield (address, "unbonding", 0, "", 0, amount_text(leaving.amount), False, unlock, 0)
    for kind in ("unclaimed", "claimable_rewards", "claimable_unbonding"):
        if amount := getattr(position, kind):
            yield plain(kind, "", amount)


def read_items(store: Store, addresses: Sequence[str], at: int) -> pl.DataFrame:
    """The open items of (lower-case) addresses as of a unix second, in the columns of ITEM, by the item's key."""
    return store.frame("position_items", addresses=list(addresses), at=at).select(
        pl.col(name).cast(dtype) for name, dtype in {**_SCHEMA, "item": pl.UInt32}.items()
    ).select(ITEM)


def read_digests(store: Store) -> pl.DataFrame:
    """Which state of each address was written last: address, digest, complete (whether by a run that was completed),
    observed_at (unix second of that run's snapshot)."""
    return store.frame("position_digests")


def activity_frame(items: pl.DataFrame, at: datetime, version: int) -> pl.DataFrame:
    """Counts over all items of a snapshot, as `market.activity` counts, as a batch of one row."""
    some = items.filter(pl.col("amount") != "0")
    debts = some.filter(pl.col("kind") == "debt")
    counts = {
        "addresses": items["address"].n_unique(),
        "borrowers": debts["address"].n_unique(),
        "borrower_accounts": debts.select("address", "account_index").n_unique(),
        "lenders": some.filter(pl.col("kind").str.starts_with("lend_"))["address"].n_unique(),
    }
    return snapshot_frame([counts], dict.fromkeys(counts, COUNT), at, version)


def read_activity(store: Store, at: int) -> Activity:
    """Who used the markets at a snapshot (unix second of a head of family positions); nobody when there is none."""
    for row in store.frame("position_summary", at=at).iter_rows(named=True):
        return Activity(row["borrowers"], row["borrower_accounts"], row["lenders"])
    return Activity(0, 0, 0)


def read_position(store: Store, address: str, at: int) -> Position:
    """The position of a (lower-case) address at a snapshot (unix second of a head of family positions).

    Items come in the order of account, asset id and pool. An address without a position has an empty one.
    """
    kinds: dict[str, list[dict[str, Any]]] = {}
    for row in read_items(store, [address], at).iter_rows(named=True):
        kinds.setdefault(row["kind"], []).append(row)
    posted = {row["asset_id"]: int(row["amount"]) for row in kinds.get("lend_collateralized", ())}
    return Position(
        address=address,
        accounts=_accounts(kinds),
        lends=tuple(
            LendPosition(row["asset_id"], int(row["amount"]), posted.get(row["asset_id"], 0))
            for row in kinds.get("lend_held", ())
        ),
        wallet=tuple(Balance(row["asset_id"], int(row["amount"])) for row in kinds.get("wallet", ())),
        stakes=tuple(_stake(row) for row in kinds.get("stake", ())),
        unbondings=tuple(
            Unbonding(int(row["amount"]), instant(row["until"])) for row in kinds.get("unbonding", ())
        ),
        unclaimed=_single(kinds, "unclaimed"),
        claimable_rewards=_single(kinds, "claimable_rewards"),
        claimable_unbonding=_single(kinds, "claimable_unbonding"),
    )


def _accounts(kinds: dict[str, list[dict[str, Any]]]) -> tuple[Account, ...]:
    def holdings(kind: str, index: int) -> tuple[Holding, ...]:
        return tuple(
            Holding(row["asset_id"], int(row["amount"]))
            for row in kinds.get(kind, ())
            if row["account_index"] == index
        )

    rows = [row for kind in ("account", "collateral", "debt") for row in kinds.get(kind, ())]
    indexes = sorted({row["account_index"] for row in rows})
    return tuple(Account(index, holdings("collateral", index), holdings("debt", index)) for index in indexes)


def _stake(row: dict[str, Any]) -> Stake:
    transition_at = None if row["until"] is None else instant(row["until"])
    return Stake(
        pool=row["pool"],
        account_index=row["account_index"],
        amount=int(row["amount"]),
        cascade=row["cascade"],
        transition_at=transition_at,
        last_stake_acc=row["last_stake_acc"],
    )


def _single(kinds: dict[str, list[dict[str, Any]]], kind: str) -> int:
    return sum(int(row["amount"]) for row in kinds.get(kind, ()))
