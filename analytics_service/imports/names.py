"""Assets by the names that files use: ids, addresses, and symbols in any case."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from analytics_service.imports.assets_file import asset_fault
from analytics_service.market.assets import Asset, AssetGroup, id_key, split_id, unknown_asset
from analytics_service.store.observations import TOTAL

_ADDRESS = re.compile(r"0[xX][0-9a-fA-F]{40}")


_CURE = "--new-assets adds it"


@dataclass(frozen=True, slots=True)
class Unnamed:
    """Why a name stands for no asset."""

    reason: str


class AssetNames:
    """The assets that names stand for. Each has a code, in the order in which it was first named.

    `listed` are the assets of the assets file, whose symbols come before those of the `registered` ones of the store.
    With `add_new` a name of no asset makes a new one: `native;<symbol>`, unless it is an id or an address. `cure` says
    what else to do about such a name.
    """

    def __init__(
        self, listed: Iterable[Asset], registered: Iterable[Asset], *, add_new: bool, cure: str = _CURE
    ) -> None:
        self.ids: list[str] = []
        """The ids by code."""
        self.new: dict[str, Asset] = {}
        """The assets that were made, by id."""
        self._add_new = add_new
        self._cure = cure
        self._codes: dict[str, int] = {}
        self._named: dict[tuple[str, str], int | Unnamed] = {}
        self._keys: dict[str, str] = {}
        self._symbols: dict[str, dict[str, list[str]]] = {}
        for asset in registered:
            self._know(asset)
        described = list(listed)
        for asset in described:
            self._symbols.pop(asset.symbol.casefold(), None)
        for asset in described:
            self._know(asset)

    def _know(self, asset: Asset) -> None:
        self._keys[id_key(asset.id)] = asset.id
        spellings = self._symbols.setdefault(asset.symbol.casefold(), {})
        ids = spellings.setdefault(asset.symbol, [])
        if asset.id not in ids:
            ids.append(asset.id)

    def code(self, name: str, symbol: str = "") -> int | Unnamed:
        """The code of the asset that a name stands for; `symbol` is that beside an id."""
        key = name, symbol
        if key not in self._named:
            found = self._resolved(name.strip(), symbol.strip())
            self._named[key] = found if isinstance(found, Unnamed) else self.code_of(found)
        return self._named[key]

    def code_of(self, asset_id: str) -> int:
        """The code of an asset's id; the empty id stands for the sum over all assets."""
        if asset_id not in self._codes:
            self._codes[asset_id] = len(self.ids)
            self.ids.append(asset_id)
        return self._codes[asset_id]

    @property
    def total(self) -> int:
        """The code of the sum over all assets."""
        return self.code_of(TOTAL)

    def _resolved(self, name: str, symbol: str) -> str | Unnamed:
        if not name:
            return Unnamed("the asset is empty")
        for asset_id in (name, f"{AssetGroup.TOKEN};{name}"):
            if id_key(asset_id) in self._keys:
                return self._keys[id_key(asset_id)]
        spellings = self._symbols.get(name.casefold(), {})
        ids = spellings.get(name) or [asset_id for same in spellings.values() for asset_id in same]
        if len(ids) == 1:
            return ids[0]
        if ids:
            return Unnamed(f"several assets have this symbol; write one of their ids: {', '.join(sorted(ids))}")
        if not self._add_new:
            return Unnamed(f"unknown asset {name[:40]!r}, neither in the store nor in an --assets file; {self._cure}")
        return self._made(name, symbol)

    def _made(self, name: str, symbol: str) -> str | Unnamed:
        try:
            split_id(name)
            asset = unknown_asset(name)
        except ValueError:
            group = AssetGroup.TOKEN if _ADDRESS.fullmatch(name) else AssetGroup.NATIVE
            asset = unknown_asset(f"{group};{name}")
        symbol = symbol or asset.symbol
        asset = replace(asset, name=symbol, symbol=symbol, symbol_denom=symbol.lower())
        fault = asset_fault({"symbol": symbol, "address": asset.group_key, "decimals": "0"})
        if fault:
            return Unnamed(f"no asset can be made of it: {fault}")
        self.new[asset.id] = asset
        self._know(asset)
        return asset.id
