"""Lend, collateral and debt markets, the rules for all borrowing, and the prices of each snapshot, in the store."""

from collections.abc import Iterable, Mapping
from decimal import Decimal

from analytics_service.errors import NoSnapshot
from analytics_service.market import kinds
from analytics_service.market.fields import columns_of, record_of, row_of
from analytics_service.market.kinds import AssetId
from analytics_service.market.markets import CollateralMarket, DebtMarket, GlobalConfig, LendMarket, Market
from analytics_service.store.columns import Columns, Row
from analytics_service.store.connection import Store
from analytics_service.store.snapshot_table import SnapshotRows, SnapshotTable

_KEY: Columns = {"asset_id": AssetId("Asset id")}
_LEND = SnapshotTable("market_lend", "markets", {**_KEY, **columns_of(LendMarket)}, ("asset_id",))
_COLLATERAL = SnapshotTable("market_collateral", "markets", {**_KEY, **columns_of(CollateralMarket)}, ("asset_id",))
_DEBT = SnapshotTable("market_debt", "markets", {**_KEY, **columns_of(DebtMarket)}, ("asset_id",))
_CONFIG = SnapshotTable("market_config", "markets", columns_of(GlobalConfig))
_ORACLE = kinds.Price("USD per standard unit, as the oracle stated it last by then")
_PRICE = SnapshotTable("market_price", "markets", {**_KEY, "price": _ORACLE}, ("asset_id",))


def market_rows(markets: Iterable[Market], config: GlobalConfig, prices: Mapping[str, Decimal]) -> SnapshotRows:
    """A snapshot's rows. `prices` are the oracle's, by asset id; only prices of assets with a market are stored."""
    rows: dict[SnapshotTable, list[Row]] = {table: [] for table in (_LEND, _COLLATERAL, _DEBT, _PRICE)}
    for market in markets:
        key = {"asset_id": market.asset_id}
        if market.asset_id in prices:
            rows[_PRICE].append({**key, "price": prices[market.asset_id]})
        for table, part in ((_LEND, market.lend), (_COLLATERAL, market.collateral), (_DEBT, market.debt)):
            if part:
                rows[table].append({**key, **row_of(part)})
    return {**rows, _CONFIG: [row_of(config)]}


def read_markets(store: Store, at: int) -> dict[str, Market]:
    """The markets of a snapshot (unix second of a head of family markets), by asset id, in the order of ids."""
    lends = {row["asset_id"]: record_of(LendMarket, row) for row in _LEND.read(store, at)}
    collaterals = {row["asset_id"]: record_of(CollateralMarket, row) for row in _COLLATERAL.read(store, at)}
    debts = {row["asset_id"]: record_of(DebtMarket, row) for row in _DEBT.read(store, at)}
    return {
        asset_id: Market(asset_id, lends.get(asset_id), collaterals.get(asset_id), debts.get(asset_id))
        for asset_id in sorted({*lends, *collaterals, *debts})
    }


def read_config(store: Store, at: int) -> GlobalConfig:
    """The rules for all borrowing at a snapshot (unix second). NoSnapshot if there is none."""
    for row in _CONFIG.read(store, at):
        return record_of(GlobalConfig, row)
    raise NoSnapshot("markets")


def read_market_prices(store: Store, at: int) -> dict[str, Decimal]:
    """The oracle's price of each asset with a market, by asset id, as written with a complete snapshot of family
    markets (unix second). Prices of receipt tokens that it does not quote follow from these (rule 4.6)."""
    return {row["asset_id"]: row["price"] for row in _PRICE.read(store, at)}
