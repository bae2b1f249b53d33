"""Lend and borrow rates in the store."""

from collections.abc import Iterable

from analytics_service.market.markets import Market
from analytics_service.store.columns import ASSET_ID, RATE, Columns
from analytics_service.store.snapshot_table import SnapshotRows, SnapshotTable

_RATE: Columns = {"asset_id": ASSET_ID, "apr": RATE}
_LEND_RATES = SnapshotTable("lend_rate", _RATE, ("asset_id",))
_BORROW_RATES = SnapshotTable("borrow_rate", _RATE, ("asset_id",))


def rate_rows(markets: Iterable[Market]) -> SnapshotRows:
    """The rates of all lend and debt markets. The store holds those in [0, 100]."""
    listed = list(markets)
    return {
        _LEND_RATES: [{"asset_id": one.asset_id, "apr": one.lend.apr} for one in listed if one.lend],
        _BORROW_RATES: [{"asset_id": one.asset_id, "apr": one.debt.apr} for one in listed if one.debt],
    }
