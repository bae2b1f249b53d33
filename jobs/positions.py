"""Accounts, stakes and wallets of all addresses, and their risk. Only items that changed are written.

Changes are found by comparing with the store, never with memory: a digest for each address identifies the state that
was written last. A digest counts only if its run is complete; a run that died may have left a later digest. For an
address without a digest that counts, all items are compared.
"""

from datetime import datetime

import polars as pl

from analytics_service.errors import SnapshotRefused
from analytics_service.market.assets import linked
from analytics_service.market.book import Terms, Valuation, book_of
from analytics_service.market.instants import unix_second
from analytics_service.market.positions import Position
from analytics_service.market.risk import near_risk, risk_of
from analytics_service.store.connection import Store
from analytics_service.store.markets import risk_by_history, risk_totals
from analytics_service.store.observations import observations_of
from analytics_service.store.positions import (
    CLOSED,
    ITEM,
    ITEM_KEY,
    activity_rows,
    borrowing_of,
    digests_of,
    item_frame,
    read_borrowing_between,
    read_digests,
    read_items,
)
from analytics_service.store.sql import MAX_ADDRESSES
from jobs.snapshot import Batch, Snapshot

HISTORY = False
# The digest of an address without items.
_GONE = 0


def collect(batch: Batch) -> list[Snapshot]:
    """The changes of positions up to an instant. SnapshotRefused if it is older than the stored positions."""
    (at,) = batch.instants
    second = unix_second(at)
    digests = read_digests(batch.store)
    _refuse_past(batch, second)
    items, stated = _items(batch, at), batch.source.activity(at)
    # The risk of some positions would be taken for that of all.
    observations = stated_risk(batch, at) if stated else risk_at(batch, at, items)
    changed = _changed(items, digests)
    changes = {
        "position_digest": changed.select("address", "digest"),
        "position": _differences(batch.store, items, changed, second),
    }
    observed_at = pl.lit(second, pl.UInt32).alias("observed_at")
    dated = {table: rows.with_columns(observed_at) for table, rows in changes.items()}
    return [Snapshot(at, observations, activity_rows(items, stated), dated)]


def _items(batch: Batch, at: datetime) -> pl.DataFrame:
    """The items of all addresses. An address with one that cannot be stored keeps those in the store: without a single
    one, its health would be another."""
    unfit: list[Position] = []
    items = item_frame(batch.source.positions(at), unfit)
    if not unfit:
        return items
    faults = [(position, batch.left_out.faults("positions", position, Position)) for position in unfit]
    kept = {position.address.lower() for position, of in faults if all(fault.path != "address" for fault in of)}
    others = items.filter(~pl.col("address").is_in(kept))
    return pl.concat([others, read_items(batch.store, [*kept], unix_second(at))])


def collect_again(batch: Batch) -> list[Snapshot]:
    """The risk at complete snapshots, from the stored positions: those at the first, and the changes from one to the
    next."""
    seconds = [unix_second(at) for at in batch.instants]
    items = read_borrowing_between(batch.store, seconds[0], seconds[-1])
    since, until = pl.col("observed_at"), pl.col("until")
    return [
        Snapshot(at, risk_at(batch, at, items.filter((since <= second) & (until.is_null() | (until > second)))))
        for at, second in zip(batch.instants, seconds, strict=True)
    ]


def risk_at(batch: Batch, at: datetime, items: pl.DataFrame) -> pl.DataFrame:
    """Observations of the risk of all accounts at the source's prices: none if a lost price hides accounts with debt,
    because the risk of the others would be taken for that of all (rule 6.8). SourceError if there are debts, but no
    markets or no prices."""
    source, borrowing = batch.source, borrowing_of(items)
    has_debts = "debt" in borrowing["kind"]
    assets, redefined = batch.valued_assets(at)
    markets = {market.asset_id: market for market in (batch.markets(at, redefined) if has_debts else ())}
    terms = Terms(linked(assets), markets, source.config(at), source.ptoken(at))
    prices = batch.known_prices(at, {*markets, terms.ptoken.asset_id} & assets.keys()) if has_debts else {}
    valuation = Valuation(book_of(near_risk(borrowing, terms, prices), markets), terms, prices)
    values = {} if valuation.hides_debtors else risk_by_history(risk_totals(risk_of(valuation)))
    return observations_of(values, at)


def stated_risk(batch: Batch, at: datetime) -> pl.DataFrame:
    """Observations of the risk of all accounts that the source states."""
    return observations_of(risk_by_history(batch.source.risk(at)), at)


def _refuse_past(batch: Batch, at: int) -> None:
    if batch.head is not None and at < batch.head.at:
        raise SnapshotRefused(
            "Positions are stored as changes, so none can be added before the newest ones. Take a later snapshot."
        )


def _changed(items: pl.DataFrame, stored: pl.DataFrame) -> pl.DataFrame:
    """Addresses whose stored digest differs or does not count, in the columns address, digest (the new one) and stored.

    The digest is _GONE for an address without items. `stored` says whether the store has a digest of the address. If it
    has none, it has no items of the address either.
    """
    was = pl.when(pl.col("complete") == 1).then("digest").alias("was")
    previous = stored.select("address", was, stored=pl.lit(True))
    both = digests_of(items).join(previous, on="address", how="full", coalesce=True)
    return (
        both.with_columns(pl.col("digest").fill_null(_GONE))
        .filter(pl.col("digest").ne_missing(pl.col("was")))
        .select("address", "digest", pl.col("stored").fill_null(False))
        .sort("address")
    )


def _differences(store: Store, items: pl.DataFrame, addresses: pl.DataFrame, at: int) -> pl.DataFrame:
    """Items of the addresses that are new or different, and a closed item for each item that is gone."""
    now = items.join(addresses, on="address", how="semi")
    stored_addresses = addresses.filter("stored")["address"]
    starts = range(0, stored_addresses.len(), MAX_ADDRESSES)
    chunks = (stored_addresses.slice(start, MAX_ADDRESSES).to_list() for start in starts)
    stored = pl.concat([items.clear(), *(read_items(store, chunk, at) for chunk in chunks)])
    changed = now.join(stored, on=ITEM, how="anti", nulls_equal=True).with_columns(closed=pl.lit(False))
    gone = stored.join(now, on=ITEM_KEY, how="anti").with_columns(**CLOSED, closed=pl.lit(True))
    return pl.concat([changed, gone]).sort(ITEM_KEY)
