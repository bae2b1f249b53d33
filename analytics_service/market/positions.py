"""Positions: the assets that an address holds, owes, lends and stakes. Amounts are in denom units."""

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Annotated

from analytics_service.market.kinds import Address, Amount, AssetId, Count, Flag, Index, Number, Ratio, Time


@dataclass(frozen=True, slots=True)
class Holding:
    """A borrow account's shares of a collateral or debt market. Collateral may have its own LTVs, as in e-mode."""

    asset_id: Annotated[str, AssetId("Asset id")]
    shares: Annotated[int, Amount("Shares of the balance of the market")]
    allowable_ltv: Annotated[
        Decimal | None,
        Ratio("Loan-to-value ratio of this collateral for withdrawals and borrows, a fraction. Null: as in the market"),
    ] = None
    liquidation_ltv: Annotated[
        Decimal | None,
        Ratio("Loan-to-value ratio of this collateral for liquidations, a fraction. Null: as in the market"),
    ] = None


@dataclass(frozen=True, slots=True)
class Account:
    """A borrow account: collaterals and debts with a common health."""

    index: Annotated[int, Index("Index of the borrow account")]
    collaterals: tuple[Holding, ...] = ()
    debts: tuple[Holding, ...] = ()


@dataclass(frozen=True, slots=True)
class LendPosition:
    """Receipt tokens of a lent asset."""

    asset_id: Annotated[str, AssetId("Asset id of the lent asset")]
    held: Annotated[int, Amount("Receipt tokens in the wallet")]
    collateralized: Annotated[int, Amount("Receipt tokens posted as collateral")]


@dataclass(frozen=True, slots=True)
class Balance:
    """A wallet's amount of an asset. The service may not know the asset."""

    asset_id: Annotated[str, AssetId("Asset id")]
    amount: Annotated[int, Amount("Amount in denom units of the asset")]


@dataclass(frozen=True, slots=True)
class Stake:
    """Protocol token staked in a pool on behalf of a borrow account."""

    pool: Annotated[int, Index("Index of the staking pool")]
    account_index: Annotated[int, Index("Index of the borrow account")]
    amount: Annotated[int, Amount("Denom units staked")]
    cascade: Annotated[bool, Flag("Whether the stake moves to the next shorter pool by itself")]
    transition_at: Annotated[datetime | None, Time("Instant at which the stake moves")]
    last_stake_acc: Annotated[Decimal, Number("Value of stake_acc up to which the stake has been rewarded")]


@dataclass(frozen=True, slots=True)
class Unbonding:
    """Protocol token being unstaked."""

    amount: Annotated[int, Amount("Denom units being unstaked")]
    unlock_at: Annotated[datetime, Time("Instant at which they can be claimed")]


@dataclass(frozen=True, slots=True)
class Position:
    """The position of an address in a snapshot."""

    address: Annotated[str, Address("Address of the user")]
    accounts: tuple[Account, ...] = ()
    lends: tuple[LendPosition, ...] = ()
    wallet: tuple[Balance, ...] = ()
    stakes: tuple[Stake, ...] = ()
    unbondings: tuple[Unbonding, ...] = ()
    unclaimed: Annotated[int, Amount("Rewards in denom units that are not distributed to the address yet")] = 0
    claimable_rewards: Annotated[int, Amount("Rewards in denom units that the address can claim")] = 0
    claimable_unbonding: Annotated[int, Amount("Denom units unstaked that the address can claim")] = 0


@dataclass(frozen=True, slots=True)
class SwapContract:
    """A swap contract: `routes` lists, by source denom, the denoms it can be swapped to."""

    address: Annotated[str, Address("Address of the swap contract", "contract")]
    routes: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RiskTotals:
    """Values of the histories of risk, over all borrow accounts; None if unknown."""

    debt_at_risk: Decimal | None = None
    accounts_at_risk: Decimal | None = None
    liquidatable_debt: Decimal | None = None
    bad_debt: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Activity:
    """Numbers of users of the markets."""

    borrower_active: Annotated[int, Count("Addresses with debt")]
    borrower_account_active: Annotated[int, Count("Borrow accounts with debt")]
    lender_active: Annotated[int, Count("Addresses that lend")]
