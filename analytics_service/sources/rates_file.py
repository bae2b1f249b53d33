"""Assets that a file of rates names by the way: each row has the symbol, address and decimals of its asset."""

from collections.abc import Iterable

import polars as pl

from analytics_service.market.assets import Asset
from analytics_service.sources.assets_file import asset_fault, token
from analytics_service.sources.tables import Table

_FIELDS = {"symbol": "symbol", "key": "address", "decimals": "decimals"}


def read_named_assets(tables: Iterable[Table]) -> list[Asset]:
    """The assets of all rows of the files, as the first usable row of each address has them, in the files' order.

    Rows that do not make an asset are passed over; judging finds them. ImportRefused when a file is unreadable.
    """
    found: dict[str, Asset] = {}
    wanted = [pl.col(field).str.strip_chars().alias(name) for field, name in _FIELDS.items()]
    for table in tables:
        for block, _ in table.blocks():
            for row in block.select(wanted).unique(maintain_order=True).iter_rows(named=True):
                if asset_fault(row) is None:
                    found.setdefault(row["address"].lower(), token(row))
    return list(found.values())
