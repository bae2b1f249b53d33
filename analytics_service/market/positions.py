"""Positions: the assets that an address holds, owes, lends and stakes. Amounts are in denom units."""

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Annotated

from analytics_service.market.kinds import Address


@dataclass(frozen=True, slots=True)
class Holding:
    """A borrow account's shares of a collateral or debt market."""

    asset_id: str
    shares: int


@dataclass(frozen=True, slots=True)
class Account:
    """A borrow account: collaterals and debts with a common health."""

    index: int
    collaterals: tuple[Holding, ...] = ()
    debts: tuple[Holding, ...] = ()


@dataclass(frozen=True, slots=True)
class LendPosition:
    """Receipt tokens of a lent asset: `held` in the wallet and `collateralized`, posted as collateral."""

    asset_id: str
    held: int
    collateralized: int


@dataclass(frozen=True, slots=True)
class Balance:
    """A wallet's amount of an asset. The service may not know the asset."""

    asset_id: str
    amount: int


@dataclass(frozen=True, slots=True)
class Stake:
    """Protocol token staked in a pool on behalf of a borrow account."""

    pool: int
    account_index: int
    amount: int
    cascade: bool
    transition_at: datetime | None
    last_stake_acc: Decimal


@dataclass(frozen=True, slots=True)
class Unbonding:
    """Protocol token being unstaked; it is free at `unlock_at`."""

    amount: int
    unlock_at: datetime


@dataclass(frozen=True, slots=True)
class Position:
    """The position of an address in a snapshot. `unclaimed` rewards are not distributed to the address yet."""

    address: str
    accounts: tuple[Account, ...] = ()
    lends: tuple[LendPosition, ...] = ()
    wallet: tuple[Balance, ...] = ()
    stakes: tuple[Stake, ...] = ()
    unbondings: tuple[Unbonding, ...] = ()
    unclaimed: int = 0
    claimable_rewards: int = 0
    claimable_unbonding: int = 0


@dataclass(frozen=True, slots=True)
class SwapContract:
    """A swap contract: `routes` lists, by source denom, the denoms it can be swapped to."""

    address: Annotated[str, Address("Address of the swap contract", "contract")]
    routes: dict[str, tuple[str, ...]] = field(default_factory=dict)
