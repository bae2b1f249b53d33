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
_AssetItem = TypeVar("_AssetItem", bound=_HasAsset)


@dataclass(frozen=True, slots=True)
class UserView:
    """The data of the address that a request names, with the request's parameters."""

    view: View
    arguments: Mapping[str, Any]

    @property
    def portfolio(self) -> Portfolio:
        """Its position with values, rates and health. Only its own rows are read; addresses share the rest."""
        return Portfolio(self.view.position(self.arguments["address"]), self.view)

    @property
    def unlocks(self) -> Unlocks:
        """Its unlock arrangements at the snapshot's instant."""
        own = self.view.arrangements_of(self.arguments["address"])
        return unlocks_at(own, self.view.ptoken.asset_id, self.view.head("ptoken").instant)

    @property
    def assets(self) -> tuple[AssetPosition, ...]:
        """Its claims and debts in the markets, asset by asset."""
        return by_asset(self.portfolio)

    @property
    def account(self) -> BorrowAccount:
        """The borrow account that the request names."""
        return self._find("index", self.portfolio.accounts, attrgetter("index"), "borrow account")

    @property
    def pool(self) -> StakedPool:
        """The staking pool that the request names; the first of several with the same duration."""
        name = "index" if self.arguments["duration"] is None else "duration"
        return self._find(name, self.portfolio.staking.pools, attrgetter(f"pool.{name}"), "staking pool with a stake")

    def find_asset(self, items: Iterable[_AssetItem], what: str) -> _AssetItem:
        """The item of the asset that the request names, in any case (rule 3.4)."""
        candidates = list(items)
        (asset_id,) = as_stored([self.arguments["asset_id"]], [item.asset_id for item in candidates])
        return self._find("asset_id", candidates, attrgetter("asset_id"), what, asset_id)

    def _find(
        self, parameter: str, items: Iterable[_T], name_of: Callable[[_T], object], what: str, stored: object = None
    ) -> _T:
        """The first item with a parameter's value, or with its `stored` form, as its name. EntityNotFound if there is
        none (rule 6.6)."""
        name = stored or self.arguments[parameter]
        for item in items:
            if name_of(item) == name:
                return item
        raise EntityNotFound(f"{parameter}: {str(name)[:100]!r} names no {what} of this address.")
