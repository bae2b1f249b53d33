"""Merges an asset into another: its histories and events become that one's, and its definition goes.

Each family is a rewrite (rule 8.3). The definition goes last, so a merge that was stopped goes on when it is started
again.
"""

import difflib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import polars as pl

from analytics_service.clickhouse.columns import versioned
from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.queries import named_query
from analytics_service.errors import AssetRefused
from analytics_service.market.assets import Asset, as_stored
from analytics_service.market.instants import instant, shown
from analytics_service.store import rewrite
from analytics_service.store.datasets.assets import ASSETS, ASSETS_FAMILY, present_frame, read_assets
from analytics_service.store.datasets.events import EVENTS
from analytics_service.store.datasets.histories import HISTORIES, History
from analytics_service.store.datasets.observations import OBSERVATIONS
from analytics_service.store.datasets.sums import action_of
from analytics_service.store.ledger import VALUES_ONLY, Run
from analytics_service.store.rewrite import Staging, staging
from analytics_service.store.schema import TABLES

_WHAT = "merge"
# Snapshots that come while a family is merged are merged next.
_PASSES = 10


@dataclass(frozen=True, slots=True)
class Part:
    """What the merge changes in a history or in events: rows that get the other id, and how many of them go
    because the other asset has an observation at their second."""

    family: str
    name: str
    rows: int
    same: int = 0


@dataclass(frozen=True, slots=True)
class Merge:
    """A merge of `old` into `new`, both as they are defined now."""

    store: Store
    old: Asset
    new: Asset

    def parts(self) -> list[Part]:
        """What there is to change, by family."""
        families = {history.name: history.family for history in HISTORIES}
        both = {"old": self.old.id, "new": self.new.id}
        counted = self.store.frame("histories_of_asset", **both).iter_rows()
        parts = [Part(families[name], name, rows, same) for name, rows, same in counted]
        if events := _count(self.store, EVENTS, self.old.id):
            parts.append(Part("loans", EVENTS, events))
        return sorted(parts, key=lambda part: list(families.values()).index(part.family))

    def write(self, report: Callable[[str], None]) -> None:
        """Merge family by family, and `report` each that is done."""
        for _ in range(_PASSES):
            rows: Counter[str] = Counter()
            for part in self.parts():
                rows[part.family] += part.rows
            for family, expected in rows.items():
                self._write(family, expected)
                report(f"{family}: merged.")
            if not rows:
                break
        with staging(self.store, ASSETS_FAMILY, None, what=_WHAT) as staged:
            staged.insert(ASSETS, versioned(present_frame(self.store, self._linked()), staged.version))
            staged.undefine(self.old)
            rewrite.publish(self.store, staged, [])

    def _write(self, family: str, expected: int) -> None:
        with staging(self.store, family, None, what=_WHAT, expected=expected) as staged:
            moved = [self._move(staged, history) for history in HISTORIES if history.family == family]
            staged.rename(self.old.id, self.new.id)
            rows = pl.concat(moved)
            values = rows.filter("is_imported")
            rewrite.publish(self.store, staged, [self._run(family, staged.version, values)] if values.height else [])

    def _run(self, family: str, version: int, rows: pl.DataFrame) -> Run:
        """The row of the ledger for values that snapshots have not: they count as imported."""
        first, last = rows.select(first=pl.col("observed_at").min(), last=pl.col("observed_at").max()).row(0)
        at = VALUES_ONLY if TABLES[family] else last
        source = f"merge of {self.old.id}"
        return Run(family, at, "import", first, last, rows.height, source, version, files=version)

    def _move(self, staged: Staging, history: History) -> pl.DataFrame:
        """Stage a history of both. Returns what the new one gets: `observed_at`, `value`, `is_imported`."""
        both = {"old": self.old.id, "new": self.new.id}
        parts = {"given_values": named_query("given_values", ())}
        series = self.store.frame("merged_series", parts, history=history.name, **both)
        old, new = series.filter("is_old"), series.filter(~pl.col("is_old"))
        staged.remove(old.with_columns(history=pl.lit(history.name), asset_id=pl.lit(self.old.id)))
        if not history.cumulative:
            rows = old.join(new, on="observed_at", how="anti").with_columns(is_imported=True)
        elif old.is_empty():
            rows = old
        else:
            events = self.store.frame("merged_sums", action=action_of(history), **both)
            rows = added_up(old, new, events)
            self._require_rising(history, rows)
        added = rows.select(
            pl.lit(history.name).alias("history"), pl.lit(self.new.id).alias("asset_id"), "observed_at", "value"
        )
        staged.insert(OBSERVATIONS, versioned(added, staged.version))
        return rows.select("observed_at", "value", "is_imported")

    def _require_rising(self, history: History, rows: pl.DataFrame) -> None:
        both = rows.with_columns(pl.col("observed_at", "value").shift(1).name.suffix("_before"))
        for row in both.filter(pl.col("value") < pl.col("value_before")).head(1).iter_rows(named=True):
            raise AssetRefused(
                f"{history.slug} of both cannot be merged, because they never fall: {row['value_before']} USD at "
                f"{shown(instant(row['observed_at_before']))}, and {row['value']} at "
                f"{shown(instant(row['observed_at']))}. Take out what is wrong with `analytics-service remove "
                f"{history.slug}`, and merge again."
            )

    def _linked(self) -> list[Asset]:
        """The assets that name the old one as origin or receipt token, naming the new one."""
        stored = read_assets(self.store).values()
        origin = [replace(asset, origin_asset=self.new.id) for asset in stored if asset.origin_asset == self.old.id]
        receipt = [replace(asset, receipt_asset=self.new.id) for asset in stored if asset.receipt_asset == self.old.id]
        return [asset for asset in (*origin, *receipt) if asset.id != self.old.id]


def added_up(old: pl.DataFrame, new: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """The cumulative values of both assets as one, at the seconds of both from the first of the old one on: the last
    imported value, and the events of both since; no less than the other asset's own, which its source may have stated.
    `events` has the sum of both up to the second of each."""
    seconds = pl.concat([old, new]).select("observed_at").unique().sort("observed_at")
    imported = pl.concat([old, new]).filter("is_imported").unique("observed_at", keep="last").sort("observed_at")
    base = imported.select("observed_at", base="value").join_asof(events, on="observed_at").rename({"events": "before"})
    rows = seconds.filter(pl.col("observed_at") >= old["observed_at"].min()).join_asof(base, on="observed_at")
    rows = rows.join_asof(events, on="observed_at").join_asof(new.select("observed_at", own="value"), on="observed_at")
    known = pl.col("base").fill_null(0) + pl.col("events").fill_null(0) - pl.col("before").fill_null(0)
    at = pl.col("observed_at")
    return rows.select(
        at,
        value=pl.max_horizontal(known, pl.col("own").fill_null(0)),
        is_imported=at.is_in(imported["observed_at"].implode()),
    )


def merge_of(store: Store, old_id: str, new_id: str) -> Merge:
    """The merge of two assets. AssetRefused if they cannot be merged."""
    assets = read_assets(store)
    old, new = _named(assets, old_id), _named(assets, new_id)
    if old == new:
        raise AssetRefused(f"OLD and NEW are the same asset, {old.id}.")
    if tables := _snapshots_of(store, old.id):
        swap = "" if _snapshots_of(store, new.id) else f" {new.id} is in none: swap both."
        raise AssetRefused(
            f"{old.id} is in snapshots ({', '.join(tables)}). OLD may have only histories and events.{swap}"
        )
    if old.is_described and old.decimals_denom != new.decimals_denom:
        stated = new.decimals_denom if new.is_described else "unknown"
        raise AssetRefused(
            f"{old.id} has {old.decimals_denom} decimals, and those of {new.id} are {stated}, so amounts of events "
            "would change. These are two assets, or one of them is described wrongly."
        )
    return Merge(store, old, new)


def _named(assets: Mapping[str, Asset], asset_id: str) -> Asset:
    if asset_id in assets:
        return assets[asset_id]
    (stored,) = as_stored([asset_id], assets)
    if stored in assets:
        return assets[stored]
    same = [asset.id for asset in assets.values() if asset.symbol.casefold() == asset_id.casefold()]
    near = same or difflib.get_close_matches(asset_id, assets, n=3)
    similar = f" Did you mean {' or '.join(near)}?" if near else ""
    raise AssetRefused(f"{asset_id[:100]!r} is the id of no asset.{similar}")


def _snapshots_of(store: Store, asset_id: str) -> list[str]:
    """The tables of snapshots that name an asset."""
    tables = [table for owned in TABLES.values() for table in owned if table != EVENTS]
    columns = store.frame("asset_tables", tables=tables).iter_rows()
    return list(dict.fromkeys(table for table, column in columns if _count(store, table, asset_id, column)))


def _count(store: Store, table: str, asset_id: str, column: str = "asset_id") -> int:
    return int(store.frame("rows_of_asset", table=table, column=column, asset_id=asset_id)["rows"].item())
