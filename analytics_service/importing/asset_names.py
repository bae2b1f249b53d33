"""Assets by the names that files use: ids, addresses, and symbols in any case."""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from analytics_service.importing.assets import asset_fault
from analytics_service.importing.column_mapping import base_currency, pair_fault
from analytics_service.market.assets import Asset, AssetFinder, AssetGroup, split_id, unknown_asset
from analytics_service.market.sums import TOTAL

_ADDRESS = re.compile(r"0[xX][0-9a-fA-F]{40}")
# Names of no asset for which similar symbols are looked up, which takes a look at all symbols.
_SUGGESTED = 5
_CURE = "say --new-assets to add it, or describe it with --assets"


class ResolvedName(NamedTuple):
    """What a name stands for: the code of an asset, or why there is none."""

    code: int | None
    fault: str = ""


class AssetNames:
    """The assets that names stand for. Each has a code, in the order in which it was first named.

    `listed` are the assets of the assets file, whose symbols come before those of the `registered` ones of the store.
    With `add_new` another name makes the asset `native;<symbol>`, unless it is an id or an address. With `pairs`,
    BTC/USD is BTC. `cure` says what to do about a name of no asset.
    """

    def __init__(
        self,
        listed: Iterable[Asset],
        registered: Iterable[Asset],
        *,
        add_new: bool,
        pairs: bool = False,
        cure: str = _CURE,
    ) -> None:
        self.ids: list[str] = []
        """The ids by code."""
        self.new: dict[str, Asset] = {}
        """The assets that were made, by id."""
        self._add_new, self._pairs, self._cure = add_new, pairs, cure
        self._codes: dict[str, int] = {}
        self._named: dict[tuple[str, str], ResolvedName] = {}
        self._assets = AssetFinder(registered, preferred=listed, spelled=True)
        self._unknown = 0

    def named(self, name: str, symbol: str = "") -> ResolvedName:
        """What a name stands for; `symbol` is that beside an id."""
        key = name, symbol
        if key not in self._named:
            found = self._resolved(name.strip(), symbol.strip())
            self._named[key] = ResolvedName(self.code_of(found)) if isinstance(found, str) else found
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

    def _resolved(self, name: str, symbol: str) -> str | ResolvedName:
        """The id of the asset, or why there is none."""
        if not name:
            return ResolvedName(None, "is empty; name the asset")
        ids = self._assets.ids(name)
        if len(ids) == 1:
            return ids[0]
        if ids:
            return ResolvedName(
                None, f"is the symbol of several assets; write one of their ids: {', '.join(sorted(ids))}"
            )
        if self._pairs and (base := base_currency(name)):
            return self._resolved(base, base if symbol == name else symbol)
        if self._pairs and (fault := pair_fault(name)):
            return ResolvedName(None, fault)
        if not self._add_new:
            self._unknown += 1
            near = self._assets.similar(name) if self._unknown <= _SUGGESTED else ""
            return ResolvedName(None, f"is an unknown asset{f' (did you mean {near}?)' if near else ''}; {self._cure}")
        return self._made(name, symbol)

    def _made(self, name: str, symbol: str) -> str | ResolvedName:
        """The new asset that a name, and perhaps a symbol, make, whose decimals nobody stated."""
        try:
            split_id(name)
            asset = unknown_asset(name)
        except ValueError:
            group = AssetGroup.TOKEN if _ADDRESS.fullmatch(name) else AssetGroup.NATIVE
            asset = unknown_asset(f"{group};{name}")
        symbol = symbol or asset.symbol
        if fault := asset_fault(symbol, asset.group_key, "0"):
            return ResolvedName(None, f"can be no asset: {fault}")
        self.new[asset.id] = replace(asset, name=symbol, symbol=symbol, symbol_denom="")
        self._assets.add(self.new[asset.id])
        return asset.id
