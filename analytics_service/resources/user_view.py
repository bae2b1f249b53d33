"""What a view shows of one address."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, TypeVar

from analytics_service.errors import EntityNotFound
from analytics_service.market.by_asset import AssetPosition, by_asset
from analytics_service.market.portfolio import BorrowAccount, Portfolio, StakedPool, Unlocks, unlocks_at
from analytics_service.state.view import View

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class UserView:
    """What a view shows of the address that a request names, and the request's parameters."""

    view: View
    given: Mapping[str, Any]

    @property
    def portfolio(self) -> Portfolio:
        """What its position comes to. Only its own rows are read; the rest is shared by all addresses."""
        return Portfolio(self.view.position(self.given["address"]), self.view)

    @property
    def unlocks(self) -> Unlocks:
        """Its unlock arrangements at the snapshot's instant."""
        own = self.view.arrangements_of(self.given["address"])
        return unlocks_at(own, self.view.ptoken.asset_id, self.view.head("ptoken").instant)

    @property
    def assets(self) -> tuple[AssetPosition, ...]:
        """What it has in the markets, asset by asset."""
        return by_asset(self.portfolio)

    @property
    def account(self) -> BorrowAccount:
        """The borrow account that the request names."""
        return self._named("index", self.portfolio.accounts, attrgetter("index"), "borrow account")

    @property
    def pool(self) -> StakedPool:
        """The staking pool that the request names; the first of several with the same duration."""
        name = "index" if self.given["duration"] is None else "duration"
        return self._named(name, self.portfolio.staking.pools, attrgetter(f"pool.{name}"), "staking pool with a stake")

    def of_asset(self, items: Iterable[_T], what: str) -> _T:
        """The item of the asset that the request names."""
        return self._named("asset_id", items, attrgetter("asset_id"), what)

    def _named(self, parameter: str, items: Iterable[_T], name_of: Callable[[_T], object], what: str) -> _T:
        """The first item with the name that a parameter gives. EntityNotFound if there is none (rule 6.6)."""
        wanted = self.given[parameter]
        for item in items:
            if name_of(item) == wanted:
                return item
        raise EntityNotFound(f"{parameter}: {str(wanted)[:100]!r} names no {what} of this address.")
