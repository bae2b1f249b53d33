"""Lend, collateral and debt markets. Amounts are in denom units."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Annotated

from analytics_service.market.kinds import Amount, AssetId, Count, Flag, Number, Rate, Ratio, Time, Usd

_PAUSED = Flag("Whether the market is paused: nobody can act in it. Null if the source does not say")
_FROZEN = Flag("Whether the market is frozen: funds can only be withdrawn or repaid. Null if the source does not say")


@dataclass(frozen=True, slots=True)
class LendConfig:
    """Rules for lending an asset, as far as the source states them. `paused` and `frozen`, here and below, are for
    display only."""

    supply_cap: Annotated[
        int | None,
        Amount("Largest total that may be lent, in denom units. Null if there is no limit, or the source does not say"),
    ] = None
    paused: Annotated[bool | None, _PAUSED] = None
    frozen: Annotated[bool | None, _FROZEN] = None


@dataclass(frozen=True, slots=True)
class LendMarket:
    """Deposits of an asset. Receipt tokens are claims on the principal."""

    apr: Annotated[Decimal, Rate("Yearly rate that lenders earn, without compounding, as a fraction")]
    principal: Annotated[int, Amount("Amount owed to lenders, in denom units of the asset")]
    receipt_supply: Annotated[
        int,
        Amount(
            "Receipt tokens outstanding, in denom units; principal / receipt_supply, both in standard units, is the "
            "redemption ratio"
        ),
    ]
    interest_paid: Annotated[
        int | None,
        Amount("Interest paid to lenders so far, as the source reports it, in denom units. Null if it is estimated"),
    ] = None
    config: LendConfig = LendConfig()


@dataclass(frozen=True, slots=True)
class CollateralConfig:
    """Rules for posting an asset as collateral."""

    enabled: Annotated[bool, Flag("Whether the asset counts as collateral")]
    allowable_ltv: Annotated[
        Decimal, Ratio("Loan-to-value ratio up to which withdrawals and borrows are allowed, a fraction")
    ]
    liquidation_ltv: Annotated[Decimal, Ratio("Loan-to-value ratio from which collateral is liquidated, a fraction")]
    collateral_cap: Annotated[
        int | None, Amount("Largest total that may be posted, in denom units. Null if there is no limit")
    ]
    min_discount: Annotated[Decimal, Ratio("Smallest discount of a liquidation, a fraction")]
    max_discount: Annotated[Decimal, Ratio("Largest discount of a liquidation, a fraction")]
    paused: Annotated[bool | None, _PAUSED] = None
    frozen: Annotated[bool | None, _FROZEN] = None


@dataclass(frozen=True, slots=True)
class CollateralMarket:
    """Collateral posted in an asset. Accounts hold `shares` of `balance` (rule 5.1, older names)."""

    config: CollateralConfig
    balance: Annotated[int, Amount("Collateral posted, in denom units")]
    shares: Annotated[int, Amount("Shares of the balance that accounts hold, in denom units")]


@dataclass(frozen=True, slots=True)
class DebtConfig:
    """Rules for borrowing an asset."""

    enabled: Annotated[bool, Flag("Whether the asset can be borrowed")]
    borrow_cap: Annotated[
        int | None, Amount("Largest total that may be borrowed, in denom units. Null if there is no limit")
    ]
    borrow_halt_utilization: Annotated[
        Decimal, Ratio("Highest utilization at which new loans can be opened, a fraction")
    ]
    interest_fee: Annotated[Decimal, Ratio("Part of the interest that the protocol keeps, a fraction")]
    paused: Annotated[bool | None, _PAUSED] = None
    frozen: Annotated[bool | None, _FROZEN] = None


@dataclass(frozen=True, slots=True)
class DebtMarket:
    """Debt in an asset. Each account owes its share of `balance`, and interest increases the balance."""

    config: DebtConfig
    apr: Annotated[Decimal, Rate("Yearly rate that borrowers owe, without compounding, as a fraction")]
    balance: Annotated[int, Amount("Debt including interest, in denom units")]
    shares: Annotated[
        int, Amount("Shares of the debt that accounts owe; each is a debt of balance / shares denom units")
    ]
    time_last_distributed_interest: Annotated[datetime, Time("Instant at which interest was last added to the balance")]
    utilization_accumulator: Annotated[Decimal, Number("Tracker of the utilization of the asset over time")]


@dataclass(frozen=True, slots=True)
class Market:
    """An asset's markets in a snapshot; an asset may lack any of the three."""

    asset_id: Annotated[str, AssetId("Asset id")]
    lend: LendMarket | None
    collateral: CollateralMarket | None
    debt: DebtMarket | None


# The fields of an asset's markets.
SIDES = frozenset({"lend", "collateral", "debt"})


@dataclass(frozen=True, slots=True)
class GlobalConfig:
    """The protocol's configuration."""

    time_window_nanos: Annotated[int, Count("Nanoseconds for which an oracle price is valid")]
    partial_liquidation_threshold: Annotated[Decimal, Usd("Account value in USD below which a liquidation is complete")]
    target_liquidation_health: Annotated[Decimal, Number("Health that a liquidation restores, at least 1")]
    liquidation_fee: Annotated[Decimal, Ratio("Part of a liquidation that the protocol keeps, a fraction")]
    flash_loans_enabled: Annotated[bool, Flag("Whether flash loans are given")]
    flash_loan_fee: Annotated[Decimal, Ratio("Fee of a flash loan, a fraction of its amount")]
    staking_health_modifier: Annotated[Decimal, Ratio("Largest increase of health from staking, a fraction")]
    stake_collateral_ratio: Annotated[
        Decimal,
        Ratio(
            "Ratio of weighted staked protocol tokens to collateral value at which that increase is reached, a fraction"
        ),
    ]
    stake_flash_loan_ratio: Annotated[
        Decimal, Ratio("Required ratio of weighted staked protocol tokens to flash loan value, a fraction")
    ]
    dynamic_discount_width: Annotated[
        Decimal, Ratio("Distance of health below 1 at which the discount is largest, a fraction")
    ]
    hnative: Annotated[str, AssetId("Asset id of an asset that the protocol designates")]
    ptoken: Annotated[str, AssetId("Asset id of the protocol token")]


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
"""A stand-in for protocols without such a configuration: no fees, and no flash loans."""
