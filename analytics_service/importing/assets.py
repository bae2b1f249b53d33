"""Reads files that describe assets: columns symbol, address or asset_id, decimals, optionally name, and others."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import polars as pl

from analytics_service.clickhouse.connection import Store
from analytics_service.errors import UserError
from analytics_service.importing.readers import open_table
from analytics_service.market.assets import Asset, AssetGroup, id_key, split_id, stored_id
from analytics_service.market.spreadsheets import is_formula
from analytics_service.store.datasets.assets import changed_assets, read_assets
from analytics_service.store.ledger import IMPORTED
from analytics_service.store.ownership import read_owner, require_admitted, take_ownership
from analytics_service.store.rewrite import write_definitions

_MAX_DECIMALS = 77
_DISPLAYED = 6
_MAX_ASSETS = 50_000
# Characters of symbols, names and addresses.
_LONGEST = 100
# Control characters, and the replacement for bytes that are not UTF-8.
_UNREADABLE = "\x00-\x1f\x7f-\x9f\N{REPLACEMENT CHARACTER}"


def define_assets(store: Store, path: Path) -> tuple[int, list[str]]:
    """Describe assets as in a file; fields that the file lacks stay. Returns the number of changed assets, and the
    symbols of assets whose decimals changed.

    UserError names the first invalid line. SourceMismatch if the store has simulated data (rule 8.7, one source).
    """
    registered = registered_assets(store)
    listed = listed_assets(path, registered)
    assets = [_with_stored(asset, registered[asset.id]) if asset.id in registered else asset for asset in listed]
    changed = changed_assets(store, assets)
    if changed.height:
        take_ownership(store, read_owner(store), IMPORTED)
        write_definitions(store, changed, "import")
    described = [asset for asset in assets if asset.id in registered and registered[asset.id].is_described]
    return changed.height, [
        asset.symbol for asset in described if asset.decimals_denom != registered[asset.id].decimals_denom
    ]


def _with_stored(asset: Asset, stored: Asset) -> Asset:
    """An asset of a file, with the stored fields that the file lacks. Without a name, its symbol is its name."""
    asset = replace(asset, kind=stored.kind, origin_asset=stored.origin_asset, receipt_asset=stored.receipt_asset)
    if not stored.is_described:
        return asset
    return replace(
        asset,
        name=stored.name if asset.name == asset.symbol and stored.name != stored.symbol else asset.name,
        symbol_denom=stored.symbol_denom,
        decimals_display=min(stored.decimals_display, asset.decimals_denom),
    )


def registered_assets(store: Store | None) -> Mapping[str, Asset]:
    """The assets of the store by id. A `store` of None is empty. SourceMismatch if it has simulated data (rule 8.7)."""
    if store is None:
        return {}
    require_admitted(store, IMPORTED)
    return read_assets(store)


def listed_assets(path: Path | None, registered: Mapping[str, Asset]) -> list[Asset]:
    """The assets of a file, with the store's ids, which may be in another case (rule 3.4, canonical ids), and ends."""
    assets = read_assets_file(path) if path else []
    ids = stored_id([asset.id for asset in assets], registered)
    return [
        replace(
            asset,
            group_key=split_id(asset_id)[1],
            listed_until=stored.listed_until if (stored := registered.get(asset_id)) else None,
            ended_at=stored.ended_at if stored else None,
        )
        for asset, asset_id in zip(assets, ids, strict=True)
    ]


def read_assets_file(path: Path) -> list[Asset]:
    """The assets, in the file's order. UserError names the first invalid line.

    Addresses `0x...` that differ only in case are one asset, with its first spelling (rule 3.4).
    """
    table = open_table(path)
    # Files that this service writes have ids.
    key = "address" if table.column("address") or not table.column("asset_id") else "asset_id"
    needed = ("symbol", key, "decimals")
    columns = [column for name in (*needed, "name") if (column := table.column(name))]
    # Exports say where decimals are not known.
    known = table.column("decimals_known")
    if len(columns) < len(needed) or not all(map(table.column, needed)):
        shown = ", ".join(table.columns)[:200]
        raise UserError(f"{path} has the columns {shown!r}. It needs {', '.join(needed)}.")
    symbols: dict[str, Asset] = {}
    addresses: dict[str, Asset] = {}
    for rows, _ in table.batches([*columns, known] if known else columns):
        described = rows.filter(pl.col(known) != "false") if known else rows
        for line, *row in described.select("line", pl.col(columns).fill_null("")).iter_rows():
            asset = token_of(*row)
            fault = asset if isinstance(asset, str) else _conflict(asset, symbols, addresses)
            if isinstance(asset, str) or fault:
                raise table.refused(line, None, ",".join(row), f"{fault}; correct the file")
            symbols[asset.symbol] = addresses.setdefault(id_key(asset.id), asset)
        if len(addresses) > _MAX_ASSETS:
            raise UserError(f"{path} has more than {_MAX_ASSETS:,} assets.")
    if not addresses:
        raise UserError(f"{path} names no assets{' whose decimals are known' if known else ''}.")
    return list(addresses.values())


def _conflict(asset: Asset, symbols: Mapping[str, Asset], addresses: Mapping[str, Asset]) -> str | None:
    key = id_key(asset.id)
    for earlier in (symbols.get(asset.symbol), addresses.get(key)):
        if earlier and (id_key(earlier.id), replace(earlier, group_key=asset.group_key)) != (key, asset):
            return f"an earlier line has {earlier.symbol} at {earlier.group_key} with {earlier.decimals_denom} decimals"
    return None


def token_of(symbol: str, address: str, decimals: str, name: str = "") -> Asset | str:
    """The asset `token;<address>`, or of the id in place of an address; or the error in its description."""
    # Programs write whole numbers as 6.0 if some are missing.
    symbol, address, decimals = symbol.strip(), address.strip(), decimals.strip().removesuffix(".0")
    fault = asset_fault(symbol, address, decimals) or (
        f"the name has more than {_LONGEST} characters" if len(name) > _LONGEST else None
    )
    if fault:
        return fault
    group, key = split_id(address if ";" in address else f"{AssetGroup.TOKEN};{address}")
    count = int(decimals)
    return Asset(group, key, name.strip() or symbol, symbol, symbol.lower(), count, min(count, _DISPLAYED))


def asset_fault(symbol: str, address: str, decimals: str) -> str | None:
    """The error in a symbol, an address or decimals."""
    # Commas separate symbols and ids in requests, a semicolon the group from the key.
    if not re.fullmatch(f"[^,{_UNREADABLE}]{{1,{_LONGEST}}}", symbol) or is_formula(symbol):
        return (
            f"a symbol has 1 to {_LONGEST} printable characters without commas, and does not begin with = + - @, which "
            "a spreadsheet would run as a formula"
        )
    if not re.fullmatch(rf"((native|token);)?[^\s,;{_UNREADABLE}]{{1,{_LONGEST}}}", address):
        return f"an address has 1 to {_LONGEST} printable characters without spaces, commas and semicolons"
    if not re.fullmatch(r"[0-9]{1,2}", decimals) or int(decimals) > _MAX_DECIMALS:
        return f"decimals must be a whole number from 0 to {_MAX_DECIMALS}"
    return None
