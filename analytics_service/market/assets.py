"""Assets: ids and addresses, finding them by name, and changes of their definitions."""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from difflib import get_close_matches
from enum import StrEnum
from functools import lru_cache
from operator import itemgetter
from typing import Annotated

from bech32 import bech32_decode, bech32_encode, convertbits

from analytics_service.errors import EntityNotFound, ParameterInvalid
from analytics_service.market.instants import EPOCH, from_unix
from analytics_service.market.kinds import TIME_LIMIT, AssetId, Places, Text, Word
from analytics_service.market.kinds import AssetGroup as AssetGroup
from analytics_service.market.kinds import split_id as split_id

# BIP 173's limit, which the library does not check.
_MAX_LENGTH = 90
# Ids with these prefixes are compared without case (rule 3.4, canonical ids).
HEX = ("token;0x", "token;0X")
# `listed_until` of an asset that its source lists in the newest snapshot.
LISTED = from_unix(TIME_LIMIT - 1)


def parse_address(address: str) -> str:
    """The address in lower case, as stored and compared (rule 6.1, valid addresses). ValueError, with the reason, if
    malformed. A bech32 address needs a valid checksum, has any prefix, and must not mix upper and lower case."""
    if re.fullmatch(r"0x[0-9a-fA-F]{40}", address):
        return address.lower()
    prefix, _ = bech32_decode(address) if len(address) <= _MAX_LENGTH else (None, None)
    if prefix is None:
        raise ValueError("must be bech32 with a valid checksum, or 0x and 40 hex digits")
    return address.lower()


def bech32_address(prefix: str, payload: bytes) -> str:
    """The payload (20 bytes for a user, 32 for a contract) as a bech32 address. ValueError if it is too long."""
    groups = convertbits(payload, 8, 5) or []
    address = bech32_encode(prefix, groups)
    if len(address) > _MAX_LENGTH:
        raise ValueError(f"{len(payload)} bytes do not fit into an address")
    return address


class AssetKind(StrEnum):
    REGULAR = "regular"
    RECEIPT = "protocol_receipt_token"
    LIQUID_STAKING = "liquid_staking_token"


@dataclass(frozen=True, slots=True)
class Asset:
    """An asset's identity, metadata and classification.

    A source may give only one of the links `origin_asset` and `receipt_asset`: see `link_receipts`. It does not set the
    fields without a column type, which come from the store and are not compared.
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
    """The last instant with values, if the asset has ended."""
    former_symbols: tuple[str, ...] = field(default=(), compare=False)

    @property
    def id(self) -> Annotated[str, AssetId("Asset id, <group>;<group_key>")]:
        """`<group>;<group_key>`, unique over all assets."""
        return f"{self.group};{self.group_key}"

    def has_ended(self, at: datetime) -> bool:
        """Whether the asset no longer has a value at an instant."""
        return self.ended_at is not None and self.ended_at < at

    @property
    def is_described(self) -> bool:
        """Whether its decimals are known. If not, its denom unit has no symbol either."""
        return bool(self.symbol_denom)


def link_receipts(assets: Mapping[str, Asset]) -> dict[str, Asset]:
    """Assets by id, each with its receipt token, even if only the receipt token names its origin (rule 4.6, receipt
    prices). If an origin has several receipt tokens, the first by id wins."""
    receipts: dict[str, str] = {}
    for asset_id, asset in sorted(assets.items()):
        if asset.kind is AssetKind.RECEIPT and asset.origin_asset:
            receipts.setdefault(asset.origin_asset, asset_id)
    return {
        asset_id: replace(asset, receipt_asset=asset.receipt_asset or receipts.get(asset_id))
        for asset_id, asset in assets.items()
    }


def origins_of(assets: Iterable[Asset]) -> dict[str, str]:
    """The origin of each receipt token, by id, from assets of `link_receipts`."""
    return {asset.receipt_asset: asset.id for asset in assets if asset.receipt_asset}


def redemption_chain(asset_id: str, origins: Mapping[str, str]) -> list[str]:
    """An asset, its origin if it is a receipt token, the origin's origin, and so on, each once."""
    chain = [asset_id]
    while (origin := origins.get(chain[-1])) and origin not in chain:
        chain.append(origin)
    return chain


def id_key(asset_id: str) -> str:
    """The key for comparing asset ids: `token;0x...` without case (rule 3.4)."""
    return asset_id.lower() if asset_id.startswith(HEX) else asset_id


class AssetIds:
    """Finds ids of assets in any case (rule 3.4). If an id is known in two cases, an exact match wins, then the
    first."""

    def __init__(self, ids: Iterable[str] = ()) -> None:
        self._known: dict[str, str] = {}
        for asset_id in ids:
            self.add(asset_id)

    def add(self, asset_id: str) -> str:
        """Make an id known, and return it."""
        self._known.setdefault(id_key(asset_id), asset_id)
        self._known[asset_id] = asset_id
        return asset_id

    def find(self, asset_id: str) -> str | None:
        """The known spelling of an id, or None."""
        return self._known.get(asset_id) or self._known.get(id_key(asset_id))


def stored_id(asset_ids: Iterable[str], stored: Collection[str]) -> list[str]:
    """The ids in their stored spelling, without duplicates. Unknown ids stay as they are."""
    ids = [*asset_ids]
    if not all(asset_id in stored for asset_id in ids):
        known = AssetIds(stored)
        ids = [known.find(asset_id) or asset_id for asset_id in ids]
    return list(dict.fromkeys(ids))


class AssetFinder:
    """Finds assets by id, address or symbol (rule 2.18, asset names). A symbol of a `preferred` asset means no other
    asset. If `spelled`, an exact match of a symbol comes before matches in other case."""

    def __init__(self, assets: Iterable[Asset], preferred: Iterable[Asset] = (), *, spelled: bool = False) -> None:
        self._ids = AssetIds()
        self._is_spelled = spelled
        # By symbol in lower case: its assets' ids, each with its spelling of the symbol.
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
        self._ids.add(asset.id)
        symbols = self._former if asset.ended_at else self._present
        symbols.setdefault(asset.symbol.casefold(), {})[asset.id] = asset.symbol
        for symbol in asset.former_symbols:
            if symbol.casefold() != asset.symbol.casefold():
                self._former.setdefault(symbol.casefold(), {})[asset.id] = symbol

    def ids(self, name: str) -> list[str]:
        """The ids of the assets that a name may mean: by id, else by symbol, else by address."""
        if by_id := self._ids.find(name):
            return [by_id]
        by_address = self._ids.find(f"{AssetGroup.TOKEN};{name}")
        return self.of_symbol(name) or ([by_address] if by_address else [])

    def of_symbol(self, symbol: str) -> list[str]:
        """The ids of the present assets with a symbol in any case; if there are none, of assets that have ended or
        changed their symbol."""
        folded = symbol.casefold()
        found = self._present.get(folded) or self._former.get(folded) or {}
        exact = [asset_id for asset_id, own in found.items() if self._is_spelled and own == symbol]
        return exact or [*found]

    def similar(self, name: str) -> str:
        """Symbols that resemble an unknown name, joined by `or`."""
        symbols = {**self._former, **self._present}
        near = get_close_matches(name.casefold(), symbols, n=3)
        return " or ".join(next(iter(symbols[folded].values())) for folded in near)


def is_id(name: str) -> bool:
    """Whether an asset's name has the form of an id; else it is an address or a symbol."""
    try:
        return bool(split_id(name))
    except ValueError:
        return False


def resolve_ids(names: Iterable[str], assets: Mapping[str, Asset], parameter: str = "symbols") -> list[str]:
    """The ids of assets that a request's `parameter` names by id, address, or symbol in any case (rule 2.18). `assets`
    are all assets by id. An unknown id is accepted; EntityNotFound for any other unknown name, ParameterInvalid for a
    symbol of several assets."""
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


def resolve_id(name: str, assets: Mapping[str, Asset], parameter: str) -> str:
    """The id of one asset, named as in `resolve_ids`. EntityNotFound also for an unknown id."""
    (asset_id,) = resolve_ids([name], assets, parameter)
    if asset_id not in assets:
        raise EntityNotFound(f"{parameter}: {name[:100]!r} names no asset.")
    return asset_id


@lru_cache(maxsize=10_000)
def asset_spec(asset_id: str) -> Mapping[str, str]:
    """The AssetSpec object of an asset id. ValueError if the id is malformed."""
    group, key = split_id(asset_id)
    return {"id": asset_id, "group": str(group), "group_key": key}


def unknown_asset(asset_id: str) -> Asset:
    """An asset that is known only by its id; its amounts are in denom units. ValueError if the id is malformed."""
    group, key = split_id(asset_id)
    return Asset(group, key, name=key, symbol=key, symbol_denom=key, decimals_denom=0, decimals_display=0)


Listing = tuple[datetime, Sequence[Asset]]
# The instant from which a definition is valid, and the definition.
Definition = tuple[datetime, Asset]


def is_listed(asset: Asset) -> bool:
    return asset.listed_until == LISTED


def redefined(
    stored: Mapping[str, Asset],
    listings: Sequence[Listing],
    newest: datetime | None,
    max_age: timedelta,
    definitions: Mapping[str, Sequence[Definition]] | None = None,
    complete: Collection[datetime] = (),
) -> list[Definition]:
    """New definitions of assets by the listings of snapshots, oldest first. `stored` are the assets before, by id, and
    `newest` is the instant of the newest snapshot so far.

    An asset that has not been listed for `max_age` ended when it was last listed. Imported assets, which no source ever
    listed, never end, and an empty listing changes nothing.

    For listings before the newest snapshot, `definitions` are all stored definitions, by id, and `complete` the other
    complete snapshots from the first listing to the snapshot after the last; these keep the definitions that they show.
    """
    described = {asset.id: asset for _, assets in listings for asset in assets}
    seen = {asset.id: at for at, assets in listings for asset in assets}
    if not seen:
        return []
    at, last = listings[-1]
    if newest is not None and at < newest:
        listed = [_listed_before(stored.get(asset_id), described[asset_id], at) for asset_id, at in seen.items()]
    else:
        for asset in stored.values():
            if asset.listed_until is not None:
                seen[asset.id] = max(seen.get(asset.id, EPOCH), min(asset.listed_until, newest or at))
        current = {asset.id for asset in last}
        assets = {**stored, **described}
        differing = {asset.id for _, assets in listings for asset in assets if stored.get(asset.id) != asset}
        # Most of ten thousand assets are unchanged.
        for asset_id in current - differing if definitions is None else ():
            if _ends(stored[asset_id]) == (LISTED, None):
                del seen[asset_id]
        listed = [
            replace(assets[asset_id], listed_until=LISTED)
            if asset_id in current
            else _unlisted(assets[asset_id], until, at - until >= max_age)
            for asset_id, until in seen.items()
        ]
    if definitions is None:
        definitions = {asset_id: [(EPOCH, asset)] for asset_id, asset in stored.items()}
    stated: dict[str, dict[datetime, Asset]] = defaultdict(dict)
    for instant_of_listing, listing in listings:
        for asset in listing:
            stated[asset.id][instant_of_listing] = asset
    found: list[Definition] = []
    for asset in listed:
        known = definitions.get(asset.id, ())
        changes = [*_changes(known, stated[asset.id], complete)]
        is_present = not known or (bool(changes) and changes[-1][0] >= known[-1][0])
        if not is_present and _ends(asset) != _ends(stored[asset.id]):
            changes.append((max(at, known[-1][0]), known[-1][1]))
        found += [
            (since, replace(then, listed_until=asset.listed_until, ended_at=asset.ended_at)) for since, then in changes
        ]
    return found


def _changes(
    known: Sequence[Definition], stated: Mapping[datetime, Asset], complete: Collection[datetime]
) -> Iterator[Definition]:
    """Additions to the known definitions of an asset: each stated definition is valid from its snapshot on, and other
    snapshots keep theirs."""
    added: Definition | None = None
    for at in sorted({*stated, *complete}):
        # The first definition is valid before its instant, too.
        then = known[max(bisect_right(known, at, key=itemgetter(0)) - 1, 0)] if known else None
        is_covered = added and (then is None or not added[0] < then[0] <= at)
        now, right = added if is_covered else then, stated.get(at) or (then and then[1])
        if right and (now is None or now[1] != right):
            added = (at, right)
            yield added


def _ends(asset: Asset) -> tuple[object, ...]:
    return asset.listed_until, asset.ended_at


def _unlisted(asset: Asset, until: datetime, has_ended: bool) -> Asset:
    return replace(asset, listed_until=until, ended_at=asset.ended_at or (until if has_ended else None))


def _listed_before(stored: Asset | None, asset: Asset, at: datetime) -> Asset:
    """The asset once it is known to be listed at an instant of the past, which moves only earlier ends, and no end from
    an import."""
    if stored is None:
        return replace(asset, listed_until=at)
    if stored.listed_until is None or stored.listed_until >= at:
        return stored
    return replace(stored, listed_until=at, ended_at=at if stored.ended_at == stored.listed_until else stored.ended_at)
