"""Finds assets by the names in files: ids, addresses, and symbols in any case."""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from analytics_service.importing.assets import asset_fault
from analytics_service.importing.column_mapping import base_currency, pair_fault
from analytics_service.market.assets import Asset, AssetFinder, AssetGroup, split_id, unknown_asset

_ADDRESS = re.compile(r"0[xX][0-9a-fA-F]{40}")
# Number of unknown names for which similar symbols are suggested, which compares all symbols.
_SUGGESTED = 5
_REMEDY = "add it with --new-assets, or describe it with --assets"


class ResolvedName(NamedTuple):
    """The id of the asset that a name stands for, or the fault of the name."""

    asset_id: str | None
    fault: str = ""


class AssetNames:
    """The assets that names stand for.

    `listed` are the assets of the assets file, whose symbols take precedence over the store's `registered` assets.
    With `add_new`, an unknown name makes the asset `native;<symbol>`, or the asset of its id or address. With `pairs`,
    BTC/USD is BTC. `cure` says what to do about an unknown name.
    """

    def __init__(
        self,
        listed: Iterable[Asset],
        registered: Iterable[Asset],
        *,
        add_new: bool,
        pairs: bool = False,
        cure: str = _REMEDY,
    ) -> None:
        self.new: dict[str, Asset] = {}
        """The assets that were made, by id."""
        self._add_new, self._pairs, self._cure = add_new, pairs, cure
        self._named: dict[tuple[str, str], ResolvedName] = {}
        self._assets = AssetFinder(registered, preferred=listed, spelled=True)
        self._unknown = 0

    def named(self, name: str, symbol: str = "") -> ResolvedName:
        """Resolve a name; `symbol` is the symbol beside an id."""
        key = name, symbol
        if key not in self._named:
            self._named[key] = self._resolved(name.strip(), symbol.strip())
        return self._named[key]

    def _resolved(self, name: str, symbol: str) -> ResolvedName:
        if not name:
            return ResolvedName(None, "is empty; name the asset")
        ids = self._assets.ids(name)
        if len(ids) == 1:
            return ResolvedName(ids[0])
        if ids:
            return ResolvedName(None, f"is the symbol of several assets; write an id: {', '.join(sorted(ids))}")
        if self._pairs and (base := base_currency(name)):
            return self._resolved(base, base if symbol == name else symbol)
        if self._pairs and (fault := pair_fault(name)):
            return ResolvedName(None, fault)
        if not self._add_new:
            self._unknown += 1
            near = self._assets.similar(name) if self._unknown <= _SUGGESTED else ""
            return ResolvedName(None, f"is an unknown asset{f' (did you mean {near}?)' if near else ''}; {self._cure}")
        return self._made(name, symbol)

    def _made(self, name: str, symbol: str) -> ResolvedName:
        """Add an asset with a name and perhaps a symbol, without decimals."""
        try:
            split_id(name)
            asset = unknown_asset(name)
        except ValueError:
            group = AssetGroup.TOKEN if _ADDRESS.fullmatch(name) else AssetGroup.NATIVE
            asset = unknown_asset(f"{group};{name}")
        symbol = symbol or asset.symbol
        if fault := asset_fault(symbol, asset.group_key, "0"):
            return ResolvedName(None, f"cannot be an asset: {fault}")
        self.new[asset.id] = replace(asset, name=symbol, symbol=symbol, symbol_denom="")
        self._assets.add(self.new[asset.id])
        return ResolvedName(asset.id)
