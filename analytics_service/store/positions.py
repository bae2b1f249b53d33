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
# What of an item makes the position.
STATE = ["kind", "account_index", "asset_id", "pool", "amount", "cascade", "until", "last_stake_acc"]
# Kinds of items that belong to an account; the last one stands for an account that has neither of the others.
_SIDES = ("collateral", "debt", "account")
# Kinds that there is at most one item of.
_SUMS = ("unclaimed", "claimable_rewards", "claimable_unbonding")
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
    for kind in _SUMS:
        if amount := getattr(position, kind):
            yield plain(kind, "", amount)


def read_items(store: Store, addresses: Sequence[str], at: int) -> pl.DataFrame:
    """The open items of (lower-case) addresses as of a unix second, in the columns of ITEM, by the item's key."""
    return (
        store.frame("position_items", addresses=list(addresses), at=at)
        .select(pl.col(name).cast(dtype) for name, dtype in {**_SCHEMA, "item": pl.UInt32}.items())
        .select(ITEM)
    )


def read_digests(store: Store) -> pl.DataFrame:
    """Which state of each address was written last: address, digest, complete (whether by a run that was completed),
    observed_at (unix second of that run's snapshot)."""
    return store.frame("position_digests")


def read_changed(store: Store, since: int) -> pl.Series:
    """Addresses that a run, completed or not, found changed at a unix second or later; in their order."""
    return store.frame("position_changes", since=since)["address"]


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
    return position_of(address, read_items(store, [address], at).select(STATE).rows())


def position_of(address: str, rows: Iterable[Sequence[Any]]) -> Position:
    """The position that items make up; they are in the columns of STATE, by the item's key."""
    accounts: dict[int, dict[str, list[Holding]]] = {}
    held: list[tuple[str, int]] = []
    posted: dict[str, int] = {}
    wallet: list[Balance] = []
    stakes: list[Stake] = []
    unbondings: list[Unbonding] = []
    sums: dict[str, int] = {}
    for kind, account_index, asset_id, pool, digits, cascade, until, last_stake_acc in rows:
        amount = int(digits)
        if kind in _SIDES:
            account = accounts.setdefault(account_index, {side: [] for side in _SIDES})
            account[kind].append(Holding(asset_id, amount))
        elif kind == "lend_held":
            held.append((asset_id, amount))
        elif kind == "lend_collateralized":
            posted[asset_id] = amount
        elif kind == "wallet":
            wallet.append(Balance(asset_id, amount))
        elif kind == "stake":
            transition_at = None if until is None else instant(until)
            stakes.append(Stake(pool, account_index, amount, cascade, transition_at, last_stake_acc))
        elif kind == "unbonding":
            unbondings.append(Unbonding(amount, instant(until)))
        elif kind in _SUMS:
            sums[kind] = amount
    return Position(
        address=address,
        accounts=tuple(
            Account(index, tuple(sides["collateral"]), tuple(sides["debt"]))
            for index, sides in sorted(accounts.items())
        ),
        lends=tuple(LendPosition(asset_id, amount, posted.get(asset_id, 0)) for asset_id, amount in held),
        wallet=tuple(wallet),
        stakes=tuple(stakes),
        unbondings=tuple(unbondings),
        **sums,
    )
