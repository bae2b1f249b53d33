"""What a lend market, a collateral market and a debt market are. Amounts are whole denom units."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class LendMarket:
    """Deposits of one asset. `principal` is owed to lenders, in denom units; the receipt tokens are claims on it."""

    apr: Decimal
    principal: int
    receipt_supply: int


@dataclass(frozen=True, slots=True)
class CollateralConfig:
    """Rules of posting one asset as collateral; ratios are fractions, the cap is in denom units."""

    enabled: bool
    allowable_ltv: Decimal
    liquidation_ltv: Decimal
    collateral_cap: int | None
    min_discount: Decimal
    max_discount: Decimal


@dataclass(frozen=True, slots=True)
class CollateralMarket:
    """Collateral posted in one asset. `balance` is all of it; `shares` of it are what accounts hold (decisions 5)."""

    config: CollateralConfig
    balance: int
    shares: int


@dataclass(frozen=True, slots=True)
class DebtConfig:
    """Rules of borrowing one asset; ratios are fractions, the cap is in denom units."""

    enabled: bool
    borrow_cap: int | None
    borrow_halt_utilization: Decimal
    interest_fee: Decimal


@dataclass(frozen=True, slots=True)
class DebtMarket:
    """Debt in one asset. Accounts owe `balance` in proportion to their part of `shares`; interest grows the balance."""

    config: DebtConfig
    apr: Decimal
    balance: int
    shares: int
    time_last_distributed_interest: datetime
    utilization_accumulator: Decimal


@dataclass(frozen=True, slots=True)
class Market:
    """One asset's markets, as of a snapshot; an asset may lack any of the three."""

    asset_id: str
    lend: LendMarket | None
    collateral: CollateralMarket | None
    debt: DebtMarket | None


@dataclass(frozen=True, slots=True)
class GlobalConfig:
    """Rules of all borrowing (interface section 2, GlobalMarketConfig). Ratios are fractions, the threshold is USD."""

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
