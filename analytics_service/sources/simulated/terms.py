"""The markets of each asset in the simulated protocol, and their rules. The same for every seed."""

from dataclasses import dataclass
from decimal import Decimal

from analytics_service.market.assets import AssetKind
from analytics_service.market.instants import DAY
from analytics_service.market.markets import CollateralConfig, DebtConfig, GlobalConfig
from analytics_service.sources.simulated.clock import LAUNCH
from analytics_service.sources.simulated.noise import UNIT
from analytics_service.sources.simulated.universe import ASSETS, LISTINGS

# From 2025-02-15 on, the asset below can no longer be borrowed; existing debts stay.
HALTED_FROM = LAUNCH + 45 * DAY
_HALTED = "TIDE"


@dataclass(frozen=True, slots=True)
class Curve:
    """Borrow APR by utilization, in `UNIT`: `base`, plus `slope` up to the kink, plus `steep` from there to 1.

    Utilization itself moves around `centre`.
    """

    base: int
    slope: int
    steep: int
    kink: int
    centre: int


@dataclass(frozen=True, slots=True)
class Terms:
    """An asset's markets. An asset that can be borrowed has a curve, and can be lent, too."""

    collateral: CollateralConfig | None
    debt: DebtConfig | None
    curve: Curve | None


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
# Symbol: cap in USD at the listing price, halting utilization, interest fee; the fields of a Curve in basis points.
_DEBTS: dict[str, tuple[int | None, str, str, tuple[int, int, int, int, int]]] = {
    "HEL": (500_000_000, "0.95", "0.2", (100, 700, 12_000, 7_500, 5_900)),
    "ORB": (300_000_000, "0.95", "0.2", (150, 900, 15_000, 7_500, 5_700)),
    "ETH": (None, "0.96", "0.15", (0, 350, 8_000, 8_500, 6_300)),
    "BTC": (None, "0.96", "0.15", (0, 300, 8_000, 8_500, 6_000)),
    "TIDE": (100_000_000, "0.95", "0.25", (200, 1_200, 20_000, 7_000, 5_500)),
    "QRY": (60_000_000, "0.95", "0.25", (300, 1_500, 20_000, 7_000, 5_800)),
    "USDT": (900_000_000, "0.97", "0.1", (0, 550, 6_000, 9_000, 6_600)),
    "USDC": (900_000_000, "0.97", "0.1", (0, 500, 6_000, 9_000, 6_600)),
    "HUSD": (80_000_000, "0.97", "0.15", (50, 600, 7_500, 8_500, 6_200)),
}
_BY_SYMBOL = {asset.symbol: asset for asset in ASSETS}


def _cap(symbol: str, usd: int | None) -> int | None:
    """Whole standard units that `usd` buys, in denom units. A receipt token starts at the price of its origin."""
    asset = _BY_SYMBOL[symbol]
    listed = asset.origin_asset if asset.kind is AssetKind.RECEIPT and asset.origin_asset else asset.id
    return None if usd is None else int(usd // LISTINGS[listed].usd) * 10**asset.decimals_denom


def _collateral(symbol: str) -> CollateralConfig | None:
    if symbol not in _COLLATERALS:
        return None
    enabled, allowable, liquidation, cap, least, greatest = _COLLATERALS[symbol]
    return CollateralConfig(
        enabled=enabled,
        allowable_ltv=Decimal(allowable),
        liquidation_ltv=Decimal(liquidation),
        collateral_cap=_cap(symbol, cap),
        min_discount=Decimal(least),
        max_discount=Decimal(greatest),
    )


def _terms(symbol: str) -> Terms:
    collateral = _collateral(symbol)
    if symbol not in _DEBTS:
        return Terms(collateral, None, None)
    cap, halt, fee, points = _DEBTS[symbol]
    debt = DebtConfig(
        enabled=True,
        borrow_cap=_cap(symbol, cap),
        borrow_halt_utilization=Decimal(halt),
        interest_fee=Decimal(fee),
    )
    return Terms(collateral, debt, Curve(*(point * UNIT // 10_000 for point in points)))


ID_OF = {symbol: asset.id for symbol, asset in _BY_SYMBOL.items()}
# By asset id, in ascending order, without assets that have no market.
TERMS = {
    ID_OF[symbol]: _terms(symbol)
    for symbol in sorted(_COLLATERALS.keys() | _DEBTS.keys(), key=lambda symbol: ID_OF[symbol])
}
# The assets that can be lent and borrowed.
LENT = tuple(asset_id for asset_id, terms in TERMS.items() if terms.debt)
HALTED = ID_OF[_HALTED]

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
