"""Reads a CSV file of assets, which may be gzipped: columns symbol, address and decimals, name if it is there, and any
others."""

import csv
import io
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from analytics_service.errors import ImportRefused
from analytics_service.imports.files import require_file, unpacked
from analytics_service.market.assets import Asset, AssetGroup, as_stored, id_key, split_id
from analytics_service.market.spreadsheets import is_formula

_COLUMNS = ("symbol", "address", "decimals")
_MAX_DECIMALS = 77
_DISPLAYED = 6
# Bytes of a file, unpacked. Its rows may take hundreds of times as many in memory.
_MAX_BYTES = 2 * 2**20
# Control characters, and the replacement for bytes that are not UTF-8.
_UNREADABLE = "[\x00-\x1f\x7f-\x9f\N{REPLACEMENT CHARACTER}]"
RUNS = "begins with = + - @, a tab or a line end: a spreadsheet would run it as a formula"


def read_assets_file(path: Path) -> list[Asset]:
    """The assets, in the file's order: `token;<address>`, or the id that stands in place of the address. ImportRefused
    names the first invalid line.

    Addresses `0x...` that differ only in case are the same; the first spelling is used (rule 3.4).
    """
    header, *lines = _read(path)
    symbols: dict[str, Asset] = {}
    addresses: dict[str, Asset] = {}
    for number, (line, row) in enumerate(zip(lines, _rows(lines, _column_indices(path, header)), strict=True), start=1):
        address = id_key(_full_id(row["address"]))
        fault = (
            _excess(line, header)
            or asset_fault(row)
            or _conflict(row, symbols.get(row["symbol"]), addresses.get(address))
        )
        if fault:
            raise ImportRefused(f"Asset {number} of {path}, {','.join(line)[:80]!r}: {fault}. Correct the file.")
        symbols[row["symbol"]] = addresses.setdefault(address, token(row))
    if not addresses:
        raise ImportRefused(f"{path} names no assets.")
    return list(addresses.values())


def _read(path: Path) -> list[list[str]]:
    """The fields of the header and of each row, without blank lines before the header and at the end of the file."""
    require_file(path, "Check the name given to --assets.")
    try:
        with unpacked(path) as (_, stream):
            content = stream.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            raise ImportRefused(f"{path} has more than {_MAX_BYTES // 2**20} MiB, too much for a file of assets.")
        lines = list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True))
    except (csv.Error, UnicodeError) as error:
        raise ImportRefused(f"{path} cannot be read as CSV: {error}.") from error
    filled = [number for number, line in enumerate(lines) if not _is_blank(line)]
    if not filled:
        raise ImportRefused(f"{path} is empty. It needs a header line: {','.join(_COLUMNS)}.")
    return lines[filled[0] : filled[-1] + 1]


def _is_blank(fields: Iterable[str]) -> bool:
    return not any(map(str.strip, fields))


def _column_indices(path: Path, header: Sequence[str]) -> dict[str, int]:
    """The index of each column that is used."""
    names = [name.strip().lower() for name in header]
    if repeated := [name for name in _COLUMNS if names.count(name) > 1]:
        raise ImportRefused(f"{path} has several columns {', '.join(repeated)}. Keep one of each.")
    if missing := [name for name in _COLUMNS if name not in names]:
        shown = ", ".join(header)[:200]
        raise ImportRefused(f"{path} lacks the columns {', '.join(missing)}; it has {shown!r}.")
    return {name: names.index(name) for name in (*_COLUMNS, "name") if name in names}


def _rows(lines: Sequence[Sequence[str]], indices: Mapping[str, int]) -> list[dict[str, str]]:
    """The used columns of each row; fields that a short row lacks are empty."""
    columns = {name: [line[index] if index < len(line) else "" for line in lines] for name, index in indices.items()}
    table = pl.DataFrame(columns, schema=dict.fromkeys(indices, pl.String))
    return table.select(stripped(pl.col(name), name) for name in indices).to_dicts()


def _excess(line: Sequence[str], header: Sequence[str]) -> str | None:
    return None if _is_blank(line[len(header) :]) else f"the row has more than {len(header)} fields"


def stripped(column: pl.Expr, name: str) -> pl.Expr:
    """A column without space around its values. A tab or a carriage return before a symbol stays, because it is an
    error.

    Decimals may be written as 6.0: programs write whole numbers like that if some are missing.
    """
    if name == "decimals":
        return column.str.strip_chars().str.strip_suffix(".0").alias(name)
    if name != "symbol":
        return column.str.strip_chars().alias(name)
    return column.str.strip_chars_end().str.replace(r"^[^\S\t\r]+", "").alias(name)


def asset_fault(row: Mapping[str, str]) -> str | None:
    """The error in a row's symbol, address or decimals, regardless of other rows."""
    if not row["symbol"]:
        return "the symbol is empty"
    if "," in row["symbol"]:
        return "the symbol holds a comma, which separates symbols in requests"
    if is_formula(row["symbol"]):
        return f"the symbol {RUNS}"
    if re.search(_UNREADABLE, row["symbol"] + row["address"]):
        return "the symbol or the address holds a control character, or bytes that are not UTF-8"
    # Commas separate ids in requests, a semicolon the group from the key.
    if not re.fullmatch(r"((native|token);)?[^\s,;]+", row["address"]):
        return "the address is empty or holds a space, comma or semicolon"
    if not re.fullmatch(r"[0-9]{1,2}", row["decimals"]) or int(row["decimals"]) > _MAX_DECIMALS:
        return f"decimals must be a whole number from 0 to {_MAX_DECIMALS}"
    return None


def differ(asset: Asset, registered: Asset) -> bool:
    """Whether two descriptions of an asset differ in the fields that an import has."""
    return (asset.symbol, asset.decimals_denom) != (registered.symbol, registered.decimals_denom)


def as_registered(asset: Asset, registered: Collection[str]) -> Asset:
    """The asset with the key that it has in the store, which may be in another case (rule 3.4)."""
    (stored,) = as_stored([asset.id], registered)
    return replace(asset, group_key=split_id(stored)[1])


def notes_on_symbols(new: Iterable[Asset], registered: Iterable[Asset]) -> list[str]:
    """A line about each new asset whose symbol another asset in the store has."""
    ids: dict[str, list[str]] = {}
    for asset in registered:
        ids.setdefault(asset.symbol.casefold(), []).append(asset.id)
    return [
        f"Note: {asset.symbol} becomes the symbol of {asset.id}; in the store it is that of {', '.join(same)}"
        for asset in new
        if (same := ids.get(asset.symbol.casefold()))
    ]


def _conflict(row: dict[str, str], same_symbol: Asset | None, same_address: Asset | None) -> str | None:
    asset = token(row)
    if same_symbol and id_key(same_symbol.id) != id_key(asset.id):
        return f"the symbol stands for {same_symbol.group_key} further up"
    if same_address and same_address != replace(asset, group_key=same_address.group_key):
        return f"the address is that of {same_address.symbol} with {same_address.decimals_denom} decimals further up"
    return None


def token(row: Mapping[str, str]) -> Asset:
    """The asset of a valid row: `token;<address>`, or that of the id in place of the address."""
    decimals = int(row["decimals"])
    group, key = split_id(_full_id(row["address"]))
    return Asset(
        group=group,
        group_key=key,
        name=row.get("name") or row["symbol"],
        symbol=row["symbol"],
        symbol_denom=row["symbol"].lower(),
        decimals_denom=decimals,
        decimals_display=min(decimals, _DISPLAYED),
    )


def _full_id(address: str) -> str:
    return address if ";" in address else f"{AssetGroup.TOKEN};{address}"
