"""/api/v1/users/{address}: the position of an address, complete and in parts."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from analytics_service.errors import EntityNotFound
from analytics_service.http import params
from analytics_service.http.declared_params import Param
from analytics_service.market.assets import stored_id
from analytics_service.market.lazy import cached_attribute
from analytics_service.market.portfolio import Portfolio, Unlocks, unlocks_at
from analytics_service.present.positions import (
    ACCOUNT_COLLATERAL,
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
from analytics_service.present.ptoken import USER_UNLOCKS
from analytics_service.present.shapes import Many, Node
from analytics_service.resources.current import VALUED, StatePath
from analytics_service.resources.snapshots import Arguments
from analytics_service.state.view import View

# The datasets behind claims, staking and unlocks. Net rates also need prices, which weight them; health needs all. If
# datasets have no snapshot, the error names the first.
_HOLDINGS = ("positions", "markets")
_RATED = (*_HOLDINGS, "prices")
_STAKING = ("positions", "ptoken")
_ALL = (*_RATED, "ptoken")
_UNLOCKS = ("ptoken",)
# A wallet may hold receipt tokens, whose prices depend on markets.
_WALLET, _WALLET_VALUE = ("positions",), ("prices", "markets")
_PERCENT = (*VALUED, params.WITH_PERCENT)


@dataclass(frozen=True)
class UserView:
    """The data of the requested address."""

    view: View
    arguments: Arguments

    @cached_attribute
    def portfolio(self) -> Portfolio:
        """Its position with values, rates and health. Markets and prices are read once for all addresses."""
        return Portfolio(self.view.position(self.arguments["address"]), self.view)

    @cached_attribute
    def unlocks(self) -> Unlocks:
        """Its unlock arrangements at the snapshot's instant."""
        own = self.view.arrangements_of(self.arguments["address"])
        return unlocks_at(own, self.view.ptoken.asset_id, self.view.unlocks_as_of)

    @property
    def account(self) -> Any:
        return self._find("index", self.portfolio.accounts, attrgetter("index"), "borrow account")

    @property
    def pool(self) -> Any:
        """The requested staking pool; the first of several with the same duration."""
        name = "index" if self.arguments["duration"] is None else "duration"
        return self._find(name, self.portfolio.staking.pools, attrgetter(f"pool.{name}"), "staking pool with a stake")

    def find_asset(self, items: Iterable[Any], what: str) -> Any:
        """The item of the requested asset, in any case (rule 3.4, canonical ids)."""
        candidates = list(items)
        (asset_id,) = stored_id([self.arguments["asset_id"]], [item.asset_id for item in candidates])
        return self._find("asset_id", candidates, attrgetter("asset_id"), what, asset_id)

    def _find(
        self, parameter: str, items: Iterable[Any], name_of: Callable[[Any], object], what: str, stored: object = None
    ) -> Any:
        """The first item whose name is the parameter's value, or its `stored` form. Raises EntityNotFound if there is
        none (rule 6.6, lookups)."""
        name = stored or self.arguments[parameter]
        for item in items:
            if name_of(item) == name:
                return item
        raise EntityNotFound(f"{parameter}: {str(name)[:100]!r} names no {what} of this address.")


def _user(
    path: str,
    summary: str,
    shape: Node,
    record: Callable[[UserView], Any],
    datasets: tuple[str, ...] = _HOLDINGS,
    *,
    valued_by: tuple[str, ...] = ("prices",),
    named_by: tuple[Param, ...] = (),
    variants: tuple[Param, ...] = VALUED,
    rows: str | None = None,
) -> StatePath:
    """A path below an address, with a part of its position. `named_by` are the parameters, in the path or the query,
    that select one of several items."""
    in_path = tuple(param for param in named_by if f"{{{param.name}}}" in path)
    return StatePath(
        f"users/{{address}}/{path}",
        summary,
        shape,
        lambda view, arguments: record(UserView(view, arguments)),
        datasets,
        (*(param for param in named_by if param not in in_path), *variants),
        (params.ADDRESS, *in_path),
        valued_by,
        rows=rows,
    )


_COLLATERALS, _DEBTS = Many(COLLATERAL_ITEM), Many(DEBT_ITEM)
_POSTED, _OWED = attrgetter("account.totals.collaterals"), attrgetter("account.totals.debts")
_STAKED, _POOLS = attrgetter("portfolio.staking"), Many(STAKED_POOL, attrgetter("pools"))
_ACCOUNT = (params.ACCOUNT_INDEX,)
_POOL = (params.POOL_INDEX, params.POOL_DURATION)
PATHS = (
    _user(
        "user",
        "Everything that an address has; empty for an address that has nothing.",
        USER_POSITION,
        lambda user: user,
        _ALL,
        variants=_PERCENT,
    ),
    _user("markets", "What an address borrows and lends.", USER_MARKETS, lambda user: user.portfolio, _ALL),
    _user(
        "markets/merged",
        "What an address has in the markets, asset by asset.",
        Many(MERGED_ASSET),
        lambda user: user.portfolio.by_asset,
    ),
    _user(
        "markets/merged/lookup",
        "What an address has in all markets of one asset.",
        MERGED_ASSET,
        lambda user: user.find_asset(user.portfolio.by_asset, "lent, posted or owed asset"),
        named_by=params.ASSET,
    ),
    _user("markets/lend", "What an address lends.", USER_LEND, lambda user: user.portfolio, _RATED, rows="asset_pools"),
    _user(
        "markets/lend/lookup",
        "One lent asset of an address.",
        ASSET_POOL,
        lambda user: user.find_asset(user.portfolio.lends, "lent asset"),
        named_by=params.ASSET,
    ),
    _user(
        "markets/borrow", "What an address borrows.", USER_BORROW, lambda user: user.portfolio, _ALL, rows="accounts"
    ),
    _user(
        "markets/borrow/lookup/collateral",
        "An address's collateral in one asset, account by account.",
        ASSET_COLLATERAL,
        lambda user: user.find_asset((asset for asset in user.portfolio.by_asset if asset.collaterals), "collateral"),
        named_by=params.ASSET,
        rows="accounts",
    ),
    _user(
        "markets/borrow/lookup/debt",
        "An address's debt in one asset, account by account.",
        ASSET_DEBT,
        lambda user: user.find_asset((asset for asset in user.portfolio.by_asset if asset.debts), "debt"),
        named_by=params.ASSET,
        rows="accounts",
    ),
    *(
        _user(f"markets/borrow/sum/{side}", f"An address's {side}, summed over its accounts.", shape, record)
        for side, shape, record in (
            ("collaterals", _COLLATERALS, attrgetter("portfolio.totals.collaterals")),
            ("debts", _DEBTS, attrgetter("portfolio.totals.debts")),
        )
    ),
    *(
        _user(f"markets/borrow/accounts/{{index}}{part}", summary, shape, record, datasets, named_by=_ACCOUNT)
        for part, summary, shape, record, datasets in (
            ("", "One borrow account of an address.", BORROW_ACCOUNT, attrgetter("account"), _ALL),
            ("/collaterals", "The collaterals of one borrow account.", Many(ACCOUNT_COLLATERAL), _POSTED, _HOLDINGS),
            ("/debts", "The debts of one borrow account.", _DEBTS, _OWED, _HOLDINGS),
            ("/health", "Health of one borrow account.", ACCOUNT_HEALTH, attrgetter("account.health"), _ALL),
        )
    ),
    _user(
        "ptoken/unlocks",
        "The unlock arrangements of an address.",
        USER_UNLOCKS,
        lambda user: user.unlocks,
        _UNLOCKS,
        variants=_PERCENT,
        rows="arrangements",
    ),
    *(
        _user(f"ptoken/staking{part}", summary, shape, record, _STAKING, named_by=named_by, rows=rows)
        for part, summary, shape, record, named_by, rows in (
            ("", "An address's staking of the protocol token.", USER_STAKING, _STAKED, (), "pools"),
            ("/pools", "The staking pools in which an address has stakes.", _POOLS, _STAKED, (), None),
            (
                "/pools/lookup",
                "An address's stakes in one staking pool.",
                STAKED_POOL,
                attrgetter("pool"),
                _POOL,
                "contents",
            ),
            ("/unstaking", "What an address is unstaking.", UNBONDINGS, _STAKED, (), "contents"),
        )
    ),
    _user(
        "wallet/balances",
        "The wallet of an address.",
        USER_WALLETS,
        lambda user: user.portfolio,
        _WALLET,
        valued_by=_WALLET_VALUE,
        rows="balances",
    ),
    _user(
        "wallet/balance",
        "A wallet's balance of one asset.",
        WALLET_BALANCE,
        lambda user: user.find_asset(user.portfolio.position.wallet, "balance"),
        _WALLET,
        valued_by=_WALLET_VALUE,
        named_by=params.ASSET,
    ),
)
