"""The markets of each asset in the simulated protocol, and their rules. The same for every seed."""

from dataclasses import replace
from decimal import Decimal
from typing import NamedTuple, TypeVar

from analytics_service.market.assets import AssetKind
from analytics_service.market.instants import DAY
from analytics_service.market.markets import CollateralConfig, DebtConfig, GlobalConfig
from analytics_service.sources.simulated.universe import ASSETS, LISTINGS, UNIT

# 2025-01-01, unix seconds: the protocol opens.
LAUNCH = 1_735_689_600
# From 2025-02-15 on, markets that are not `enabled` below take no more collateral or borrowers; what is there stays.
HALTED_FROM = LAUNCH + 45 * DAY
_Config = TypeVar("_Config", CollateralConfig, DebtConfig)


class Lending(NamedTuple):
    """How an asset is lent and borrowed. Numbers are in `UNIT`.

    Borrow APR by utilization is `base`, plus `slope` up to the kink, plus `steep` from there to 1. Nobody borrows or
    redeems beyond the `limit` of utilization. Lenders keep a part of the interest.
    """

    config: DebtConfig
    base: int
    slope: int
    steep: int
    kink: int
    limit: int
    kept: int


# Symbol: enabled, allowable and liquidation LTV, cap in USD at the listing price, smallest and largest discount.
_COLLATERALS: dict[str, tuple[bool, str, str, int | None, str, str]] = {
    "PTK": (True, "0.3", "0.4", 200_000_000, "0.05", "0.2"),
    "HEL": (True, "0.65", "0.75", 600_000_000, "0.02", "0.12"),
    "ORB": (True, "0.55", "0.65", 400_000_000, "0.03", "0.14"),
    "ETH": (True, "0.75", "0.82", None, "0.01", "0.1"),
    "BTC": (True, "0.7", "0.78", None, "0.01", "0.1"),
    "TIDE": (True, "0.35", "0.5", 150_000_000, "0.05", "0.2"),
    "USDT": (True, "0.8", "0.86", 900_000_000, "0.005", "0.06"),
    "USDC": (True, "0.82", "0.88", 900_000_000, "0.005", "0.06"),
    "HUSD": (False, "0.5", "0.6", 90_000_000, "0.02", "0.12"),
    "stHEL": (True, "0.6", "0.7", 500_000_000, "0.02", "0.12"),
    "stORB": (False, "0.45", "0.55", 300_000_000, "0.03", "0.15"),
    "stETH": (True, "0.72", "0.79", None, "0.01", "0.1"),
    "rHEL": (True, "0.65", "0.75", 600_000_000, "0.02", "0.12"),
    "rORB": (False, "0.5", "0.6", 300_000_000, "0.03", "0.15"),
    "rETH": (True, "0.75", "0.82", None, "0.01", "0.1"),
    "rBTC": (True, "0.7", "0.78", None, "0.01", "0.1"),
    "rUSDT": (True, "0.8", "0.86", 900_000_000, "0.005", "0.06"),
    "rUSDC": (True, "0.82", "0.88", 900_000_000, "0.005", "0.06"),
}
# Symbol: enabled, cap in USD at the listing price, halting utilization, interest fee; basis points of the curve.
_DEBTS: dict[str, tuple[bool, int | None, str, str, tuple[int, int, int, int]]] = {
    "HEL": (True, 500_000_000, "0.95", "0.2", (100, 700, 12_000, 7_500)),
    "ORB": (True, 300_000_000, "0.95", "0.2", (150, 900, 15_000, 7_500)),
    "ETH": (True, None, "0.96", "0.15", (0, 350, 8_000, 8_500)),
    "BTC": (True, None, "0.96", "0.15", (0, 300, 8_000, 8_500)),
    "TIDE": (False, 100_000_000, "0.95", "0.25", (200, 1_200, 20_000, 7_000)),
    "QRY": (True, 60_000_000, "0.95", "0.25", (300, 1_500, 20_000, 7_000)),
    "USDT": (True, 900_000_000, "0.97", "0.1", (0, 550, 6_000, 9_000)),
    "USDC": (True, 900_000_000, "0.97", "0.1", (0, 500, 6_000, 9_000)),
    "HUSD": (True, 80_000_000, "0.97", "0.15", (50, 600, 7_500, 8_500)),
}
_BY_SYMBOL = {asset.symbol: asset for asset in ASSETS}
ID_OF = {symbol: asset.id for symbol, asset in _BY_SYMBOL.items()}


def _cap(symbol: str, usd: int | None) -> int | None:
    """Whole standard units that `usd` buys, in denom units. A receipt token starts at the price of its origin."""
    asset = _BY_SYMBOL[symbol]
    listed = asset.origin_asset if asset.kind is AssetKind.RECEIPT and asset.origin_asset else asset.id
    return None if usd is None else usd * UNIT // LISTINGS[listed].usd * 10**asset.decimals_denom


def _lending(symbol: str) -> Lending:
    enabled, cap, limit, fee, points = _DEBTS[symbol]
    config = DebtConfig(enabled, _cap(symbol, cap), Decimal(limit), Decimal(fee))
    base, slope, steep, kink = (point * UNIT // 10_000 for point in points)
    kept = UNIT - int(config.interest_fee * UNIT)
    return Lending(config, base, slope, steep, kink, int(config.borrow_halt_utilization * UNIT), kept)


def in_force(config: _Config, second: int) -> _Config:
    """The rules at a second."""
    return config if config.enabled or second >= HALTED_FROM else replace(config, enabled=True)


# By asset id, in ascending order: what may be posted, and what may be lent and borrowed.
COLLATERALS = {
    ID_OF[symbol]: CollateralConfig(
        enabled, Decimal(allowable), Decimal(ltv), _cap(symbol, cap), *map(Decimal, discounts)
    )
    for symbol, (enabled, allowable, ltv, cap, *discounts) in sorted(
        _COLLATERALS.items(), key=lambda row: ID_OF[row[0]]
    )
}
LENT = {ID_OF[symbol]: _lending(symbol) for symbol in sorted(_DEBTS, key=ID_OF.__getitem__)}
# The assets of receipt tokens.
ORIGINS = {
    listing.asset.receipt_asset: asset_id for asset_id, listing in LISTINGS.items() if listing.asset.receipt_asset
}

CONFIG = GlobalConfig(
    time_window_nanos=300_000_000_000,
    partial_liquidation_threshold=Decimal(2_000),
    target_liquidation_health=Decimal("1.1"),
    liquidation_fee=Decimal("0.1"),
    flash_loans_enabled=True,
    flash_loan_fee=Decimal("0.0005"),
    staking_health_modifier=Decimal("0.05"),
    stake_collateral_ratio=Decimal("0.02"),
    stake_flash_loan_ratio=Decimal("0.01"),
    dynamic_discount_width=Decimal("0.2"),
    hnative=ID_OF["HEL"],
    ptoken=ID_OF["PTK"],
)
