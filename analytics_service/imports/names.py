"""Assets by the names that files use: ids, addresses, and symbols in any case."""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from analytics_service.imports.assets_file import asset_fault, token_of
from analytics_service.market.assets import Asset, AssetGroup, by_symbol, id_key, split_id, unknown_asset
from analytics_service.market.sums import TOTAL

_ADDRESS = re.compile(r"0[xX][0-9a-fA-F]{40}")
_CURE = "--new-assets adds it"
# What prices may be in: USD, and what is worth as much.
DOLLARS = frozenset(
    ("usd", "usdt", "usdc", "dai", "busd", "tusd", "usdp", "fdusd", "pyusd", "gusd", "usde", "us$", "$")
)
# What else prices are commonly in. After a dash other words are part of a symbol, such as UNI-V2.
_OTHER_MONEY = re.compile(
    "eur|gbp|jpy|chf|cad|aud|nzd|sek|nok|dkk|pln|czk|huf|try|brl|mxn|zar|inr|krw|cny|hkd|sgd|rub|uah|"
    "eurc|eurt|btc|xbt|wbtc|eth|weth|bnb|sol"
)
_PAIR = re.compile(r"([A-Za-z0-9.]+)([/_-])([A-Za-z0-9.$]+)")


class Named(NamedTuple):
    """What a name stands for: the code of an asset, or why there is none."""

    code: int | None
    fault: str | None = None


class _Fault(Exception):
    """Why a name stands for no asset."""


class AssetNames:
    """The assets that names stand for. Each has a code, in the order in which it was first named.

    `listed` are the assets of the assets file, whose symbols come before those of the `registered` ones of the store.
    A name of no asset makes a new one if its row describes it, or with `add_new`: `native;<symbol>`, unless it is an id
    or an address. `cure` says what else to do about such a name. With `pairs`, BTC/USD is BTC.
    """

    def __init__(
        self,
        listed: Iterable[Asset],
        registered: Iterable[Asset],
        *,
        add_new: bool,
        cure: str = _CURE,
        pairs: bool = False,
    ) -> None:
        self.ids: list[str] = []
        """The ids by code."""
        self.new: dict[str, Asset] = {}
        """The assets that were made, by id."""
        self._add_new = add_new
        self._cure = cure
        self._pairs = pairs
        self._codes: dict[str, int] = {}
        self._named: dict[tuple[str, str, str | None], Named] = {}
        self._keys: dict[str, str] = {}
        self._symbols: dict[str, dict[str, list[str]]] = {}
        known = list(registered)
        # Of symbols that no present asset has.
        self._former = by_symbol(known)
        for asset in known:
            self._know(asset)
        described = list(listed)
        for asset in described:
            self._symbols.pop(asset.symbol.casefold(), None)
        for asset in described:
            self._know(asset)

    def _know(self, asset: Asset) -> None:
        # A store may have an asset in two cases; then each is meant by its own id.
        self._keys[asset.id] = asset.id
        self._keys.setdefault(id_key(asset.id), asset.id)
        if asset.ended_at:
            return
        spellings = self._symbols.setdefault(asset.symbol.casefold(), {})
        ids = spellings.setdefault(asset.symbol, [])
        if asset.id not in ids:
            ids.append(asset.id)

    def named(self, name: str, symbol: str = "", decimals: str | None = None) -> Named:
        """What a name stands for; `symbol` is that beside an id. With `decimals` both describe the asset of an
        address."""
        key = name, symbol, decimals
        if key not in self._named:
            try:
                self._named[key] = Named(self.code_of(self._resolved(name.strip(), symbol.strip(), decimals)))
            except _Fault as fault:
                self._named[key] = Named(None, str(fault))
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

    def _resolved(self, name: str, symbol: str, decimals: str | None) -> str:
        if not name:
            raise _Fault("the asset is empty")
        for asset_id in (name, f"{AssetGroup.TOKEN};{name}"):
            known = self._keys.get(asset_id) or self._keys.get(id_key(asset_id))
            if known:
                return known
        if decimals is not None:
            return self._made(token_of(symbol, name, decimals))
        spellings = self._symbols.get(name.casefold(), {})
        ids = spellings.get(name) or [asset_id for same in spellings.values() for asset_id in same]
        ids = ids or self._former.get(name.casefold(), [])
        if len(ids) == 1:
            return ids[0]
        if ids:
            raise _Fault(f"several assets have this symbol; write one of their ids: {', '.join(sorted(ids))}")
        if self._pairs and (pair := _pair_of(name)):
            if fault := pair_fault(name):
                raise _Fault(fault)
            return self._resolved(pair[0], pair[0] if symbol == name else symbol, None)
        if not self._add_new:
            raise _Fault(f"unknown asset {name[:40]!r}, neither in the store nor in an --assets file; {self._cure}")
        return self._made(_asset(name, symbol))

    def _made(self, asset: Asset | str) -> str:
        if isinstance(asset, str):
            raise _Fault(f"no asset can be made of it: {asset}")
        self.new[asset.id] = asset
        self._know(asset)
        return asset.id


def pair_fault(name: str) -> str | None:
    """Why a symbol that is a pair, such as BTC/EUR, has no price in USD; None of any other."""
    pair = _pair_of(name)
    if pair is None or pair[1].casefold() in DOLLARS:
        return None
    return (
        f"{name!r} is {pair[0]} in {pair[1]}, and prices are in USD; convert them, or describe an asset of this symbol "
        "with --assets"
    )


def _pair_of(name: str) -> tuple[str, str] | None:
    """What a symbol prices, and in what, if it is a pair."""
    match = _PAIR.fullmatch(name)
    if match is None:
        return None
    what, separator, money = match.groups()
    is_pair = separator == "/" or money.casefold() in DOLLARS or _OTHER_MONEY.fullmatch(money.casefold())
    return (what, money) if is_pair else None


def _asset(name: str, symbol: str) -> Asset | str:
    """The asset that a name, and perhaps a symbol, make, whose decimals nobody stated; or the error in them."""
    try:
        split_id(name)
        asset = unknown_asset(name)
    except ValueError:
        group = AssetGroup.TOKEN if _ADDRESS.fullmatch(name) else AssetGroup.NATIVE
        asset = unknown_asset(f"{group};{name}")
    symbol = symbol or asset.symbol
    fault = asset_fault(symbol, asset.group_key, "0")
    return fault or replace(asset, name=symbol, symbol=symbol, symbol_denom="")
