"""Which assets a source lists, and the ends of those that it does not list any more."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from analytics_service.market.assets import Asset
from analytics_service.market.instants import EPOCH, instant
from analytics_service.market.kinds import TIME_LIMIT

# Until when an asset is listed that its source lists in the newest snapshot.
LISTED = instant(TIME_LIMIT - 1)
Listing = tuple[datetime, Sequence[Asset]]


def is_listed(asset: Asset) -> bool:
    """Whether the source lists the asset in the newest snapshot."""
    return asset.listed_until == LISTED


def redefined(
    stored: Mapping[str, Asset], listings: Sequence[Listing], newest: datetime | None, max_age: timedelta
) -> list[Asset]:
    """The assets that are new or change with the listings of some snapshots, oldest first. `stored` are the assets
    before, by id, and `newest` is the instant of the newest snapshot so far.

    An asset that is listed goes on; one that has not been listed for `max_age` ended when it was listed last. Imported
    assets, which no source ever listed, end in no snapshot, and a source that lists none at all says nothing.
    """
    described = {asset.id: asset for _, assets in listings for asset in assets}
    seen = {asset.id: at for at, assets in listings for asset in assets}
    if not seen:
        return []
    at, last = listings[-1]
    if newest is not None and at < newest:
        changed = [_listed_before(stored.get(asset_id), described[asset_id], at) for asset_id, at in seen.items()]
    else:
        for asset in stored.values():
            if asset.listed_until is not None:
                seen[asset.id] = max(seen.get(asset.id, EPOCH), min(asset.listed_until, newest or at))
        current = {asset.id for asset in last}
        assets = {**stored, **described}
        changed = [
            replace(assets[asset_id], listed_until=LISTED)
            if asset_id in current
            else _unlisted(assets[asset_id], until, at - until >= max_age)
            for asset_id, until in seen.items()
        ]
    return [asset for asset in changed if asset.id not in stored or _all(asset) != _all(stored[asset.id])]


def _all(asset: Asset) -> tuple[object, ...]:
    return asset, asset.listed_until, asset.ended_at


def _unlisted(asset: Asset, until: datetime, has_ended: bool) -> Asset:
    return replace(asset, listed_until=until, ended_at=asset.ended_at or (until if has_ended else None))


def _listed_before(stored: Asset | None, asset: Asset, at: datetime) -> Asset:
    """The asset after it was found to be listed at an instant of the past. That defines only new assets, and moves only
    ends that are earlier and of the source."""
    if stored is None:
        return replace(asset, listed_until=at)
    if stored.listed_until is None or stored.listed_until >= at:
        return stored
    return replace(stored, listed_until=at, ended_at=at if stored.ended_at == stored.listed_until else stored.ended_at)
