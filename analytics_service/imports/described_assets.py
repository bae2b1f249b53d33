"""Assets from files that describe them: each row has the symbol, address and decimals of its asset."""

from collections.abc import Iterable

import polars as pl

from analytics_service.imports.assets_file import asset_fault, stripped, token
from analytics_service.imports.tables import Table
from analytics_service.market.assets import Asset, id_key

_FIELDS = {"symbol": "symbol", "key": "address", "decimals": "decimals"}


def read_described_assets(tables: Iterable[Table], known: Iterable[Asset]) -> list[Asset]:
    """The assets in some files that are not known yet, each as its first usable row describes it.

    Addresses `0x...` that differ only in case are one (rule 3.4). Rows that describe no usable asset are skipped;
    validation rejects them. ImportRefused when a file is unreadable.
    """
    found: dict[str, Asset] = {}
    wanted = [stripped(pl.col(field), name) for field, name in _FIELDS.items()]
    for table in tables:
        for block, _ in table.blocks() if table.form.describes_assets else ():
            for row in block.select(wanted).unique(maintain_order=True).iter_rows(named=True):
                if asset_fault(row) is None:
                    asset = token(row)
                    found.setdefault(id_key(asset.id), asset)
    for asset in known:
        found.pop(id_key(asset.id), None)
    return list(found.values())
