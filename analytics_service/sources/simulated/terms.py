"""The rules of the simulated protocol's markets and token. They do not depend on the seed."""

from decimal import Decimal

from analytics_service.market.instants import DAY
from analytics_service.market.markets import CollateralConfig, DebtConfig, GlobalConfig
from analytics_service.market.ptoken import StakingPool
from analytics_service.market.rates import SECONDS_PER_YEAR
from analytics_service.sources.simulated.universe import ASSETS, ID_OF, UNIT

# The launch of the protocol: 2025-01-01, unix seconds.
LAUNCH = 1_735_689_600

# Symbol: allowable and liquidation LTV, cap in tokens, smallest and largest discount.
_COLLATERALS: dict[str, tuple[str, str, int | None, str, str]] = {
    "PTK": ("0.3", "0.4", 475_000_000, "0.05", "0.2"),
    "HEL": ("0.65", "0.75", 26_000_000, "0.02", "0.12"),
    "ORB": ("0.55", "0.65", 52_000_000, "0.03", "0.14"),
    "ETH": ("0.75", "0.82", None, "0.01", "0.1"),
    "BTC": ("0.7", "0.78", None, "0.01", "0.1"),
    "TIDE": ("0.35", "0.5", 110_000_000, "0.05", "0.2"),
    "USDT": ("0.8", "0.86", 900_000_000, "0.005", "0.06"),
    "USDC": ("0.82", "0.88", 900_000_000, "0.005", "0.06"),
    "HUSD": ("0.5", "0.6", 90_000_000, "0.02", "0.12"),
    "stHEL": ("0.6", "0.7", 21_000_000, "0.02", "0.12"),
    "stORB": ("0.45", "0.55", 39_000_000, "0.03", "0.15"),
    "stETH": ("0.72", "0.79", None, "0.01", "0.1"),
}
# Receipt tokens that can be posted, on the terms of their origins.
_COLLATERALS |= {f"r{lent}": _COLLATERALS[lent] for lent in ("HEL", "ORB", "ETH", "BTC", "USDT", "USDC")}
# Symbol: cap in tokens, percent of the highest utilization, percent of the interest fee; then basis points: the borrow
# APR without loans, its increase up to the kink, its increase from there to a utilization of 1, and the kink.
_DEBTS: dict[str, tuple[int | None, int, int, tuple[int, int, int, int]]] = {
    "HEL": (21_000_000, 95, 20, (100, 700, 12_000, 7_500)),
    "ORB": (39_000_000, 95, 20, (150, 900, 15_000, 7_500)),
    "ETH": (None, 96, 15, (0, 350, 8_000, 8_500)),
    "BTC": (None, 96, 15, (0, 300, 8_000, 8_500)),
    "TIDE": (74_000_000, 95, 25, (200, 1_200, 20_000, 7_000)),
    "QRY": (3_200_000_000, 95, 25, (300, 1_500, 20_000, 7_000)),
    "USDT": (900_000_000, 97, 10, (0, 550, 6_000, 9_000)),
    "USDC": (900_000_000, 97, 10, (0, 500, 6_000, 9_000)),
    "HUSD": (80_000_000, 97, 15, (50, 600, 7_500, 8_500)),
}
# Assets that cannot be posted yet.
_CLOSED = ("HUSD", "stORB", "rORB")
UNITS: dict[str, int] = {asset.id: 10**asset.decimals_denom for asset in ASSETS}


def _cap(symbol: str, tokens: int | None) -> int | None:
    return None if tokens is None else tokens * UNITS[ID_OF[symbol]]


# By asset id: rules of collateral, and of lending and borrowing.
COLLATERALS = {
    ID_OF[symbol]: CollateralConfig(
        symbol not in _CLOSED, Decimal(allowable), Decimal(ltv), _cap(symbol, cap), Decimal(least), Decimal(most)
    )
    for symbol, (allowable, ltv, cap, least, most) in _COLLATERALS.items()
}
LENT = {
    ID_OF[symbol]: DebtConfig(True, _cap(symbol, cap), Decimal(halting) / 100, Decimal(fee) / 100)
    for symbol, (cap, halting, fee, _) in _DEBTS.items()
}
CURVES = {ID_OF[symbol]: [points * UNIT // 10_000 for points in curve] for symbol, (*_, curve) in _DEBTS.items()}

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

# Denom units of the protocol token: of a token, the total supply, issued at the launch, and emitted each year since.
TOKEN = 10**6
TOTAL_SUPPLY, ISSUED_AT_LAUNCH, EMISSION_RATE = 1_000_000_000 * TOKEN, 400_000_000 * TOKEN, 40_000_000 * TOKEN
# Days of lock-up, and the weights of a stake for rewards and for health.
_POOLS = ((14, "0.25", "0.5"), (90, "0.5", "0.75"), (180, "0.75", "0.9"), (365, "1", "1"))
POOLS = [
    StakingPool(index, days * DAY, Decimal(reward), Decimal(reward), Decimal(health), Decimal(health), total_bonded=0)
    for index, (days, reward, health) in enumerate(_POOLS)
]


def issued(second: int) -> int:
    """Denom units issued up to a second, never more than the total supply."""
    return min(ISSUED_AT_LAUNCH + EMISSION_RATE * max(second - LAUNCH, 0) // SECONDS_PER_YEAR, TOTAL_SUPPLY)
