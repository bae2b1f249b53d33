"""Histories of the markets' values in the store: one table each, with the rows of each snapshot of markets."""

from collections.abc import Iterable, Mapping
from decimal import Decimal

from analytics_service.market.markets import Market
from analytics_service.market.supply import MarketValues, supply_of, utilization
from analytics_service.market.values import quantized_below_limit
from analytics_service.store.columns import RATIO, TEXT, Row
from analytics_service.store.snapshot_table import TOTAL, SnapshotRows, SnapshotTable


def _history(table: str, value: str = "usd") -> SnapshotTable:
    return SnapshotTable(table, {"asset_id": TEXT, value: RATIO}, ("asset_id",))


_TVL = _history("tvl")
_NET_TVL = _history("net_tvl")
_DEPOSITS = _history("deposit_value")
_COLLATERAL = _history("collateral_value")
_DEBT = _history("debt_value")
_UTILIZATION = _history("utilization", "ratio")


def value_rows(markets: Iterable[Market], values: Mapping[str, MarketValues]) -> SnapshotRows:
    """A snapshot's rows, from all markets and the values by asset id of those that have any.

    What is unknown, or 10^20 or more, has no row (rule 2.15).
    """
    tvl = supply_of(values.values()).tvl
    debts = {asset_id: one.debt.balance for asset_id, one in values.items() if one.debt}
    collaterals = {asset_id: one.collateral.balance for asset_id, one in values.items() if one.collateral}
    by_asset: dict[SnapshotTable, Mapping[str, Decimal | None]] = {
        _TVL: {TOTAL: tvl.tvl},
        _NET_TVL: {TOTAL: tvl.net_tvl},
        _DEPOSITS: {asset_id: one.deposits for asset_id, one in values.items()},
        _COLLATERAL: collaterals,
        _DEBT: debts,
        _UTILIZATION: {market.asset_id: utilization(market) for market in markets},
    }
    return {table: _rows(table, of_table) for table, of_table in by_asset.items()}


def _rows(table: SnapshotTable, values: Mapping[str, Decimal | None]) -> list[Row]:
    key, value = table.columns
    return [
        {key: asset_id, value: one}
        for asset_id, one in values.items()
        if one is not None and quantized_below_limit(one) is not None
    ]
