"""The position of an address in the markets, asset by asset."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from analytics_service.market.portfolio import Debt, LendPool, Portfolio
from analytics_service.market.rates import MarketRate
from analytics_service.market.shares import Claim


@dataclass(frozen=True, slots=True)
class AccountClaim:
    """What one borrow account has posted or owes in an asset."""

    index: int
    claim: Claim


@dataclass(frozen=True, slots=True)
class AssetPosition:
    """The amounts of an asset that an address has posted, owes and lends. `debt_rate` is None if no account owes it."""

    asset_id: str
    collaterals: tuple[AccountClaim, ...]
    debts: tuple[AccountClaim, ...]
    debt_rate: MarketRate | None
    lend: LendPool | None


def by_asset(portfolio: Portfolio) -> tuple[AssetPosition, ...]:
    """The assets that the address has in the markets, in ascending order of id. Claims are in the order of accounts."""
    collaterals, debts = _by_asset(_collaterals(portfolio)), _by_asset(_debts(portfolio))
    rates = {debt.asset_id: debt.market_rate for _, debt in _debts(portfolio)}
    lends = {lend.asset_id: lend for lend in portfolio.lends}
    return tuple(
        AssetPosition(
            asset_id, collaterals.get(asset_id, ()), debts.get(asset_id, ()), rates.get(asset_id), lends.get(asset_id)
        )
        for asset_id in sorted({*collaterals, *debts, *lends})
    )


def _collaterals(portfolio: Portfolio) -> Iterator[tuple[int, Claim]]:
    return ((account.index, claim) for account in portfolio.accounts for claim in account.totals.collaterals)


def _debts(portfolio: Portfolio) -> Iterator[tuple[int, Debt]]:
    return ((account.index, debt) for account in portfolio.accounts for debt in account.totals.debts)


def _by_asset(claims: Iterator[tuple[int, Claim | Debt]]) -> dict[str, tuple[AccountClaim, ...]]:
    by_id: dict[str, list[AccountClaim]] = defaultdict(list)
    for index, claim in claims:
        by_id[claim.asset_id].append(AccountClaim(index, claim))
    return {asset_id: tuple(claims) for asset_id, claims in by_id.items()}
