"""/api/v1/assets, /ptoken and /swap: assets and their prices, the protocol token, and swap routes."""

from analytics_service.errors import EntityNotFound
from analytics_service.http import params
from analytics_service.market.assets import Asset
from analytics_service.market.positions import SwapContract
from analytics_service.market.prices import price_change
from analytics_service.present.assets import ASSET_INFO, PRICED_ASSET, SWAP_TARGETS, PricedAsset, Quote
from analytics_service.present.ptoken import PTOKEN_PARAMS, PTOKEN_STAKING, PTOKEN_STATE
from analytics_service.present.shapes import Many
from analytics_service.resources.current import VALUED, StatePath
from analytics_service.resources.snapshots import Arguments
from analytics_service.state.view import View

_Route = tuple[str, tuple[str, ...]]


def _assets(view: View, arguments: Arguments) -> list[Asset]:
    return [asset for asset in view.assets.values() if not asset.ended_at]


def _prices(view: View, arguments: Arguments) -> list[PricedAsset]:
    """Every price, with its changes since earlier views: None for an asset without a price there."""
    spans = arguments["changes"]
    before = {span: view.quotes for span, view in arguments["earlier"].items()} if spans else {}
    priced = []
    for asset_id, (price, at) in view.quotes.items():
        quotes = {span: before[span].get(asset_id) if span in before else None for span in spans or ()}
        changes = {span: price_change(quote[0], price) if quote else None for span, quote in quotes.items()}
        priced.append(PricedAsset(view.assets[asset_id], Quote(price, at, changes if spans else None)))
    return priced


def _contract(view: View, arguments: Arguments) -> SwapContract:
    address = arguments["contract_address"]
    contract = view.contract(address)
    if contract is None:
        raise EntityNotFound(f"contract_address: {address} is not a swap contract.")
    return contract


def _all_routes(view: View, arguments: Arguments) -> list[_Route]:
    """All routes, ordered by source denom."""
    return sorted(_contract(view, arguments).routes.items())


def _route(view: View, arguments: Arguments) -> _Route:
    denom, routes = arguments["source_denom"], _contract(view, arguments).routes
    if denom not in routes:
        raise EntityNotFound(f"source_denom: {denom[:100]!r} has no routes at this contract.")
    return denom, routes[denom]


PATHS = (
    StatePath(
        "assets",
        "Every asset that has not ended, ordered by id.",
        Many(ASSET_INFO),
        _assets,
        ("prices",),
    ),
    StatePath(
        "assets/prices",
        "Every asset that has a price, with its last price, however old; `last_updated_at` shows its age.",
        Many(PRICED_ASSET),
        _prices,
        ("prices",),
        (params.CHANGES, params.WITH_TEXT),
    ),
    *(
        StatePath(f"ptoken/{part}", summary, shape, lambda view, arguments: view.ptoken, ("ptoken",), VALUED)
        for part, summary, shape in (
            ("params", "The protocol token's parameters.", PTOKEN_PARAMS),
            ("state", "Amounts of the protocol token: issued, claimed, locked and staked.", PTOKEN_STATE),
            ("staking", "The protocol token's staking pools.", PTOKEN_STAKING),
        )
    ),
)
SWAP_PATHS = (
    StatePath(
        "swap/routes",
        "One source denom of a swap contract, with its targets.",
        SWAP_TARGETS,
        _route,
        ("routes",),
        (params.CONTRACT_ADDRESS, params.SOURCE_DENOM),
        describes_assets=False,
    ),
    StatePath(
        "swap/routes/all",
        "Every source denom of a swap contract, with its targets.",
        Many(SWAP_TARGETS),
        _all_routes,
        ("routes",),
        (params.CONTRACT_ADDRESS,),
        describes_assets=False,
    ),
)
