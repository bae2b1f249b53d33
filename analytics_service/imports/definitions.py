"""Describes assets: new ones, and those that an import made of their symbols."""

from dataclasses import replace
from pathlib import Path

from analytics_service.imports.assets_file import as_registered, read_assets_file
from analytics_service.market.assets import Asset
from analytics_service.store.admission import claim, read_side, require_admitted
from analytics_service.store.assets import ASSETS, changed_assets, read_assets
from analytics_service.store.columns import versioned
from analytics_service.store.connection import Store
from analytics_service.store.ledger import IMPORTED, new_version
from analytics_service.store.rewrite import show_assets


def define_assets(store: Store, path: Path) -> int:
    """Describe the assets of a file as it does, with their links and kinds as they are; returns how many differed.

    ImportRefused names the first invalid line. SourceRefused when the store holds simulated data (rule 8.7).
    """
    require_admitted(store, IMPORTED)
    registered = read_assets(store)
    listed = [as_registered(asset, registered) for asset in read_assets_file(path)]
    changed = changed_assets(store, [_described(asset, registered.get(asset.id)) for asset in listed])
    if changed.height:
        claim(store, read_side(store), IMPORTED)
        store.insert(ASSETS, versioned(changed, new_version(store)))
        show_assets(store)
    return changed.height


def _described(asset: Asset, stored: Asset | None) -> Asset:
    """The asset with the kind and the links of the stored one, which files of assets do not have."""
    if stored is None:
        return asset
    return replace(asset, kind=stored.kind, origin_asset=stored.origin_asset, receipt_asset=stored.receipt_asset)
