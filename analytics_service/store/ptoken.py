"""The protocol token and its unlock arrangements in the store."""

from collections.abc import Iterable

import polars as pl

from analytics_service.errors import NoSnapshot
from analytics_service.market.ptoken import Arrangement, MemberClass, Ptoken, ScheduleKind, StakingPool
from analytics_service.store.columns import (
    AMOUNT,
    ASSET_ID,
    COUNT,
    INDEX,
    RATIO,
    TEXT,
    TIME,
    Column,
    fields_of,
    word,
)
from analytics_service.store.connection import Store
from analytics_service.store.snapshot_table import SnapshotRows, SnapshotTable

_STATE = SnapshotTable(
    "ptoken_state",
    "ptoken",
    {
        "asset_id": ASSET_ID,
        "emission_rate": AMOUNT,
        "tokens_per_weight": AMOUNT,
        "total_issued": AMOUNT,
        "total_claimed": AMOUNT,
        "total_locked": AMOUNT,
        "total_supply": AMOUNT,
        "rewards_last_distributed": TIME,
        "stake_acc": RATIO,
    },
)
# The column `pool` is the pool's index.
_POOLS = SnapshotTable(
    "ptoken_pool",
    "ptoken",
    {
        "pool": INDEX,
        "duration": COUNT,
        "reward_weight": RATIO,
        "gov_weight": RATIO,
        "health_weight": RATIO,
        "flash_loan_weight": RATIO,
        "total_bonded": AMOUNT,
    },
    ("pool",),
)
# Empty if the source does not tell the class.
_CLASS = Column(
    pl.String,
    lambda member: member and word(MemberClass).encode(member),
    lambda member: MemberClass(member) if member else None,
)
# The column `arrangement` is the arrangement's index.
_ARRANGEMENTS = SnapshotTable(
    "unlock_arrangement",
    "ptoken",
    {
        "address": TEXT,
        "arrangement": INDEX,
        "member_class": _CLASS,
        "kind": word(ScheduleKind),
        "amount": AMOUNT,
        "claimed": AMOUNT,
        "begins_at": TIME,
        "ends_at": TIME.or_null,
        "expires_at": TIME.or_null,
        "last_claimed_at": TIME.or_null,
        "admin": TEXT,
        "reclaimed_at": TIME.or_null,
        "staked": AMOUNT,
        "held": AMOUNT,
    },
    ("address", "arrangement"),
)


def ptoken_rows(ptoken: Ptoken, arrangements: Iterable[Arrangement]) -> SnapshotRows:
    """A snapshot's rows; addresses of beneficiaries in lower case."""
    return {
        _STATE: [fields_of(ptoken)],
        _POOLS: [{**fields_of(pool), "pool": pool.index} for pool in ptoken.pools],
        _ARRANGEMENTS: [
            {
                **fields_of(arrangement),
                "arrangement": arrangement.index,
                "address": arrangement.address.lower(),
                "member_class": arrangement.member_class or "",
            }
            for arrangement in arrangements
        ],
    }


def read_ptoken(store: Store, at: int) -> Ptoken:
    """The protocol token at a snapshot (unix second of a head of family ptoken), its pools by index.

    NoSnapshot when there is no snapshot at that second.
    """
    pools = tuple(StakingPool(index=row.pop("pool"), **row) for row in _POOLS.read(store, at))
    for row in _STATE.read(store, at):
        return Ptoken(**row, pools=pools)
    raise NoSnapshot("ptoken")


def read_arrangements(store: Store, at: int) -> list[Arrangement]:
    """The unlock arrangements of a snapshot, by address and index."""
    return [Arrangement(index=row.pop("arrangement"), **row) for row in _ARRANGEMENTS.read(store, at)]
