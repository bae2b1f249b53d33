"""Definitions of assets and their oracle prices."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

import polars as pl

from analytics_service.market.assets import Asset, Definition, Listing, redefined
from analytics_service.market.instants import from_unix, unix_second
from analytics_service.market.kinds import FOREVER
from analytics_service.store.commits import Appended, Commit, Replaced
from analytics_service.store.datasets.assets import ASSETS, asset_frame, read_definitions
from analytics_service.store.datasets.observations import drop_stored, price_frame
from analytics_service.store.ledger import nth_snapshot, snapshot_versions
from jobs.snapshot import JobContext


def collect(context: JobContext) -> Commit:
    """The source's assets at the instants, and its new prices. SourceError if it quotes no prices."""
    snapshots: list[Appended] = []
    written: list[pl.DataFrame] = []
    listings: list[Listing] = []
    for at in context.instants:
        prices = price_frame(context.prices(at))
        written.append(_new(context, prices, unix_second(at), written))
        # The oracle has answered up to this instant, even if it only repeats stored prices.
        snapshots.append(Appended(at, written[-1], ledger={"last_observed_at": max(prices["observed_at"])}))
        listings.append((at, [*context.assets(at)[0].values()]))
    return Commit(snapshots, definitions(context, listings))


def definitions(context: JobContext, listings: Sequence[Listing]) -> Replaced:
    """The definitions that the listings of a batch change, oldest first."""
    store, stored, newest = context.store, context.stored_assets, context.head.instant if context.head else None
    known: Mapping[str, Sequence[Definition]] | None = None
    complete: Collection[datetime] = ()
    if newest is not None and listings[0][0] < newest:
        start, end = unix_second(listings[0][0]), unix_second(listings[-1][0]) + 1
        following = nth_snapshot(store, context.dataset, 1, end, FOREVER)
        others = {*snapshot_versions(store, context.dataset, start, end), *([] if following is None else [following])}
        known, complete = read_definitions(store), {*map(from_unix, others)} - {at for at, _ in listings}
    changed = redefined(stored, listings, newest, store.price_max_age, known, complete)
    changes_past = any(asset.id in stored and _changes_past(stored[asset.id], asset) for _, asset in changed)
    return Replaced({ASSETS: asset_frame(changed)}, changes_past=changes_past)


def _changes_past(stored: Asset, asset: Asset) -> bool:
    """Whether a definition changes answers about the past: they have no values after an end, and present decimals."""
    return (stored.ended_at, stored.decimals_denom) != (asset.ended_at, asset.decimals_denom)


def _new(context: JobContext, prices: pl.DataFrame, at: int, written: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The prices at an instant, without prices that the oracle only repeats.

    Repeated prices are already in the store, or in the frames that the batch has `written` so far. Writing them again
    would change what readers have seen.
    """
    if min(prices["observed_at"]) >= at:
        return prices
    is_repeated = pl.col("observed_at") < at
    new = drop_stored(context.store, prices.filter(is_repeated))
    if new.height and written:
        new = new.join(pl.concat(written), on=new.columns, how="anti", maintain_order="left")
    return pl.concat([prices.filter(~is_repeated), new])
