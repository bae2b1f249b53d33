"""Reads a CSV file of assets: columns symbol, address and decimals, and any others."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import polars as pl

from analytics_service.errors import ImportRefused
from analytics_service.imports.tables import require_file
from analytics_service.market.assets import Asset, AssetGroup, id_key, is_formula

_COLUMNS = ("symbol", "address", "decimals")
_MOST_DECIMALS = 77
_DISPLAYED = 6
# Control characters, and what bytes that are not UTF-8 are read as.
_UNREADABLE = "[\x00-\x1f\x7f-\x9f\N{REPLACEMENT CHARACTER}]"
FORMULA = "begins with = + - @, a tab or a carriage return: a spreadsheet would run it as a formula"


def read_assets_file(path: Path) -> list[Asset]:
    """The assets as `token;<address>`, in the file's order. ImportRefused names the first line that is wrong.

    Addresses `0x...` that differ only in case are one, as the first line spells it (rule 3.4).
    """
    table = _read(path)
    symbols: dict[str, Asset] = {}
    addresses: dict[str, Asset] = {}
    for number, row in enumerate(_without_blank_end(table), start=1):
        address = id_key(f"{AssetGroup.TOKEN};{row['address']}")
        fault = asset_fault(row) or _conflict(row, symbols.get(row["symbol"]), addresses.get(address))
        if fault:
            raise ImportRefused(f"Asset {number} of {path}, {_shown(row)}: {fault}. Correct the file.")
        symbols[row["symbol"]] = addresses.setdefault(address, token(row))
    if not addresses:
        raise ImportRefused(f"{path} names no assets.")
    return list(addresses.values())


def _without_blank_end(table: pl.DataFrame) -> list[dict[str, str]]:
    """The rows, without blank ones at the end, as in files of history."""
    rows = table.to_dicts()
    while rows and not any(rows[-1].values()):
        rows.pop()
    return rows


def _read(path: Path) -> pl.DataFrame:
    require_file(path, "Check the name given to --assets.")
    try:
        table = pl.read_csv(
            path, infer_schema=False, empty_string_is_null=False, truncate_ragged_lines=True, glob=False
        )
    except (pl.exceptions.PolarsError, OSError) as error:
        raise ImportRefused(f"{path} cannot be read as CSV: {str(error).partition(chr(10))[0][:200]}.") from error
    # Polars numbers names that are repeated.
    found = [re.sub(r"_duplicated_\d+$", "", name).strip().lower() for name in table.columns]
    if repeated := [name for name in _COLUMNS if found.count(name) > 1]:
        raise ImportRefused(f"{path} has several columns {', '.join(repeated)}. Keep one of each.")
    names = dict(zip(found, table.columns, strict=True))
    missing = [name for name in _COLUMNS if name not in names]
    if missing:
        shown = ", ".join(table.columns)[:200]
        raise ImportRefused(f"{path} lacks the columns {', '.join(missing)}; it has {shown!r}.")
    columns = {name: pl.col(names[name]).fill_null("") for name in _COLUMNS}
    return table.select(stripped(column, name) for name, column in columns.items())


def stripped(column: pl.Expr, name: str) -> pl.Expr:
    """A column without space around its texts; a tab or a carriage return before a symbol stays, for it is a fault.

    Decimals may be written as 6.0: a program that finds a gap among whole numbers writes them like that.
    """
    if name == "decimals":
        return column.str.strip_chars().str.strip_suffix(".0").alias(name)
    if name != "symbol":
        return column.str.strip_chars().alias(name)
    return column.str.strip_chars_end().str.replace(r"^[^\S\t\r]+", "").alias(name)


def asset_fault(row: Mapping[str, str]) -> str | None:
    """What is wrong with a row's symbol, address and decimals, taken by themselves."""
    if not row["symbol"]:
        return "the symbol is empty"
    if "," in row["symbol"]:
        return "the symbol holds a comma, which separates symbols in requests"
    if is_formula(row["symbol"]):
        return f"the symbol {FORMULA}"
    if re.search(_UNREADABLE, row["symbol"] + row["address"]):
        return "the symbol or the address holds a control character, or bytes that are not UTF-8"
    # Commas separate ids in requests, a semicolon the group from the key.
    if not re.fullmatch(r"[^\s,;]+", row["address"]):
        return "the address is empty or holds a space, comma or semicolon"
    if not re.fullmatch(r"[0-9]{1,2}", row["decimals"]) or int(row["decimals"]) > _MOST_DECIMALS:
        return f"decimals must be a whole number from 0 to {_MOST_DECIMALS}"
    return None


def differ(asset: Asset, known: Asset) -> bool:
    """Whether two descriptions of an asset differ in what an import brings."""
    return (asset.symbol, asset.decimals_denom) != (known.symbol, known.decimals_denom)


def _conflict(row: dict[str, str], same_symbol: Asset | None, same_address: Asset | None) -> str | None:
    asset = token(row)
    if same_symbol and id_key(same_symbol.id) != id_key(asset.id):
        return f"the symbol stands for {same_symbol.group_key} further up"
    if same_address and same_address != replace(asset, group_key=same_address.group_key):
        return f"the address is that of {same_address.symbol} with {same_address.decimals_denom} decimals further up"
    return None


def _shown(row: dict[str, str]) -> str:
    return repr(",".join(row.values())[:80])


def token(row: Mapping[str, str]) -> Asset:
    """The asset of a good row: `token;<address>`."""
    decimals = int(row["decimals"])
    return Asset(
        group=AssetGroup.TOKEN,
        group_key=row["address"],
        name=row["symbol"],
        symbol=row["symbol"],
        symbol_denom=row["symbol"].lower(),
        decimals_denom=decimals,
        decimals_display=min(decimals, _DISPLAYED),
    )
