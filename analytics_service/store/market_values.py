"""Histories of the markets' values in the store: one table each, with the rows of each snapshot of markets."""

from collections.abc import Iterable, Mapping
from decimal import Decimal

import polars as pl

from analytics_service.market.markets import Market
from analytics_service.market.supply import MarketValues, supply_of, utilization
from analytics_service.market.values import quantized_below
from analytics_service.store.columns import RATIO, RATIO_LIMIT, TEXT
from analytics_service.store.snapshot_table import TOTAL, SnapshotTable


def _history(table: str, value: str = "usd") -> SnapshotTable:
    return SnapshotTable(table, {"asset_id": TEXT, value: RATIO}, ("asset_id",))


_TVL = _history("tvl")
_NET_TVL = _history("net_tvl")
_DEPOSITS = _history("deposit_value")
_COLLATERAL = _history("collateral_value")
_DEBT = _history("debt_value")
_UTILIZATION = _history("utilization", "ratio")


def value_frames(markets: Iterable[Market], values: Mapping[str, MarketValues]) -> dict[str, pl.DataFrame]:
    """A snapshot's rows by table, from all markets and the values by asset id of those that have any.

    What is unknown, or 10^20 or more, has no row (rule 2.14).
    """
    tvl = supply_of(values.values()).tvl
    debts = {asset_id: one.debt.balance for asset_id, one in values.items() if one.debt}
    collaterals = {asset_id: one.collateral.balance for asset_id, one in values.items() if one.collateral}
    return dict(
        (
            _rows(_TVL, {TOTAL: tvl.tvl}),
            _rows(_NET_TVL, {TOTAL: tvl.net_tvl}),
            _rows(_DEPOSITS, {asset_id: one.deposits for asset_id, one in values.items()}),
            _rows(_COLLATERAL, collaterals),
            _rows(_DEBT, debts),
            _rows(_UTILIZATION, {market.asset_id: utilization(market) for market in markets}),
        )
    )


def _rows(table: SnapshotTable, values: Mapping[str, Decimal | None]) -> tuple[str, pl.DataFrame]:
    key, value = table.columns
    storable = {
        asset_id: number
        for asset_id, one in values.items()
        if one is not None and (number := quantized_below(one, RATIO_LIMIT)) is not None
    }
    return table.name, table.frame({key: asset_id, value: number} for asset_id, number in storable.items())
