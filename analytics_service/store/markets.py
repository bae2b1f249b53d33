"""Lend, collateral and debt markets, the rules for all borrowing, and the prices of each snapshot, in the store."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from analytics_service.errors import NoSnapshot
from analytics_service.market.markets import (
    CollateralConfig,
    CollateralMarket,
    DebtConfig,
    DebtMarket,
    GlobalConfig,
    LendMarket,
    Market,
)
from analytics_service.store.columns import (
    AMOUNT,
    ASSET_ID,
    COUNT,
    FLAG,
    PRICE,
    RATE,
    RATIO,
    TIME,
    Columns,
    fields_of,
)
from analytics_service.store.connection import Store
from analytics_service.store.snapshot_table import SnapshotRows, SnapshotTable

_LEND_STATE: Columns = {
    "apr": RATE,
    "principal": AMOUNT,
    "receipt_supply": AMOUNT,
    "interest_paid": AMOUNT.or_null,
}
_LEND = SnapshotTable("market_lend", "markets", {"asset_id": ASSET_ID, **_LEND_STATE}, ("asset_id",))
_COLLATERAL_CONFIG: Columns = {
    "enabled": FLAG,
    "allowable_ltv": RATIO,
    "liquidation_ltv": RATIO,
    "collateral_cap": AMOUNT.or_null,
    "min_discount": RATIO,
    "max_discount": RATIO,
}
_COLLATERAL_STATE: Columns = {"balance": AMOUNT, "shares": AMOUNT}
_COLLATERAL = SnapshotTable(
    "market_collateral", "markets", {"asset_id": ASSET_ID, **_COLLATERAL_CONFIG, **_COLLATERAL_STATE}, ("asset_id",)
)
_DEBT_CONFIG: Columns = {
    "enabled": FLAG,
    "borrow_cap": AMOUNT.or_null,
    "borrow_halt_utilization": RATIO,
    "interest_fee": RATIO,
}
_DEBT_STATE: Columns = {
    "apr": RATE,
    "balance": AMOUNT,
    "shares": AMOUNT,
    "time_last_distributed_interest": TIME,
    "utilization_accumulator": RATIO,
}
_DEBT = SnapshotTable("market_debt", "markets", {"asset_id": ASSET_ID, **_DEBT_CONFIG, **_DEBT_STATE}, ("asset_id",))
_CONFIG = SnapshotTable(
    "market_config",
    "markets",
    {
        "time_window_nanos": COUNT,
        "partial_liquidation_threshold": RATIO,
        "target_liquidation_health": RATIO,
        "liquidation_fee": RATIO,
        "flash_loans_enabled": FLAG,
        "flash_loan_fee": RATIO,
        "staking_health_modifier": RATIO,
        "stake_collateral_ratio": RATIO,
        "stake_flash_loan_ratio": RATIO,
        "dynamic_discount_width": RATIO,
        "hnative": ASSET_ID,
        "ptoken": ASSET_ID,
    },
)
_PRICE = SnapshotTable("market_price", "markets", {"asset_id": ASSET_ID, "price": PRICE}, ("asset_id",))


def market_rows(markets: Iterable[Market], config: GlobalConfig, prices: Mapping[str, Decimal]) -> SnapshotRows:
    """A snapshot's rows. `prices` are the oracle's, by asset id; only prices of assets with a market are stored."""
    priced: list[dict[str, Any]] = []
    lends: list[dict[str, Any]] = []
    collaterals: list[dict[str, Any]] = []
    debts: list[dict[str, Any]] = []
    for market in markets:
        asset_id = market.asset_id
        if asset_id in prices:
            priced.append({"asset_id": asset_id, "price": prices[asset_id]})
        if lend := market.lend:
            lends.append({"asset_id": asset_id, **fields_of(lend)})
        for part, rows in ((market.collateral, collaterals), (market.debt, debts)):
            if part:
                rows.append({"asset_id": asset_id, **fields_of(part), **fields_of(part.config)})
    return {
        _LEND: lends,
        _COLLATERAL: collaterals,
        _DEBT: debts,
        _CONFIG: [fields_of(config)],
        _PRICE: priced,
    }


def read_markets(store: Store, at: int) -> dict[str, Market]:
    """The markets of a snapshot (unix second of a head of family markets), by asset id, in the order of ids."""
    lends = {row["asset_id"]: LendMarket(**_part(row, _LEND_STATE)) for row in _LEND.read(store, at)}
    collaterals = {
        row["asset_id"]: CollateralMarket(
            CollateralConfig(**_part(row, _COLLATERAL_CONFIG)), **_part(row, _COLLATERAL_STATE)
        )
        for row in _COLLATERAL.read(store, at)
    }
    debts = {
        row["asset_id"]: DebtMarket(DebtConfig(**_part(row, _DEBT_CONFIG)), **_part(row, _DEBT_STATE))
        for row in _DEBT.read(store, at)
    }
    return {
        asset_id: Market(asset_id, lends.get(asset_id), collaterals.get(asset_id), debts.get(asset_id))
        for asset_id in sorted({*lends, *collaterals, *debts})
    }


def read_config(store: Store, at: int) -> GlobalConfig:
    """The rules for all borrowing at a snapshot (unix second). NoSnapshot if there is none."""
    for row in _CONFIG.read(store, at):
        return GlobalConfig(**row)
    raise NoSnapshot("markets")


def read_market_prices(store: Store, at: int) -> dict[str, Decimal]:
    """The oracle's price of each asset with a market, by asset id, as written with a complete snapshot of family
    markets (unix second). Prices of receipt tokens that it does not quote follow from these (rule 4.6)."""
    return {row["asset_id"]: row["price"] for row in _PRICE.read(store, at)}


def _part(row: Mapping[str, Any], columns: Columns) -> dict[str, Any]:
    return {name: row[name] for name in columns}
