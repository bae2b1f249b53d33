"""What one address holds, owes, lends and stakes. Amounts are whole denom units."""

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Holding:
    """Shares of a collateral or debt market that a borrow account has."""

    asset_id: str
    shares: int


@dataclass(frozen=True, slots=True)
class Account:
    """A borrow account: a set of collaterals and debts with a health of its own."""

    index: int
    collaterals: tuple[Holding, ...] = ()
    debts: tuple[Holding, ...] = ()


@dataclass(frozen=True, slots=True)
class LendPosition:
    """Receipt tokens of a lent asset: held in the wallet, and posted as collateral."""

    asset_id: str
    held: int
    collateralized: int


@dataclass(frozen=True, slots=True)
class Balance:
    """A wallet's amount of an asset, which the service may or may not know."""

    asset_id: str
    amount: int


@dataclass(frozen=True, slots=True)
class Stake:
    """Protocol token staked to a pool on behalf of a borrow account."""

    pool: int
    account_index: int
    amount: int
    cascade: bool
    transition_at: datetime | None
    last_stake_acc: Decimal


@dataclass(frozen=True, slots=True)
class Unbonding:
    """Protocol token on its way out of staking."""

    amount: int
    unlock_at: datetime


@dataclass(frozen=True, slots=True)
class Position:
    """Everything of one address, as of a snapshot. `unclaimed` are rewards not yet distributed to the address."""

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
    """A swap contract: for each source denom the denoms it can be swapped to."""

    address: str
    routes: dict[str, tuple[str, ...]] = field(default_factory=dict)
