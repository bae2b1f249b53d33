"""Assets, prices and swap routes in upstream's answers."""

from analytics_service.market.assets import Asset, AssetKind, split_id
from analytics_service.market.positions import SwapContract
from analytics_service.market.prices import Price
from analytics_service.sources.upstream.fields import AnswerField, optional, unique

_PRICE = {"observed_at": ("last_updated_at",), "usd": ("price",)}


def read_assets(data: AnswerField) -> list[Asset]:
    """Every AssetInfo of a list."""
    assets: dict[str, Asset] = {}
    for item in data.items():
        asset = _asset(item)
        assets[unique(assets, asset.id, item["asset"]["id"])] = asset
    return list(assets.values())


def _asset(info: AnswerField) -> Asset:
    group, key = split_id(info["asset"].asset_id())
    classification = info["classification"]
    return info["metadata"].record(
        Asset,
        group=group,
        group_key=key,
        kind=classification["kind"].word(AssetKind),
        origin_asset=optional(classification.get("origin_asset"), AnswerField.asset_id),
        receipt_asset=optional(classification.get("protocol_receipt_asset"), AnswerField.asset_id),
    )


def read_prices(data: AnswerField) -> list[Price]:
    """The price of every asset that has one."""
    prices: dict[str, Price] = {}
    for item in data.items():
        asset_id = unique(prices, item["asset"].asset_id(), item["asset"]["id"])
        price = item["price"]
        if price.get("price") is not None:
            prices[asset_id] = price.record(Price, _PRICE, asset_id=asset_id)
    return list(prices.values())


def read_routes(address: str, data: AnswerField) -> SwapContract:
    """The routes of a swap contract."""
    routes: dict[str, tuple[str, ...]] = {}
    for item in data.items():
        source = unique(routes, item["source"].text(), item["source"])
        routes[source] = tuple(target.text() for target in item["targets"].items())
    return SwapContract(address, routes)
