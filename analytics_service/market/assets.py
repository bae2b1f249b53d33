"""Assets and their ids."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from difflib import get_close_matches
from enum import StrEnum
from functools import lru_cache
from typing import Annotated

from analytics_service.errors import EntityNotFound, ParameterInvalid
from analytics_service.market.kinds import AssetGroup as AssetGroup
from analytics_service.market.kinds import AssetId, Places, Text, Word
from analytics_service.market.kinds import split_id as split_id

# How the ids begin that are compared without case (rule 3.4).
HEX = ("token;0x", "token;0X")


class AssetKind(StrEnum):
    """Classification of an asset."""

    REGULAR = "regular"
    RECEIPT = "protocol_receipt_token"
    LIQUID_STAKING = "liquid_staking_token"


@dataclass(frozen=True, slots=True)
class Asset:
    """An asset's identity, metadata and classification.

    A source may give only one of the links `origin_asset` and `receipt_asset`: see `linked`. It says nothing of the
    fields without a kind, which the store has, and which are not compared.
    """

    group: AssetGroup
    group_key: str
    name: Annotated[str, Text("Full name")]
    symbol: Annotated[str, Text("Symbol of a standard unit")]
    symbol_denom: Annotated[str, Text("Symbol of a denom unit")]
    decimals_denom: Annotated[
        int, Places("Decimal places between denom and standard units: 10^this denom make one standard unit")
    ]
    decimals_display: Annotated[int, Places("Decimal places shown in texts")]
    kind: Annotated[AssetKind, Word("Classification: regular, protocol_receipt_token or liquid_staking_token")] = (
        AssetKind.REGULAR
    )
    origin_asset: Annotated[
        str | None, AssetId("Id of the asset that a receipt or liquid-staking token represents")
    ] = None
    receipt_asset: Annotated[str | None, AssetId("Id of the receipt token of a regular asset")] = None
    listed_until: datetime | None = field(default=None, compare=False)
    ended_at: datetime | None = field(default=None, compare=False)
    """The last instant of its values, if it has ended."""
    former_symbols: tuple[str, ...] = field(default=(), compare=False)

    @property
    def id(self) -> Annotated[str, AssetId("Asset id, <group>;<group_key>")]:
        """`<group>;<group_key>`, unique over all assets."""
        return f"{self.group};{self.group_key}"

    def has_ended(self, at: datetime) -> bool:
        """Whether it has no value any more at an instant."""
        return self.ended_at is not None and self.ended_at < at

    @property
    def is_described(self) -> bool:
        """Whether anybody has stated its decimals. Without that, it has no symbol of a denom unit either."""
        return bool(self.symbol_denom)


def linked(assets: Mapping[str, Asset]) -> dict[str, Asset]:
    """The same assets by id, each with its receipt token, even if only the receipt token names its origin (rule 4.6).

    Of several receipt tokens with the same origin, the first by id is its receipt token.
    """
    receipts: dict[str, str] = {}
    for asset_id, asset in sorted(assets.items()):
        if asset.kind is AssetKind.RECEIPT and asset.origin_asset:
            receipts.setdefault(asset.origin_asset, asset_id)
    return {
        asset_id: replace(asset, receipt_asset=asset.receipt_asset or receipts.get(asset_id))
        for asset_id, asset in assets.items()
    }


def origins_of(assets: Iterable[Asset]) -> dict[str, str]:
    """What receipt tokens redeem, by their ids; of `linked` assets."""
    return {asset.receipt_asset: asset.id for asset in assets if asset.receipt_asset}


def line_of(asset_id: str, origins: Mapping[str, str]) -> list[str]:
    """An asset, and if it is a receipt token what it redeems, and so on, each once."""
    line = [asset_id]
    while (origin := origins.get(line[-1])) and origin not in line:
        line.append(origin)
    return line


def id_key(asset_id: str) -> str:
    """The key by which asset ids are compared. Ids `token;0x...` are compared without case (rule 3.4)."""
    return asset_id.lower() if asset_id.startswith(HEX) else asset_id


class AssetIds:
    """Ids of assets, which are found in any case (rule 3.4). One that is known in two cases is found as it is written;
    any other spelling means the first of them."""

    def __init__(self, ids: Iterable[str] = ()) -> None:
        self._known: dict[str, str] = {}
        for asset_id in ids:
            self.add(asset_id)

    def add(self, asset_id: str) -> str:
        """The id, which is known from now on."""
        self._known.setdefault(id_key(asset_id), asset_id)
        self._known[asset_id] = asset_id
        return asset_id

    def find(self, asset_id: str) -> str | None:
        """The id in its known spelling, if it is known."""
        return self._known.get(asset_id) or self._known.get(id_key(asset_id))


def as_stored(asset_ids: Iterable[str], stored: Collection[str]) -> list[str]:
    """The ids in their stored spelling, without duplicates. Ids that are not stored stay as they are."""
    ids = [*asset_ids]
    if not all(asset_id in stored for asset_id in ids):
        known = AssetIds(stored)
        ids = [known.find(asset_id) or asset_id for asset_id in ids]
    return list(dict.fromkeys(ids))


class AssetFinder:
    """Finds assets by id, address or symbol (rule 2.18). A symbol of `preferred` assets means none of the others; if
    it is `spelled`, those that spell it so come before others."""

    def __init__(self, assets: Iterable[Asset], preferred: Iterable[Asset] = (), *, spelled: bool = False) -> None:
        self._ids = AssetIds()
        self._is_spelled = spelled
        # The assets of each symbol in lower case, by id, with their spelling of it.
        self._present: dict[str, dict[str, str]] = {}
        self._former: dict[str, dict[str, str]] = {}
        described = [*preferred]
        for asset in assets:
            self.add(asset)
        for asset in described:
            self._present.pop(asset.symbol.casefold(), None)
        for asset in described:
            self.add(asset)

    def add(self, asset: Asset) -> None:
        """Let an asset be found from now on."""
        self._ids.add(asset.id)
        symbols = self._former if asset.ended_at else self._present
        symbols.setdefault(asset.symbol.casefold(), {})[asset.id] = asset.symbol
        for symbol in asset.former_symbols:
            if symbol.casefold() != asset.symbol.casefold():
                self._former.setdefault(symbol.casefold(), {})[asset.id] = symbol

    def ids(self, name: str) -> list[str]:
        """The ids of the assets that a name may mean: that of an id, those of a symbol, or that of an address."""
        if by_id := self._ids.find(name):
            return [by_id]
        by_address = self._ids.find(f"{AssetGroup.TOKEN};{name}")
        return self.of_symbol(name) or ([by_address] if by_address else [])

    def of_symbol(self, symbol: str) -> list[str]:
        """The ids of the present assets with a symbol in any case, or if there are none, of those that ended with it or
        had it before."""
        folded = symbol.casefold()
        found = self._present.get(folded) or self._former.get(folded) or {}
        exact = [asset_id for asset_id, own in found.items() if self._is_spelled and own == symbol]
        return exact or [*found]

    def similar(self, name: str) -> str:
        """Symbols that resemble a name of no asset, with `or` between them."""
        symbols = {**self._former, **self._present}
        near = get_close_matches(name.casefold(), symbols, n=3)
        return " or ".join(next(iter(symbols[folded].values())) for folded in near)


def is_id(name: str) -> bool:
    """Whether a name of an asset has the form of an id; else it is an address or a symbol."""
    try:
        return bool(split_id(name))
    except ValueError:
        return False


def named_ids(names: Iterable[str], assets: Mapping[str, Asset], parameter: str = "symbols") -> list[str]:
    """The ids of assets that are named by id, which may be of no asset, by address, or by symbol in any case (rule
    2.18); `assets` are all, by id, and the request gives the names in the `parameter`.

    EntityNotFound for another name of no asset; ParameterInvalid for a symbol of several assets.
    """
    finder: AssetFinder | None = None
    asset_ids = []
    for name in names:
        if name in assets:
            asset_ids.append(name)
            continue
        finder = finder or AssetFinder(assets.values())
        matches = finder.ids(name) or ([name] if is_id(name) else [])
        if not matches:
            similar = f" Did you mean {near}?" if (near := finder.similar(name)) else ""
            raise EntityNotFound(f"{parameter}: {name[:100]!r} is the symbol of no asset.{similar}")
        if len(matches) > 1:
            instead = "in asset_ids" if parameter == "symbols" else "by id"
            raise ParameterInvalid(
                parameter,
                f"{name[:100]!r} is the symbol of several assets; name one of them {instead}: {', '.join(matches)}",
            )
        asset_ids += matches
    return asset_ids


def id_of(name: str, assets: Mapping[str, Asset], parameter: str) -> str:
    """The id of one asset, named as in `named_ids`. EntityNotFound also for an id of no asset."""
    (asset_id,) = named_ids([name], assets, parameter)
    if asset_id not in assets:
        raise EntityNotFound(f"{parameter}: {name[:100]!r} names no asset.")
    return asset_id


@lru_cache(maxsize=10_000)
def asset_spec(asset_id: str) -> Mapping[str, str]:
    """The AssetSpec object of an asset id. ValueError if the id is malformed."""
    group, key = split_id(asset_id)
    return {"id": asset_id, "group": str(group), "group_key": key}


def unknown_asset(asset_id: str) -> Asset:
    """An asset known only by its id; its amounts are in denom units. ValueError if the id is malformed."""
    group, key = split_id(asset_id)
    return Asset(group, key, name=key, symbol=key, symbol_denom=key, decimals_denom=0, decimals_display=0)
