"""The parts of a view that concern one address."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Protocol, TypeVar

from analytics_service.errors import EntityNotFound
from analytics_service.market.assets import as_stored
from analytics_service.market.by_asset import AssetPosition, by_asset
from analytics_service.market.portfolio import BorrowAccount, Portfolio, StakedPool, Unlocks, unlocks_at
from analytics_service.state.view import View


class _HasAsset(Protocol):
    @property
    def asset_id(self) -> str: ...


_T = TypeVar("_T")
_OfAsset = TypeVar("_OfAsset", bound=_HasAsset)


@dataclass(frozen=True, slots=True)
class UserView:
    """The data of the address that a request names, with the request's parameters."""

    view: View
    given: Mapping[str, Any]

    @property
    def portfolio(self) -> Portfolio:
        """Its position with values, rates and health. Only its own rows are read; the rest is shared by addresses."""
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

    def of_asset(self, items: Iterable[_OfAsset], what: str) -> _OfAsset:
        """The item of the asset that the request names, in any case (rule 3.4)."""
        found = list(items)
        (stored,) = as_stored([self.given["asset_id"]], [one.asset_id for one in found])
        return self._named("asset_id", found, attrgetter("asset_id"), what, stored)

    def _named(
        self, parameter: str, items: Iterable[_T], name_of: Callable[[_T], object], what: str, stored: object = None
    ) -> _T:
        """The first item with the name that a parameter gives. EntityNotFound if there is none (rule 6.6)."""
        wanted = stored or self.given[parameter]
        for item in items:
            if name_of(item) == wanted:
                return item
        raise EntityNotFound(f"{parameter}: {str(wanted)[:100]!r} names no {what} of this address.")
