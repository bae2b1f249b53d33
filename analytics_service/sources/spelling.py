"""The door of sources: whatever a source answers names each asset as the store does (rule 3.4)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import datetime
from functools import cache, partial
from typing import Any, cast

from analytics_service.clickhouse.connection import Store
from analytics_service.market.assets import HEX, Asset, id_key
from analytics_service.market.fields import kinds_of
from analytics_service.market.kinds import AssetId, Kind
from analytics_service.sources.base import Source
from analytics_service.store.datasets.assets import read_assets


def spelled(source: Source, store: Store, at: datetime) -> Source:
    """The source, whose answers have the ids of assets as the store spells them; those of new assets are spelled as in
    its definitions at an instant, whichever of its methods names them."""
    return cast(Source, _Spelled(source, _Spellings(source, store, at)))


class _Spelled:
    def __init__(self, source: Source, ids: "_Spellings") -> None:
        self._source = source
        self._ids = ids

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._source, name)
        return (lambda *instants: _respelled(member(*instants), self._ids)) if callable(member) else member


class _Spellings(dict[str, str]):
    """The spelling of each id. The store is read, and the source asked, when the first address in hex comes."""

    def __init__(self, source: Source, store: Store, at: datetime) -> None:
        self._known: dict[str, str] = {}
        self._source, self._store, self._at = source, store, at

    def __missing__(self, asset_id: str) -> str:
        # A source of another package may answer with anything.
        if not str(asset_id).startswith(HEX):
            return self.setdefault(asset_id, asset_id)
        if not self._known:
            stored = read_assets(self._store)
            listed = [asset.id for asset in self._source.assets(self._at)]
            self._known = {id_key(known): known for known in (*listed, *stored)}
            # A store may have an asset in two cases; then each is meant by its own id.
            self.update(zip(stored, stored, strict=True))
        return self.setdefault(asset_id, self._known.setdefault(id_key(asset_id), asset_id))


def _respelled(value: Any, ids: _Spellings) -> Any:
    """A record, or what holds some, with other ids: those of fields, and those that are keys of mappings."""
    if isinstance(value, (tuple, list)):
        return tuple([_respelled(item, ids) for item in value])
    kind: Any = type(value)
    if parts := _parts_of(kind):
        own, inner = parts
        changed = {"group_key": ids[value.id].partition(";")[2]} if kind is Asset else {}
        for name in own:
            held = getattr(value, name)
            if held and (spelt := ids[held]) != held:
                changed[name] = spelt
        for name in inner:
            held = getattr(value, name)
            if held and (spelt := _respelled(held, ids)) != held:
                changed[name] = spelt
        return replace(value, **changed) if changed else value
    if isinstance(value, Mapping):
        return {ids[key]: item for key, item in value.items()}
    if isinstance(value, Iterator):
        return map(partial(_respelled, ids=ids), value)
    return _respelled([*value], ids) if isinstance(value, Iterable) and not isinstance(value, str) else value


@cache
def _parts_of(kind: Any) -> tuple[list[str], list[str]] | None:
    """The names of a record's fields that are ids of assets, and of those that may hold records or mappings."""
    if not is_dataclass(kind):
        return None
    record: Any = kind
    kinds = kinds_of(record)
    own = [name for name, declared in kinds.items() if isinstance(declared, AssetId)]
    return own, [field.name for field in fields(record) if not isinstance(kinds.get(field.name), Kind)]
