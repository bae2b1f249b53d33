"""Assets from files that describe them: each row has the symbol, address and decimals of its asset."""

from collections.abc import Iterable

import polars as pl

from analytics_service.imports.assets_file import asset_fault, stripped, token
from analytics_service.imports.forms import FormTable
from analytics_service.market.assets import Asset, id_key

_FIELDS = {"symbol": "symbol", "key": "address", "decimals": "decimals"}


def read_described_assets(tables: Iterable[FormTable], known_assets: Iterable[Asset]) -> list[Asset]:
    """The assets in files that are not in `known_assets`, each as its first valid row describes it.

    Addresses `0x...` that differ only in case are the same (rule 3.4). Rows without a valid description are skipped;
    validation rejects them. ImportRefused when a file is unreadable.
    """
    described: dict[str, Asset] = {}
    columns = [stripped(pl.col(field), name) for field, name in _FIELDS.items()]
    for table in tables:
        for block, _ in table.blocks() if table.form.describes_assets else ():
            for row in block.select(columns).unique(maintain_order=True).iter_rows(named=True):
                if asset_fault(row) is None:
                    asset = token(row)
                    described.setdefault(id_key(asset.id), asset)
    for asset in known_assets:
        described.pop(id_key(asset.id), None)
    return list(described.values())
