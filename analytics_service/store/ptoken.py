"""The protocol token and its unlock arrangements in the store."""

from collections.abc import Iterable

from analytics_service.errors import NoSnapshot
from analytics_service.market.fields import columns_of, record_of, row_of
from analytics_service.market.ptoken import Arrangement, Ptoken, StakingPool
from analytics_service.store.connection import Store
from analytics_service.store.snapshot_table import SnapshotRows, SnapshotTable

_STATE = SnapshotTable("ptoken_state", "ptoken", columns_of(Ptoken))
_POOLS = SnapshotTable("ptoken_pool", "ptoken", columns_of(StakingPool), ("pool",))
_ARRANGEMENTS = SnapshotTable("unlock_arrangement", "ptoken", columns_of(Arrangement), ("address", "arrangement"))


def ptoken_rows(ptoken: Ptoken, arrangements: Iterable[Arrangement]) -> SnapshotRows:
    """A snapshot's rows; addresses of beneficiaries in lower case."""
    return {
        _STATE: [row_of(ptoken)],
        _POOLS: [row_of(pool) for pool in ptoken.pools],
        _ARRANGEMENTS: [row_of(arrangement) for arrangement in arrangements],
    }


def read_ptoken(store: Store, at: int) -> Ptoken:
    """The protocol token at a snapshot (unix second of a head of family ptoken), its pools by index.

    NoSnapshot when there is no snapshot at that second.
    """
    pools = tuple(record_of(StakingPool, row) for row in _POOLS.read(store, at))
    for row in _STATE.read(store, at):
        return record_of(Ptoken, row, pools=pools)
    raise NoSnapshot("ptoken")


def read_arrangements(store: Store, at: int) -> list[Arrangement]:
    """The unlock arrangements of a snapshot, by address and index."""
    return [record_of(Arrangement, row) for row in _ARRANGEMENTS.read(store, at)]
