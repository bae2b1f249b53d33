"""/api/v1/assets: the assets, their prices, and the history of those."""

import falcon

from analytics_service.http import params
from analytics_service.http.envelope import success
from analytics_service.http.rendered import Rendered
from analytics_service.http.resource import Resource, answer
from analytics_service.present.assets import Quote, asset_info, priced_asset
from analytics_service.present.shapes import Flags
from analytics_service.series.latest import latest
from analytics_service.series.rows import PRICES
from analytics_service.store.assets import read_assets
from analytics_service.store.connection import Store
from analytics_service.store.ledger import Head, Heads


class Assets(Resource):
    """Every asset, in the order of ids."""

    def __init__(self, store: Store, heads: Heads) -> None:
        self._store = store
        self._heads = heads
        self._rendered = Rendered()

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Array of AssetInfo."""
        params.read(req, self.query)
        head = self._heads.get(PRICES.family)
        answer(resp, self._rendered.body(head, None, lambda: self._render(head)), head.at)

    def _render(self, head: Head) -> bytes:
        assets = read_assets(self._store, head.version)
        return success([asset_info(asset) for asset in assets.values()], count=len(assets))


class Prices(Resource):
    """Every asset that has a price, with the last one, however old; last_updated_at tells its age."""

    query = (params.WITH_TEXT,)

    def __init__(self, store: Store, heads: Heads) -> None:
        self._store = store
        self._heads = heads
        self._rendered = Rendered()

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Array of AssetInfo with AssetPrice."""
        flags = Flags(text=params.read(req, self.query)["with_text"])
        head = self._heads.get(PRICES.family)
        answer(resp, self._rendered.body(head, flags, lambda: self._render(head, flags)), head.at)

    def _render(self, head: Head, flags: Flags) -> bytes:
        assets = read_assets(self._store, head.version)
        prices = latest(self._store, PRICES, list(assets), head.last_observed_at)
        listed = [priced_asset(assets[asset_id], Quote(*price), flags) for asset_id, price in prices.items()]
        return success(listed, count=len(listed))
