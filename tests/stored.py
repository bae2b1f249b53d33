"""Writes test data to the store."""

from collections.abc import Iterable, Sequence

import polars as pl

from analytics_service.clickhouse.columns import with_version
from analytics_service.clickhouse.connection import Store
from analytics_service.market.assets import Asset
from analytics_service.market.positions import Position
from analytics_service.store.datasets.assets import ASSETS, changed_assets
from analytics_service.store.datasets.positions import number_items, unnumber_items


def write_assets(store: Store, assets: Sequence[Asset], version: int) -> None:
    """Write the definitions that are new or changed."""
    store.insert(ASSETS, with_version(changed_assets(store, assets), version))


def item_frame(positions: Iterable[Position], unfit: list[Position] | None = None) -> pl.DataFrame:
    """The items of positions, as a snapshot has them."""
    items, _ = number_items(unnumber_items(positions, unfit))
    return items
