"""Lend, collateral and debt markets. Amounts are in denom units."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class LendMarket:
    """Deposits of an asset. `principal` is owed to lenders; receipt tokens are claims on it.

    `interest_paid` to lenders so far is None unless the source states it; then it is estimated from snapshots.
    """

    apr: Decimal
    principal: int
    receipt_supply: int
    interest_paid: int | None = None


@dataclass(frozen=True, slots=True)
class CollateralConfig:
    """Rules for posting an asset as collateral. Ratios are fractions."""

    enabled: bool
    allowable_ltv: Decimal
    liquidation_ltv: Decimal
    collateral_cap: int | None
    min_discount: Decimal
    max_discount: Decimal


@dataclass(frozen=True, slots=True)
class CollateralMarket:
    """Collateral posted in an asset. Accounts hold `shares` of `balance` (rule 5.1)."""

    config: CollateralConfig
    balance: int
    shares: int


@dataclass(frozen=True, slots=True)
class DebtConfig:
    """Rules for borrowing an asset. Ratios are fractions."""

    enabled: bool
    borrow_cap: int | None
    borrow_halt_utilization: Decimal
    interest_fee: Decimal


@dataclass(frozen=True, slots=True)
class DebtMarket:
    """Debt in an asset. Each account owes its share of `balance`, and interest increases the balance."""

    config: DebtConfig
    apr: Decimal
    balance: int
    shares: int
    time_last_distributed_interest: datetime
    utilization_accumulator: Decimal


@dataclass(frozen=True, slots=True)
class Market:
    """An asset's markets in a snapshot; an asset may lack any of the three."""

    asset_id: str
    lend: LendMarket | None
    collateral: CollateralMarket | None
    debt: DebtMarket | None


@dataclass(frozen=True, slots=True)
class GlobalConfig:
    """Rules for all borrowing. Ratios are fractions; the threshold is in USD."""

    time_window_nanos: int
    partial_liquidation_threshold: Decimal
    target_liquidation_health: Decimal
    liquidation_fee: Decimal
    flash_loans_enabled: bool
    flash_loan_fee: Decimal
    staking_health_modifier: Decimal
    stake_collateral_ratio: Decimal
    stake_flash_loan_ratio: Decimal
    dynamic_discount_width: Decimal
    hnative: str
    ptoken: str


NO_CONFIG = GlobalConfig(
    time_window_nanos=0,
    partial_liquidation_threshold=Decimal(0),
    target_liquidation_health=Decimal(1),
    liquidation_fee=Decimal(0),
    flash_loans_enabled=False,
    flash_loan_fee=Decimal(0),
    staking_health_modifier=Decimal(0),
    stake_collateral_ratio=Decimal(0),
    stake_flash_loan_ratio=Decimal(0),
    dynamic_discount_width=Decimal(0),
    hnative="native;none",
    ptoken="native;none",
)
"""A stand-in for protocols without rules for all borrowing: no fees, and no flash loans."""
