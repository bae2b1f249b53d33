"""What operators are told of the data itself: how old the price of each asset is, which values are in doubt, and up to
when events are complete.

Read once for each new state of what it is made from, in the background, so that no request waits for it.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Annotated

from analytics_service.errors import AnalyticsError
from analytics_service.market.doubts import Doubt
from analytics_service.market.instants import DAY, instant, unix_second
from analytics_service.market.kinds import Count, Flag, Text, Time
from analytics_service.state.background import Background
from analytics_service.store.assets import read_assets
from analytics_service.store.connection import Store
from analytics_service.store.doubts import read_doubts
from analytics_service.store.histories import PRICES
from analytics_service.store.ledger import VALUES_ONLY, Head, last_covered
from analytics_service.store.markets import read_markets
from analytics_service.store.observations import read_latest

log = logging.getLogger(__name__)

_FAMILIES = "prices", "markets", "loans"


@dataclass(frozen=True, slots=True)
class AssetPrice:
    """The newest price of an asset that its source lists, or did and that has not ended. Assets that never had one are
    left out."""

    asset_id: Annotated[str, Text("Asset id")]
    symbol: Annotated[str, Text("Its symbol")]
    newest: Annotated[datetime, Time("Instant of its newest price")]
    known: Annotated[bool, Flag("Whether that is its price at the newest snapshot, rather than too old")]
    age_seconds: Annotated[int, Count("Age of that price")] = 0
    has_market: bool = False
    """Whether it has a market, if its price is not known."""

    def at(self, now: datetime) -> "AssetPrice":
        """The price with its age at an instant."""
        return replace(self, age_seconds=max(unix_second(now) - unix_second(self.newest), 0))


@dataclass(frozen=True, slots=True)
class Figures:
    """The prices by asset id, the doubts of the day up to the newest snapshot, the newest first, and up to when events
    are complete, if their source says it."""

    prices: Sequence[AssetPrice] = ()
    doubts: Sequence[Doubt] = ()
    complete_until: datetime | None = None


class FigureReader:
    """The figures of the newest heads. While they cannot be read, those of before stay."""

    def __init__(self, store: Store) -> None:
        self.newest = Figures()
        self._store = store
        self._of: Sequence[Head | None] = (None,) * len(_FAMILIES)
        self._background = Background("figures")

    def follow(self, heads: Mapping[str, Head], *, in_background: bool) -> None:
        """Read the figures of heads, unless that is done or under way."""
        of = tuple(map(heads.get, _FAMILIES))
        if of != self._of and not self._background.is_busy:
            self._background.do(partial(self._read, of), in_background=in_background)

    def _read(self, of: Sequence[Head | None]) -> None:
        prices, markets, loans = of
        try:
            newest = max((head.newest for head in (prices, markets) if head), default=DAY)
            covered = last_covered(self._store, loans.at) if loans else None
            self.newest = Figures(
                _prices(self._store, prices, markets),
                read_doubts(self._store, newest - DAY),
                instant(covered.complete_until) if covered and covered.complete_until else None,
            )
            self._of = of
        except AnalyticsError as error:
            log.debug("Ages of prices, doubts and what is complete cannot be read: %s", error)


def _prices(store: Store, prices: Head | None, markets: Head | None) -> list[AssetPrice]:
    if prices is None or prices.at == VALUES_ONLY:
        return []
    assets = read_assets(store, prices.version).values()
    listed = [asset for asset in assets if asset.listed_until is not None and not asset.ended_at]
    ids = [asset.id for asset in listed]
    latest = read_latest(store, PRICES, ids, prices.last_observed_at) if ids else {}
    newest = {asset.id: latest[asset.id][1] for asset in listed if asset.id in latest}
    lost = {asset_id for asset_id, at in newest.items() if prices.instant - at > store.price_max_age}
    traded = read_markets(store, markets.at) if lost and markets is not None and markets.at != VALUES_ONLY else ()
    return [
        AssetPrice(asset.id, asset.symbol, newest[asset.id], asset.id not in lost, has_market=asset.id in traded)
        for asset in listed
        if asset.id in newest
    ]
