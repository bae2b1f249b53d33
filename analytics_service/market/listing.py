"""Which assets a source lists, and the ends of those that it does not list any more."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from analytics_service.market.assets import Asset
from analytics_service.market.instants import instant
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
    listed = {asset.id: (at, asset) for at, assets in listings for asset in assets}
    if not listed:
        return []
    if newest is not None and listings[-1][0] < newest:
        changed = [_listed_before(stored.get(asset.id), asset, at) for at, asset in listed.values()]
    else:
        at, last = listings[-1]
        current = {asset.id: replace(asset, listed_until=LISTED) for asset in last}
        others = {asset_id: asset for asset_id, (_, asset) in listed.items()}
        seen = {asset_id: until for asset_id, (until, _) in listed.items()}
        for asset_id, asset in stored.items():
            if asset.listed_until is not None:
                until = min(asset.listed_until, newest or at)
                seen[asset_id] = max(until, seen.get(asset_id, until))
        unlisted = ((seen[asset_id], {**stored, **others}[asset_id]) for asset_id in seen.keys() - current.keys())
        changed = [*current.values(), *(_unlisted(asset, until, at - until >= max_age) for until, asset in unlisted)]
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
