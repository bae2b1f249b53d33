"""/api/v1/markets: lend, collateral and debt markets, separately and together."""

from functools import partial

from analytics_service.errors import EntityNotFound
from analytics_service.http import params
from analytics_service.market.assets import stored_id
from analytics_service.market.markets import Market
from analytics_service.present.markets import COLLATERAL_LOOKUP, DEBT_LOOKUP, GLOBAL_CONFIG, LEND_LOOKUP, MERGED_MARKET
from analytics_service.present.overview import (
    BORROW_MARKETS,
    COLLATERAL_MARKETS,
    DEBT_MARKETS,
    LEND_MARKETS,
    OLDER_TVL,
    OVERVIEW,
    SUPPLY,
)
from analytics_service.present.shapes import ByShape, Many
from analytics_service.resources.current import VALUED, StatePath
from analytics_service.resources.snapshots import Arguments
from analytics_service.state.view import View

_DATASETS = ("markets",)


def _view(view: View, arguments: Arguments) -> View:
    return view


def _market(view: View, arguments: Arguments) -> Market:
    asset_id = arguments["asset_id"]
    (stored,) = stored_id([asset_id], view.markets)
    if stored not in view.markets:
        what = "an asset without a market" if asset_id in view.assets else "no asset"
        raise EntityNotFound(f"asset_id: {asset_id[:100]!r} names {what}.")
    return view.markets[stored]


def _market_of_kind(kind: str, view: View, arguments: Arguments) -> Market:
    """An asset's markets. Raises EntityNotFound if it has none of this kind."""
    market = _market(view, arguments)
    if getattr(market, kind) is None:
        raise EntityNotFound(f"asset_id: {arguments['asset_id'][:100]!r} names an asset without this market.")
    return market


def _list(path: str, summary: str, shape: ByShape) -> StatePath:
    query = (*VALUED, params.LIST_SHAPE)
    rows = "contents" if any(isinstance(choice, Many) for choice in shape.choices.values()) else None
    return StatePath(f"markets/{path}", summary, shape, _view, _DATASETS, query, has_sums=True, rows=rows)


def _lookup(path: str, summary: str, shape: ByShape, kind: str) -> StatePath:
    query = (*params.ASSET, *VALUED, params.LOOKUP_SHAPE)
    return StatePath(f"markets/{path}/lookup", summary, shape, partial(_market_of_kind, kind), _DATASETS, query)


PATHS = (
    StatePath(
        "markets",
        "All markets, with their sums and rules.",
        OVERVIEW,
        _view,
        _DATASETS,
        (*VALUED, params.SHAPE),
        has_sums=True,
    ),
    StatePath(
        "markets/config",
        "The rules for all borrowing.",
        GLOBAL_CONFIG,
        lambda view, arguments: view.config,
        _DATASETS,
        (params.WITH_TEXT,),
        describes_assets=False,
    ),
    *(
        StatePath(
            path, summary, shape, lambda view, arguments: view.supply, _DATASETS, (params.WITH_TEXT,), has_sums=True
        )
        for path, summary, shape in (
            ("markets/supply", "USD sums over all markets, and the total value locked.", SUPPLY),
            ("markets/tvl", "The total value locked, and its collateral and deposits.", OLDER_TVL),
        )
    ),
    _list("lend", "Every lend market.", LEND_MARKETS),
    _lookup("lend", "An asset's lend market.", LEND_LOOKUP, "lend"),
    _list("borrow", "All collateral and debt markets.", BORROW_MARKETS),
    _list("borrow/collaterals", "Every collateral market.", COLLATERAL_MARKETS),
    _lookup("borrow/collaterals", "An asset's collateral market.", COLLATERAL_LOOKUP, "collateral"),
    _list("borrow/debts", "Every debt market.", DEBT_MARKETS),
    _lookup("borrow/debts", "An asset's debt market.", DEBT_LOOKUP, "debt"),
    StatePath(
        "markets/merged",
        "All markets of every asset; null for a market that an asset lacks.",
        Many(MERGED_MARKET, lambda view: view.markets.values()),
        _view,
        _DATASETS,
        VALUED,
    ),
    StatePath(
        "markets/merged/lookup",
        "All markets of one asset.",
        MERGED_MARKET,
        _market,
        _DATASETS,
        (*params.ASSET, *VALUED),
    ),
)
