"""Which assets a source lists and how it defines them, and the ends of those that it does not list any more."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from operator import itemgetter

from analytics_service.market.assets import Asset
from analytics_service.market.instants import EPOCH, instant
from analytics_service.market.kinds import TIME_LIMIT

# Until when an asset is listed that its source lists in the newest snapshot.
LISTED = instant(TIME_LIMIT - 1)
Listing = tuple[datetime, Sequence[Asset]]
# An asset, and the instant from which it is defined so.
Definition = tuple[datetime, Asset]


def is_listed(asset: Asset) -> bool:
    """Whether the source lists the asset in the newest snapshot."""
    return asset.listed_until == LISTED


def redefined(
    stored: Mapping[str, Asset],
    listings: Sequence[Listing],
    newest: datetime | None,
    max_age: timedelta,
    definitions: Mapping[str, Sequence[Definition]] | None = None,
    complete: Collection[datetime] = (),
) -> list[Definition]:
    """The definitions that the listings of some snapshots bring, oldest first. `stored` are the assets before, by id,
    and `newest` is the instant of the newest snapshot so far.

    An asset that is listed goes on; one that has not been listed for `max_age` ended when it was listed last. Imported
    assets, which no source ever listed, end in no snapshot, and a source that lists none at all says nothing.

    Of listings before the newest snapshot, `definitions` are all that are stored, by id, and `complete` are the other
    complete snapshots from the first listing to the next snapshot after the last: what these show stays.
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
        # Most of ten thousand assets are listed as they were.
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
            (since, replace(one, listed_until=asset.listed_until, ended_at=asset.ended_at)) for since, one in changes
        ]
    return found


def _changes(
    known: Sequence[Definition], stated: Mapping[datetime, Asset], complete: Collection[datetime]
) -> Iterator[Definition]:
    """What is to be added to the known definitions of an asset, so that each counts from the snapshot on that states
    it, and others show what they did."""
    added: Definition | None = None
    for at in sorted({*stated, *complete}):
        # Before its first definition, an asset has that one.
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
    """The asset after it was found to be listed at an instant of the past. That moves only ends that are earlier and of
    the source."""
    if stored is None:
        return replace(asset, listed_until=at)
    if stored.listed_until is None or stored.listed_until >= at:
        return stored
    return replace(stored, listed_until=at, ended_at=at if stored.ended_at == stored.listed_until else stored.ended_at)
