"""/api/v1/assets: assets and their prices."""

from collections.abc import Mapping
from typing import Any

from analytics_service.http import params
from analytics_service.market.assets import Asset
from analytics_service.present.assets import ASSET_INFO, PRICED_ASSET, PricedAsset, Quote
from analytics_service.present.shapes import Many
from analytics_service.resources.current import Current
from analytics_service.state.view import View


class Assets(Current):
    """Every asset, in the order of ids."""

    families = ("prices",)
    shape = Many(ASSET_INFO)

    def record(self, view: View, arguments: Mapping[str, Any]) -> list[Asset]:
        """All assets."""
        return list(view.assets.values())


class Prices(Current):
    """Every asset that has a price, with its last price, however old; last_updated_at tells its age."""

    families = ("prices",)
    query = (params.WITH_TEXT,)
    shape = Many(PRICED_ASSET)

    def record(self, view: View, arguments: Mapping[str, Any]) -> list[PricedAsset]:
        """Assets with their last prices."""
        return [PricedAsset(view.assets[asset_id], Quote(*quote)) for asset_id, quote in view.quotes.items()]
