"""/api/v1/markets: lend, collateral and debt markets, separately and together."""

from collections.abc import Mapping
from operator import attrgetter
from typing import Any, Literal

from analytics_service.errors import EntityNotFound
from analytics_service.http import params
from analytics_service.market.assets import as_stored
from analytics_service.market.markets import GlobalConfig, Market
from analytics_service.market.supply import Supply
from analytics_service.present.markets import GLOBAL_CONFIG, MERGED_MARKET
from analytics_service.present.overview import OLDER_TVL, OVERVIEW, SUPPLY, AllMarkets, Overview
from analytics_service.present.shapes import ByShape, Many
from analytics_service.resources.current import Current
from analytics_service.resources.snapshots import Shared
from analytics_service.state.view import View

_VALUED = (params.WITH_TEXT, params.WITH_VALUE)
MarketKind = Literal["lend", "collateral", "debt"]


class MarketList(Current):
    """Every market of one kind or of several, in the order of asset ids."""

    families = ("markets",)
    has_sums = True
    query = (*_VALUED, params.LIST_SHAPE)

    def __init__(self, shared: Shared, shape: ByShape, summary: str) -> None:
        super().__init__(shared)
        self.shape = shape
        self.summary = summary

    def record(self, view: View, arguments: Mapping[str, Any]) -> AllMarkets:
        """All markets; the shape picks the kinds that it shows."""
        return AllMarkets(list(view.markets.values()), _sums(view, arguments))


class MarketLookup(Current):
    """An asset's market of one kind."""

    families = ("markets",)
    query = (params.ASSET_ID, *_VALUED, params.LOOKUP_SHAPE)

    def __init__(self, shared: Shared, kind: MarketKind, shape: ByShape, summary: str) -> None:
        super().__init__(shared)
        self.shape = shape
        self.summary = summary
        self._of_kind = attrgetter(kind)

    def record(self, view: View, arguments: Mapping[str, Any]) -> Market:
        """The asset's market."""
        market = _market(view, arguments["asset_id"])
        if self._of_kind(market) is None:
            raise EntityNotFound(f"asset_id: {arguments['asset_id'][:100]!r} names an asset without this market.")
        return market


class MergedList(Current):
    """All markets of every asset; a market that an asset lacks is null."""

    families = ("markets",)
    query = _VALUED
    shape = Many(MERGED_MARKET)

    def record(self, view: View, arguments: Mapping[str, Any]) -> list[Market]:
        """The markets of every asset."""
        return list(view.markets.values())


class MergedLookup(Current):
    """All markets of one asset."""

    families = ("markets",)
    query = (params.ASSET_ID, *_VALUED)
    shape = MERGED_MARKET

    def record(self, view: View, arguments: Mapping[str, Any]) -> Market:
        """The asset's markets."""
        return _market(view, arguments["asset_id"])


class Markets(Current):
    """All markets, with their sums and rules."""

    families = ("markets",)
    has_sums = True
    query = (*_VALUED, params.SHAPE)
    shape = OVERVIEW

    def record(self, view: View, arguments: Mapping[str, Any]) -> Overview:
        """All markets; the requested shape shows all or some of their sums."""
        return Overview(list(view.markets.values()), _sums(view, arguments), view.config)


class Config(Current):
    """The rules for all borrowing."""

    families = ("markets",)
    describes_assets = False
    query = (params.WITH_TEXT,)
    shape = GLOBAL_CONFIG

    def record(self, view: View, arguments: Mapping[str, Any]) -> GlobalConfig:
        """The rules of the snapshot."""
        return view.config


class MarketSupply(Current):
    """USD sums over all markets, and the total value locked."""

    families = ("markets",)
    has_sums = True
    query = (params.WITH_TEXT,)
    shape = SUPPLY

    def record(self, view: View, arguments: Mapping[str, Any]) -> Supply:
        """The sums of the snapshot's markets."""
        return view.supply


class Tvl(MarketSupply):
    """The total value locked, and the collateral and deposits that it consists of."""

    shape = OLDER_TVL


def _market(view: View, asset_id: str) -> Market:
    (stored,) = as_stored([asset_id], view.markets)
    if stored not in view.markets:
        is_listed = as_stored([asset_id], view.assets)[0] in view.assets
        what = "an asset without a market" if is_listed else "no asset"
        raise EntityNotFound(f"asset_id: {asset_id[:100]!r} names {what}.")
    return view.markets[stored]


def _sums(view: View, arguments: Mapping[str, Any]) -> Supply | None:
    """The sums, which need prices; none for the older shape, which does not show them."""
    return view.supply if arguments["shape"] == "newer" else None
