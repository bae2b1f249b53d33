"""/api/v1/users/{address}: the position of an address, complete and in parts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from analytics_service.http import params
from analytics_service.http.param import Param
from analytics_service.market.portfolio import User
from analytics_service.present.positions import (
    ACCOUNT_HEALTH,
    ASSET_COLLATERAL,
    ASSET_DEBT,
    ASSET_POOL,
    BORROW_ACCOUNT,
    COLLATERAL_ITEM,
    DEBT_ITEM,
    MERGED_ASSET,
    STAKED_POOL,
    UNBONDINGS,
    USER_BORROW,
    USER_LEND,
    USER_MARKETS,
    USER_POSITION,
    USER_STAKING,
    USER_WALLETS,
    WALLET_BALANCE,
)
from analytics_service.present.shapes import Many, Node
from analytics_service.present.unlocks import USER_UNLOCKS
from analytics_service.resources.current import Current
from analytics_service.resources.snapshots import Shared
from analytics_service.resources.user_view import UserView
from analytics_service.state.view import View

# The families that claims, staking and unlocks are made from. Net rates also need prices, because they are weighted by
# USD values; health needs all of these.
_HOLDINGS = ("markets", "positions")
_RATED = ("prices", *_HOLDINGS)
_STAKING = ("ptoken", "positions")
_ALL = ("prices", "markets", "ptoken", "positions")
_UNLOCKS = ("ptoken",)
# A wallet may hold receipt tokens, whose prices markets determine.
_WALLET, _WALLET_VALUE = ("positions",), ("prices", "markets")
_VALUED = (params.WITH_TEXT, params.WITH_VALUE)
_PERCENT = (*_VALUED, params.WITH_PERCENT)


@dataclass(frozen=True, slots=True)
class UserPath:
    """A path below an address: the record that it shows, its shape, and the families that the record and USD values are
    made from.

    `named_by` are the parameters that select one of several items, in the path or in the query. Lists have a count.
    """

    path: str
    summary: str
    shape: Node
    record: Callable[[UserView], Any]
    families: tuple[str, ...] = _HOLDINGS
    valued_by: tuple[str, ...] = ("prices",)
    named_by: tuple[Param, ...] = ()
    variants: tuple[Param, ...] = _VALUED


class UserPart(Current):
    """A part of the position of an address; empty if the address has nothing there."""

    def __init__(self, shared: Shared, part: UserPath) -> None:
        super().__init__(shared)
        in_path = [param for param in part.named_by if f"{{{param.name}}}" in part.path]
        self.path = (params.ADDRESS, *in_path)
        self.query = (*(param for param in part.named_by if param not in in_path), *part.variants)
        self.families, self.valued_by = part.families, part.valued_by
        self.shape, self.summary = part.shape, part.summary
        self._record = part.record

    def record(self, view: View, arguments: Mapping[str, Any]) -> Any:
        """The part. EntityNotFound if a parameter names nothing that the address has."""
        return self._record(UserView(view, arguments))


_ASSET = (params.ASSET_ID,)
_ACCOUNT = (params.ACCOUNT_INDEX,)
_POOL = (params.POOL_INDEX, params.POOL_DURATION)
PARTS = (
    UserPath(
        "user",
        "Everything that an address has; it is empty if the address has nothing.",
        USER_POSITION,
        lambda user: User(user.portfolio, user.unlocks),
        _ALL,
        variants=_PERCENT,
    ),
    UserPath("markets", "What an address borrows and lends.", USER_MARKETS, lambda user: user.portfolio, _ALL),
    UserPath(
        "markets/merged",
        "What an address has in the markets, asset by asset.",
        Many(MERGED_ASSET),
        lambda user: user.assets,
    ),
    UserPath(
        "markets/merged/lookup",
        "What an address has in all markets of one asset.",
        MERGED_ASSET,
        lambda user: user.find_asset(user.assets, "lent, posted or owed asset"),
        named_by=_ASSET,
    ),
    UserPath("markets/lend", "What an address lends.", USER_LEND, lambda user: user.portfolio, _RATED),
    UserPath(
        "markets/lend/lookup",
        "One lent asset of an address.",
        ASSET_POOL,
        lambda user: user.find_asset(user.portfolio.lends, "lent asset"),
        named_by=_ASSET,
    ),
    UserPath("markets/borrow", "What an address borrows.", USER_BORROW, lambda user: user.portfolio, _ALL),
    UserPath(
        "markets/borrow/lookup/collateral",
        "An address's collateral in one asset, account by account.",
        ASSET_COLLATERAL,
        lambda user: user.find_asset((asset for asset in user.assets if asset.collaterals), "collateral"),
        named_by=_ASSET,
    ),
    UserPath(
        "markets/borrow/lookup/debt",
        "An address's debt in one asset, account by account.",
        ASSET_DEBT,
        lambda user: user.find_asset((asset for asset in user.assets if asset.debts), "debt"),
        named_by=_ASSET,
    ),
    UserPath(
        "markets/borrow/sum/collaterals",
        "An address's collaterals, summed over its accounts.",
        Many(COLLATERAL_ITEM),
        lambda user: user.portfolio.totals.collaterals,
    ),
    UserPath(
        "markets/borrow/sum/debts",
        "An address's debts, summed over its accounts.",
        Many(DEBT_ITEM),
        lambda user: user.portfolio.totals.debts,
    ),
    UserPath(
        "markets/borrow/accounts/{index}",
        "One borrow account of an address.",
        BORROW_ACCOUNT,
        lambda user: user.account,
        _ALL,
        named_by=_ACCOUNT,
    ),
    UserPath(
        "markets/borrow/accounts/{index}/collaterals",
        "The collaterals of one borrow account.",
        Many(COLLATERAL_ITEM),
        lambda user: user.account.totals.collaterals,
        named_by=_ACCOUNT,
    ),
    UserPath(
        "markets/borrow/accounts/{index}/debts",
        "The debts of one borrow account.",
        Many(DEBT_ITEM),
        lambda user: user.account.totals.debts,
        named_by=_ACCOUNT,
    ),
    UserPath(
        "markets/borrow/accounts/{index}/health",
        "How safe one borrow account is.",
        ACCOUNT_HEALTH,
        lambda user: user.account.health,
        _ALL,
        named_by=_ACCOUNT,
    ),
    UserPath(
        "ptoken/unlocks",
        "The unlock arrangements of an address.",
        USER_UNLOCKS,
        lambda user: user.unlocks,
        _UNLOCKS,
        variants=_PERCENT,
    ),
    UserPath(
        "ptoken/staking",
        "An address's staking of the protocol token.",
        USER_STAKING,
        lambda user: user.portfolio.staking,
        _STAKING,
    ),
    UserPath(
        "ptoken/staking/pools",
        "The staking pools in which an address has stakes.",
        Many(STAKED_POOL),
        lambda user: user.portfolio.staking.pools,
        _STAKING,
    ),
    UserPath(
        "ptoken/staking/pools/lookup",
        "An address's stakes in one staking pool.",
        STAKED_POOL,
        lambda user: user.pool,
        _STAKING,
        named_by=_POOL,
    ),
    UserPath(
        "ptoken/staking/unstaking",
        "What an address is unstaking.",
        UNBONDINGS,
        lambda user: user.portfolio.staking,
        _STAKING,
    ),
    UserPath(
        "wallet/balances",
        "The wallet of an address.",
        USER_WALLETS,
        lambda user: user.portfolio,
        _WALLET,
        _WALLET_VALUE,
    ),
    UserPath(
        "wallet/balance",
        "A wallet's balance of one asset.",
        WALLET_BALANCE,
        lambda user: user.find_asset(user.portfolio.wallet, "balance"),
        _WALLET,
        _WALLET_VALUE,
        named_by=_ASSET,
    ),
)
