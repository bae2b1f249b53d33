"""Positions of addresses, stored as items. Only changes of items are written."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import islice, pairwise
from operator import attrgetter
from typing import Any

import polars as pl
from xxhash import xxh3_64_intdigest

from analytics_service.clickhouse.columns import (
    UNFIT,
    Columns,
    Row,
    SnapshotRows,
    Snapshots,
    SnapshotTable,
    encode_tuples,
    schema_of,
    select_list,
)
from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.queries import named_query
from analytics_service.market.instants import from_unix
from analytics_service.market.kinds import (
    Address,
    Amount,
    AssetId,
    ColumnType,
    Count,
    Flag,
    Index,
    Number,
    Ratio,
    Text,
    Time,
    columns_of,
)
from analytics_service.market.positions import (
    Account,
    Activity,
    Balance,
    Holding,
    LendPosition,
    Position,
    Stake,
    Unbonding,
)
from analytics_service.market.validation import validate
from analytics_service.store.ledger import new_version

# The key of an item, in the order of the table's sort key.
_KEY: Columns = {
    "address": Address("Address of the user"),
    "kind": Text(
        "Kind of item: collateral, debt, account (with neither), lend_held, lend_collateralized, wallet, stake, "
        "unbonding, unclaimed, claimable_rewards or claimable_unbonding"
    ),
    "account_index": Index("Index of the borrow account of a collateral, debt, account or stake item; otherwise 0"),
    "asset_id": Text("Asset id of a collateral, debt, lend or wallet item; otherwise empty"),
    "pool": Index("Index of the staking pool of a stake; otherwise 0"),
    "item": Index("Numbers items that are equal in all preceding columns, from 0"),
}
# The other columns of an item, each with its value in a closed item.
_VALUES: dict[str, tuple[ColumnType, Any]] = {
    "amount": (
        Amount(
            "Shares of a collateral or debt item, receipt tokens of a lend item, otherwise denom units; 0 when closed"
        ),
        "0",
    ),
    "cascade": (Flag("Whether a stake moves to the next shorter pool by itself"), False),
    "until": (Time("Instant at which a stake moves, or an unbonding unlocks", nullable=True), None),
    "last_stake_acc": (Number("Value of stake_acc up to which a stake has been rewarded"), 0),
    **{name: (kind, None) for name, kind in columns_of(Holding).items() if isinstance(kind, Ratio)},
}
ITEM_COLUMNS: Columns = {**_KEY, **{name: column for name, (column, _) in _VALUES.items()}}
_SCHEMA = schema_of(ITEM_COLUMNS)
_PLACEHOLDERS = {"columns": select_list(ITEM_COLUMNS), "key": ", ".join(_KEY)}
# The columns of items before numbering. Each position's first item `begins`.
_UNNUMBERED = {**{name: dtype for name, dtype in _SCHEMA.items() if name != "item"}, "begins": pl.Boolean}
_EQUAL = [name for name in _KEY if name != "item"]

ITEM_KEY = list(_KEY)
ITEM = list(ITEM_COLUMNS)
NO_ITEMS = pl.DataFrame(schema=schema_of(ITEM_COLUMNS))
# The columns that a position is made from.
POSITION_COLUMNS = [name for name in ITEM_COLUMNS if name not in ("address", "item")]
CLOSED = {name: pl.lit(nothing, column.dtype) for name, (column, nothing) in _VALUES.items()}

# Columns of items in an asset, columns of other items, and defaults of the columns that only one of the two has.
# `number` numbers positions.
_SHARED: Columns = {"number": Index(), **{name: ITEM_COLUMNS[name] for name in ("kind", "account_index", "amount")}}
_LTVS = [name for name, (kind, _) in _VALUES.items() if isinstance(kind, Ratio)]
_IN_ASSETS: Columns = {**_SHARED, "asset_id": AssetId(), **{name: ITEM_COLUMNS[name] for name in _LTVS}}
_OTHERS: Columns = {
    **_SHARED,
    **{name: ITEM_COLUMNS[name] for name in ("pool", "cascade", "until", "last_stake_acc")},
}
_EMPTY = {"asset_id": "", "pool": 0, "cascade": False, "last_stake_acc": 0}
_ZERO = Decimal()

# The columns of an item in its digest. Only the last may contain a separator.
_DIGESTED = [*(name for name in ITEM if name not in ("address", "asset_id")), "asset_id"]

# Kinds of items that belong to an account. `account` is the only item of an account without collateral and debt.
_SIDES = ("collateral", "debt", "account")
# Kinds of items that health depends on.
_BORROWING = (*_SIDES, "stake")
_BORROWING_COLUMNS = ["address", "kind", "account_index", "asset_id", "pool", "amount", "liquidation_ltv"]
# A position has at most one item of each of these kinds.
_SUMS = ("unclaimed", "claimable_rewards", "claimable_unbonding")
KINDS = (*_SIDES, "lend_held", "lend_collateralized", "wallet", "stake", "unbonding", *_SUMS)
_BATCH = 2_000
# Addresses that are read at a time, on average. Ranges end at random, so the largest has five times as many.
_ADDRESSES = 50_000
# Sorts after all addresses.
_LAST_ADDRESS = "\U0010ffff"
_Item = tuple[Any, ...]
_COUNTS: Columns = {
    "addresses": Count("Number of addresses with a position. 0 if the source knows only some addresses"),
    "borrowers": Count("Number of addresses that owe a debt"),
    "borrower_accounts": Count("Number of borrow accounts that owe a debt"),
    "lenders": Count("Number of addresses that lend"),
}
_SUMMARY = SnapshotTable("position_summary", "positions", _COUNTS)


# Gets the deposits of a position.
Lends = Callable[[Position], Iterable[LendPosition]]


def unnumber_items(
    positions: Iterable[Position], unfit: list[Position] | None = None, lends: Lends = attrgetter("lends")
) -> Iterator[pl.DataFrame]:
    """All items of positions, for `number_items`, in batches. An empty position has no items.

    Positions that cannot be stored are rejected, and added to `unfit` if that is given.
    """
    remaining = iter(positions)
    while batch := list(islice(remaining, _BATCH)):
        try:
            yield _rows_of(batch, lends)
        except UNFIT:
            # Validating all fields of all positions would take longer than storing them.
            faulty = [position for position in batch if any(validate(position, Position))]
            if unfit is None or not faulty:
                raise
            unfit += faulty
            yield _rows_of([position for position in batch if not any(validate(position, Position))], lends)


def number_items(frames: Iterable[pl.DataFrame]) -> tuple[pl.DataFrame, dict[str, int]]:
    """Items in the columns of ITEM, from `frames` that have all items of their (lower-case) addresses; and the
    addresses with more than one position, with the number of these."""
    rows = pl.concat([pl.DataFrame(schema=_UNNUMBERED), *frames])
    items = rows.with_columns(item=pl.int_range(pl.len(), dtype=pl.UInt32).over(_EQUAL)).select(ITEM)
    counts = rows.filter("begins")["address"].value_counts().filter(pl.col("count") > 1)
    return items, dict(counts.sort("address").iter_rows())


def _rows_of(positions: Sequence[Position], lends: Lends) -> pl.DataFrame:
    """The items of positions. They are encoded column by column, because a snapshot may have a million."""
    addresses = pl.Series([Address().encode(position.address) for position in positions], dtype=pl.String)
    in_assets = encode_tuples(_in_assets(positions, lends), _IN_ASSETS)
    rows = pl.concat([in_assets, encode_tuples(_others(positions), _OTHERS)], how="diagonal")
    filled = {name: pl.col(name).fill_null(value) for name, value in _EMPTY.items()}
    begins, address = pl.col("number").is_first_distinct(), addresses.gather(rows["number"])
    return rows.with_columns(begins=begins, address=address, **filled).select(*_UNNUMBERED)


def _in_assets(positions: Iterable[Position], lends: Lends) -> Iterator[_Item]:
    """Items in an asset, in the columns of _IN_ASSETS."""
    for number, position in enumerate(positions):
        for account in position.accounts:
            for held in account.collaterals:
                ltvs = (held.allowable_ltv, held.liquidation_ltv)
                yield (number, "collateral", account.index, held.shares, held.asset_id, *ltvs)
            for owed in account.debts:
                yield (number, "debt", account.index, owed.shares, owed.asset_id, None, None)
        for lent in lends(position):
            yield (number, "lend_held", 0, lent.held, lent.asset_id, None, None)
            if lent.collateralized:
                yield (number, "lend_collateralized", 0, lent.collateralized, lent.asset_id, None, None)
        for balance in position.wallet:
            yield (number, "wallet", 0, balance.amount, balance.asset_id, None, None)


def _others(positions: Iterable[Position]) -> Iterator[_Item]:
    """Other items, in the columns of _OTHERS."""
    for number, position in enumerate(positions):
        for account in position.accounts:
            if not (account.collaterals or account.debts):
                yield (number, "account", account.index, 0, 0, False, None, _ZERO)
        for stake in position.stakes:
            rest = (stake.amount, stake.pool, stake.cascade, stake.transition_at, stake.last_stake_acc)
            yield (number, "stake", stake.account_index, *rest)
        for leaving in position.unbondings:
            yield (number, "unbonding", 0, leaving.amount, 0, False, leaving.unlock_at, _ZERO)
        for kind in _SUMS:
            if amount := getattr(position, kind):
                yield (number, kind, 0, amount, 0, False, None, _ZERO)


def read_items(store: Store, addresses: Sequence[str], at: int) -> pl.DataFrame:
    """The open items of (lower-case) addresses at a unix second, in the columns of ITEM and the order of ITEM_KEY."""
    rows = store.query("list_position_items", _with_commits(), addresses=list(addresses), last=at)
    return rows.select(pl.col(name).cast(dtype) for name, dtype in schema_of(ITEM_COLUMNS).items())


def _with_commits() -> dict[str, str]:
    return {**_PLACEHOLDERS, "commits": named_query("find_commits_of_addresses", ())}


def read_borrowing(store: Store, at: int) -> Iterator[pl.DataFrame]:
    """The collateral, debt and stakes of all borrow accounts at a unix second, as `book_of` takes them."""
    for first, end in _address_ranges(store):
        yield store.query("list_borrowing_items", _PLACEHOLDERS, kinds=list(_BORROWING), at=at, first=first, end=end)


def _address_ranges(store: Store) -> Iterator[tuple[str, str]]:
    """Ranges [first, end) that cover all addresses, each with about _ADDRESSES that have a position."""
    ends = store.query("sample_addresses", one_of=_ADDRESSES)["address"].to_list()
    return pairwise(["", *ends, _LAST_ADDRESS])


def read_borrowing_between(store: Store, start: int, end: int) -> Iterator[pl.DataFrame]:
    """The items of `read_borrowing` at all seconds of [start, end). Each has its amount in [`observed_at`, `until`),
    where null stands for the end of the range."""
    until = pl.col("observed_at").shift(-1).over(ITEM_KEY)
    for rows in _read_changes(store, _BORROWING, start, end):
        yield rows.sort(*ITEM_KEY, "observed_at").with_columns(until=until).filter(~pl.col("closed"))


def read_gap(store: Store, start: int, end: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """All open items at a snapshot `start` (unix second; 0 before the first), in the columns of ITEM, and the keys of
    items that have a row at the next snapshot, `end`."""
    before, written = [NO_ITEMS], [NO_ITEMS.select(ITEM_KEY)]
    until = pl.col("observed_at")
    for rows in _read_changes(store, KINDS, start, end + 1):
        before.append(rows.filter(until <= start, ~pl.col("closed")).select(ITEM))
        written.append(rows.filter(until == end).select(ITEM_KEY))
    return pl.concat(before), pl.concat(written)


def _read_changes(store: Store, kinds: Sequence[str], start: int, end: int) -> Iterator[pl.DataFrame]:
    """The last row of each item up to `start`, and all later rows in [start, end), by ranges of addresses."""
    of = {"kinds": list(kinds), "start": start, "end": end}
    for first, before in _address_ranges(store):
        rows = store.query("list_item_changes", _PLACEHOLDERS, **of, first=first, before=before)
        yield rows.with_columns(pl.col(name).cast(dtype) for name, dtype in _SCHEMA.items())


def borrowing_of(items: pl.DataFrame) -> pl.DataFrame:
    """The items of a snapshot that `read_borrowing` reads."""
    return items.filter(pl.col("kind").is_in(_BORROWING)).select(_BORROWING_COLUMNS)


def digests_of(items: pl.DataFrame) -> pl.DataFrame:
    """The digest of each address with items: address and digest. The order of items makes no difference.

    The store keeps digests, so they hash bytes of our own: Polars' hashes differ between its versions.
    """
    fields = (pl.col(name).cast(pl.String).fill_null("") for name in _DIGESTED)
    texts = items.select(pl.concat_str(*fields, separator="|").cast(pl.Binary)).to_series()
    hashes = pl.Series("digest", map(xxh3_64_intdigest, texts), pl.UInt64)
    return items.select("address", hashes).group_by("address").agg(pl.col("digest").bitwise_xor())


def read_digests(store: Store) -> pl.DataFrame:
    """The last digest of each address: address, digest, and complete (whether its commit is complete)."""
    return store.query("read_digests")


def forget_digests(store: Store) -> None:
    """Invalidate all digests. Call it before snapshots are removed: if a remaining snapshot was added late, digests may
    differ from its state."""
    store.run("reset_digests", version=new_version(store))


def activity_of(items: pl.DataFrame) -> dict[str, int]:
    """The counts over the items of whole addresses. Debts without shares and deposits without receipts do not
    count."""
    nonzero = items.filter(pl.col("amount") != "0")
    debts = nonzero.filter(pl.col("kind") == "debt")
    return {
        "addresses": items["address"].n_unique(),
        "borrowers": debts["address"].n_unique(),
        "borrower_accounts": debts.select("address", "account_index").n_unique(),
        "lenders": nonzero.filter(pl.col("kind").str.starts_with("lend_"))["address"].n_unique(),
    }


def activity_rows(counts: Iterable[Mapping[str, int]], stated: Activity | None = None) -> SnapshotRows:
    """The sums of counts over all partitions of a snapshot, or the counts that the source has `stated`."""
    sums = dict.fromkeys(_COUNTS, 0)
    for part in counts:
        sums = {name: sums[name] + count for name, count in part.items()}
    if stated:
        users = (stated.borrower_active, stated.borrower_account_active, stated.lender_active)
        sums = dict(zip(_COUNTS, (0, *users), strict=True))
    return {_SUMMARY: [sums]}


def read_activity(store: Store, at: int) -> Activity:
    """The numbers of users at a snapshot (unix second); 0 without a snapshot."""
    for row in _SUMMARY.read(store, at):
        return Activity(row["borrowers"], row["borrower_accounts"], row["lenders"])
    return Activity(0, 0, 0)


def knows_all_addresses(store: Store, at: int) -> bool:
    """Whether a snapshot (unix second) has the positions of all addresses."""
    return all(map(_has_all_addresses, _SUMMARY.read(store, at)))


def partly_known_addresses(snapshots: Snapshots) -> set[int]:
    """The snapshots (unix seconds) that have positions of some addresses only."""
    seconds = snapshots.versions[_SUMMARY.dataset]
    return {second for second in seconds if not all(map(_has_all_addresses, snapshots.read(_SUMMARY, second)))}


def _has_all_addresses(summary: Row) -> bool:
    """Whether a snapshot counts no more borrowers or lenders than addresses."""
    return bool(max(summary["borrowers"], summary["lenders"]) <= summary["addresses"])


def read_position(store: Store, address: str, at: int) -> Position:
    """The position of a (lower-case) address at a snapshot (unix second), ordered by account, asset id and pool. Empty
    for an address without a position."""
    return position_of(address, read_items(store, [address], at).select(POSITION_COLUMNS).rows())


def read_positions(store: Store, address: str, seconds: Sequence[int]) -> list[Position]:
    """The positions of a (lower-case) address at ascending unix seconds, each as from `read_position`."""
    starts = [0, *(second + 1 for second in seconds[:-1])]
    bound = {"addresses": [address], "starts": starts, "last": seconds[-1]}
    rows = store.query("list_position_changes", _with_commits(), **bound)
    rows = rows.sort("observed_at").with_columns(pl.col(name).cast(dtype) for name, dtype in _SCHEMA.items())
    changes = deque(rows.select("observed_at", "closed", pl.struct(ITEM_KEY), pl.struct(POSITION_COLUMNS)).rows())
    items: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    positions = [Position(address)]
    for second in seconds:
        has_changed = bool(changes) and changes[0][0] <= second
        while changes and changes[0][0] <= second:
            _, closed, key, item = changes.popleft()
            items[tuple(key.values())] = () if closed else tuple(item.values())
        there = (items[key] for key in sorted(items) if items[key])
        positions.append(position_of(address, there) if has_changed else positions[-1])
    return positions[1:]


def position_of(address: str, rows: Iterable[Sequence[Any]]) -> Position:
    """The position of items in POSITION_COLUMNS and in the order of ITEM_KEY."""
    accounts: dict[int, dict[str, list[Holding]]] = {}
    held: list[tuple[str, int]] = []
    posted: dict[str, int] = {}
    wallet: list[Balance] = []
    stakes: list[Stake] = []
    unbondings: list[Unbonding] = []
    sums: dict[str, int] = {}
    for kind, account_index, asset_id, pool, digits, cascade, until, last_stake_acc, *ltvs in rows:
        amount = int(digits)
        if kind in _SIDES:
            account = accounts.setdefault(account_index, {side: [] for side in _SIDES})
            account[kind].append(Holding(asset_id, amount, *ltvs))
        elif kind == "lend_held":
            held.append((asset_id, amount))
        elif kind == "lend_collateralized":
            posted[asset_id] = amount
        elif kind == "wallet":
            wallet.append(Balance(asset_id, amount))
        elif kind == "stake":
            transition_at = None if until is None else from_unix(until)
            stakes.append(Stake(pool, account_index, amount, cascade, transition_at, last_stake_acc))
        elif kind == "unbonding":
            unbondings.append(Unbonding(amount, from_unix(until)))
        elif kind in _SUMS:
            sums[kind] = amount
    held += [(asset_id, 0) for asset_id in sorted(posted.keys() - dict(held).keys())]
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
