"""Positions of all addresses: only items that changed since the state in the store are written.

What changed is told from the store, never from memory: a digest for each address says which state of it was written
last. Digests are written before items, and hold only once their run is complete; of addresses without such a digest all
items are compared. So whatever a dead run left, the next one puts right, and readers see nothing before it is complete.
"""

from collections.abc import Sequence
from datetime import datetime

import polars as pl

from analytics_service.errors import SnapshotRefused
from analytics_service.sources.base import Source
from analytics_service.store.columns import whole_second
from analytics_service.store.connection import Store
from analytics_service.store.ledger import read_heads
from analytics_service.store.positions import (
    ITEM,
    ITEM_KEY,
    activity_frame,
    item_frame,
    read_digests,
    read_items,
)
from jobs.snapshot import Snapshot

FAMILY = "positions"
# Addresses whose stored items are asked for at a time: a parameter may be 128 KiB long, an address 90 characters.
_CHUNK = 1_000
_GONE = 0


def collect(source: Source, store: Store, instants: Sequence[datetime], version: int) -> list[Snapshot]:
    """The changes of positions up to an instant. SnapshotRefused for one that is older than what is stored."""
    (at,) = instants
    digests = read_digests(store)
    _refuse_past(store, digests, whole_second(at))
    items = item_frame(source.positions(at))
    changed = _changed(items, digests)
    stamp = {"observed_at": pl.lit(whole_second(at), pl.UInt32), "version": pl.lit(version, pl.UInt64)}
    rows = {
        "position_digest": changed.select("address", "digest").with_columns(**stamp),
        "position": _differences(store, items, changed, whole_second(at)).with_columns(**stamp),
        "position_summary": activity_frame(items, at, version),
    }
    return [Snapshot(at, rows)]


def _refuse_past(store: Store, digests: pl.DataFrame, at: int) -> None:
    head = read_heads(store).get(FAMILY)
    newest = max(head.at if head else 0, *digests["observed_at"].top_k(1), 0)
    if at < newest:
        raise SnapshotRefused(
            "Positions are stored as changes, so none can be added before the newest ones. Take a later snapshot."
        )


def _changed(items: pl.DataFrame, stored: pl.DataFrame) -> pl.DataFrame:
    """Addresses whose stored digest is another or does not hold, with that of now; _GONE for those without items.

    `stored` says whether there is one at all: before an address has a digest, it has no items either.
    """
    each_item = items.select("address", digest=pl.struct(pl.exclude("address")).hash())
    now = each_item.group_by("address").agg(pl.col("digest").bitwise_xor())
    was = pl.when(pl.col("complete") == 1).then("digest").alias("was")
    known = stored.select("address", was, stored=pl.lit(True))
    both = now.join(known, on="address", how="full", coalesce=True)
    return (
        both.with_columns(pl.col("digest").fill_null(_GONE))
        .filter(pl.col("digest").ne_missing(pl.col("was")))
        .select("address", "digest", pl.col("stored").fill_null(False))
        .sort("address")
    )


def _differences(store: Store, items: pl.DataFrame, addresses: pl.DataFrame, at: int) -> pl.DataFrame:
    """Items of the addresses that are new or different, and closed ones that are gone."""
    now = items.join(addresses, on="address", how="semi")
    known = addresses.filter("stored")["address"]
    chunks = (known.slice(start, _CHUNK).to_list() for start in range(0, known.len(), _CHUNK))
    stored = pl.concat([items.clear(), *(read_items(store, chunk, at) for chunk in chunks)])
    changed = now.join(stored, on=ITEM, how="anti", nulls_equal=True).with_columns(closed=pl.lit(False))
    gone = stored.join(now, on=ITEM_KEY, how="anti").with_columns(
        amount=pl.lit("0"),
        cascade=pl.lit(False),
        until=pl.lit(None, pl.UInt32),
        last_stake_acc=pl.lit(0, pl.Decimal(38, 18)),
        closed=pl.lit(True),
    )
    return pl.concat([changed, gone]).sort(ITEM_KEY)
