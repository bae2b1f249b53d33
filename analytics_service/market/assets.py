"""Assets and their ids."""

from collections.abc import Collection, Iterable, Mapping, Sequence
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


def as_stored(asset_ids: Iterable[str], stored: Collection[str]) -> list[str]:
    """The ids in their stored spelling, without duplicates. Ids that are not stored stay as they are.

    If an id is stored in two cases, an exact match wins; any other spelling means the last stored id.
    """
    return list(dict.fromkeys(_spelled([*asset_ids], stored)))


def _spelled(ids: Sequence[str], stored: Collection[str]) -> Sequence[str]:
    if all(asset_id in stored for asset_id in ids):
        return ids
    forms = {id_key(asset_id): asset_id for asset_id in stored}
    return [asset_id if asset_id in stored else forms.get(id_key(asset_id), asset_id) for asset_id in ids]


def by_symbol(assets: Iterable[Asset]) -> Mapping[str, list[str]]:
    """The ids that each symbol, in lower case, stands for: those of present assets, or if no present asset has it those
    of assets that ended with it or had it before (rule 2.18)."""
    present: dict[str, list[str]] = {}
    former: dict[str, list[str]] = {}
    for asset in assets:
        (former if asset.ended_at else present).setdefault(asset.symbol.casefold(), []).append(asset.id)
        for symbol in {symbol.casefold() for symbol in asset.former_symbols} - {asset.symbol.casefold()}:
            former.setdefault(symbol, []).append(asset.id)
    return {**former, **present}


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
    symbols: Mapping[str, list[str]] | None = None
    asset_ids = []
    named = [*names]
    ids = _spelled([name if is_id(name) else f"{AssetGroup.TOKEN};{name}" for name in named], assets)
    for name, asset_id in zip(named, ids, strict=True):
        if is_id(name) or asset_id in assets:
            asset_ids.append(asset_id)
            continue
        symbols = by_symbol(assets.values()) if symbols is None else symbols
        matches = symbols.get(name.casefold(), [])
        if not matches:
            near = [assets[symbols[one][0]].symbol for one in get_close_matches(name.casefold(), symbols, n=3)]
            similar = f" Did you mean {' or '.join(near)}?" if near else ""
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
