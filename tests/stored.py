"""Writes test data to the store."""

from collections.abc import Sequence

from analytics_service.market.assets import Asset
from analytics_service.store.assets import ASSETS, changed_assets
from analytics_service.store.columns import versioned
from analytics_service.store.connection import Store


def write_assets(store: Store, assets: Sequence[Asset], version: int) -> None:
    """Write the definitions that are new or changed."""
    store.insert(ASSETS, versioned(changed_assets(store, assets), version))
