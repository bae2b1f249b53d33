"""Definitions of assets in the store."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import polars as pl

from analytics_service.clickhouse.columns import Columns, decode_rows, encode_tuples
from analytics_service.clickhouse.connection import Store
from analytics_service.market.assets import Asset, Definition, split_id
from analytics_service.market.instants import EPOCH, from_unix, unix_second
from analytics_service.market.kinds import FOREVER, AssetId, Time, columns_of, record_of
from analytics_service.store.ledger import last_snapshot_before

# The table of definitions. Readers see definitions up to the head of ASSETS_DATASET.
ASSETS = "asset_definition"
ASSETS_DATASET = "prices"
_NEWEST = 2**64 - 1
_LISTED = "Instant of the last snapshot in which the source listed the asset; in 2106 while listed, null if never"
_ENDED = "Last instant at which the asset has values; null while it has not ended"
COLUMNS: Columns = {
    "id": AssetId("Asset id, <group>;<group_key>"),
    **columns_of(Asset),
    "listed_until": Time(_LISTED, nullable=True),
    "ended_at": Time(_ENDED, nullable=True),
}


def read_assets(store: Store, version: int = _NEWEST, max_version: int = 0, at: int = FOREVER) -> dict[str, Asset]:
    """Every asset as defined at a version of the ledger and at an instant (unix second), by id, in the order of ids.
    Assets defined later, up to `max_version`, have their first definition."""
    rows = store.query("list_assets", version=version, max_version=max(version, max_version), at=at)
    return {row["id"]: _asset(row) for row in rows.iter_rows(named=True)}


def read_definitions(store: Store) -> Mapping[str, Sequence[Definition]]:
    """The definitions of each asset, oldest first, by id."""
    definitions: defaultdict[str, list[Definition]] = defaultdict(list)
    for row in store.query("list_definitions").iter_rows(named=True):
        definitions[row["id"]].append((from_unix(row["defined_at"]), _asset(row)))
    return definitions


def changed_assets(store: Store, assets: Sequence[Asset]) -> pl.DataFrame:
    """New and changed definitions as a batch for the table ASSETS, without `version`."""
    stored = read_assets(store) if assets else {}
    return present_frame(store, [asset for asset in assets if stored.get(asset.id) != asset])


def present_frame(store: Store, assets: Sequence[Asset]) -> pl.DataFrame:
    """Definitions that are valid from the newest snapshot of prices on, as a batch without `version`."""
    newest = from_unix(last_snapshot_before(store, ASSETS_DATASET, FOREVER) or 0) if assets else EPOCH
    return asset_frame((newest, asset) for asset in assets)


def asset_frame(definitions: Iterable[Definition]) -> pl.DataFrame:
    """Definitions as a batch without `version`."""
    rows = [*definitions]
    times = pl.Series("defined_at", [unix_second(at) for at, _ in rows], pl.UInt32)
    return encode_tuples(map(attrgetter(*COLUMNS), (asset for _, asset in rows)), COLUMNS).with_columns(times)


def read_spans(store: Store) -> dict[str, tuple[int, int]]:
    """The first and the last unix second with a value, by asset id. Reads all observations."""
    return {asset_id: (first, last) for asset_id, first, last in store.query("list_observed_spans").iter_rows()}


def _asset(row: dict[str, Any]) -> Asset:
    group, key = split_id(str(row["id"]))
    values = decode_rows(row, COLUMNS)
    found = {name: values[name] for name in ("listed_until", "ended_at")}
    return record_of(Asset, values, group=group, group_key=key, former_symbols=tuple(row["former_symbols"]), **found)
