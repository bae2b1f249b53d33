"""The protocol token and its unlock arrangements, as of snapshots."""

from collections.abc import Iterable
from datetime import datetime

import polars as pl

from analytics_service.errors import NoSnapshot
from analytics_service.market.ptoken import Arrangement, MemberClass, Ptoken, ScheduleKind, StakingPool
from analytics_service.store.columns import (
    AMOUNT,
    COUNT,
    INDEX,
    RATIO,
    TEXT,
    TIME,
    Column,
    Columns,
    decoded,
    fields_of,
    snapshot_frame,
)
from analytics_service.store.connection import Store

_STATE: Columns = {
    "asset_id": TEXT,
    "emission_rate": AMOUNT,
    "tokens_per_weight": AMOUNT,
    "total_issued": AMOUNT,
    "total_claimed": AMOUNT,
    "total_locked": AMOUNT,
    "total_supply": AMOUNT,
    "rewards_last_distributed": TIME,
    "stake_acc": RATIO,
}
_POOL: Columns = {
    "index": INDEX,
    "duration": COUNT,
    "reward_weight": RATIO,
    "gov_weight": RATIO,
    "health_weight": RATIO,
    "flash_loan_weight": RATIO,
    "total_bonded": AMOUNT,
}
_ARRANGEMENT: Columns = {
    "address": TEXT,
    "index": INDEX,
    "member_class": Column(pl.String, str, MemberClass),
    "kind": Column(pl.String, str, ScheduleKind),
    "amount": AMOUNT,
    "claimed": AMOUNT,
    "begins_at": TIME,
    "ends_at": TIME,
    "expires_at": TIME,
    "last_claimed_at": TIME,
    "admin": TEXT,
    "reclaimed_at": TIME,
    "staked": AMOUNT,
    "held": AMOUNT,
}


def ptoken_frames(
    ptoken: Ptoken, arrangements: Iterable[Arrangement], at: datetime, version: int
) -> dict[str, pl.DataFrame]:
    """A snapshot's rows by table."""
    pools = snapshot_frame(map(fields_of, ptoken.pools), _POOL, at, version)
    agreed = snapshot_frame(map(fields_of, arrangements), _ARRANGEMENT, at, version)
    return {
        "ptoken_state": snapshot_frame([fields_of(ptoken)], _STATE, at, version),
        "ptoken_pool": pools.rename({"index": "pool"}),
        "unlock_arrangement": agreed.rename({"index": "arrangement"}).with_columns(_lowered("address")),
    }


def read_ptoken(store: Store, at: int) -> Ptoken:
    """The protocol token of a snapshot (unix second of a head of family ptoken), pools by index. NoSnapshot without."""
    pools = tuple(StakingPool(**row) for row in decoded(store, "ptoken_pool", _POOL, at=at))
    for row in decoded(store, "ptoken_state", _STATE, at=at):
        return Ptoken(**row, pools=pools)
    raise NoSnapshot("No snapshot of ptoken has been completed yet; the first one may be on its way.")


def read_arrangements(store: Store, at: int) -> list[Arrangement]:
    """The unlock arrangements of a snapshot, by address and index."""
    return [Arrangement(**row) for row in decoded(store, "unlock_arrangement", _ARRANGEMENT, at=at)]


def _lowered(column: str) -> pl.Expr:
    return pl.col(column).str.to_lowercase()
