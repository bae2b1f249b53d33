"""The store itself as a source, for snapshots that are recomputed from stored data."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial

from analytics_service.clickhouse.columns import Read, Snapshots
from analytics_service.clickhouse.connection import Store
from analytics_service.concurrency import locked_cached_property
from analytics_service.market.assets import Asset
from analytics_service.market.instants import unix_second
from analytics_service.market.markets import NO_CONFIG, GlobalConfig, Market
from analytics_service.market.prices import Price, known_prices
from analytics_service.market.ptoken import Ptoken, no_ptoken
from analytics_service.sources.base import Source
from analytics_service.store.datasets.assets import read_assets
from analytics_service.store.datasets.histories import PRICES
from analytics_service.store.datasets.markets import config_of, market_prices_of, markets_of, ptoken_of
from analytics_service.store.datasets.observations import read_last_prices, read_series
from analytics_service.store.ledger import newest_snapshots_at, read_head


class StoredSource(Source):
    """A store's state at instants (whole seconds, oldest first): assets as defined now, until they end; the last price
    of each if it is known (rule 4.8, known prices), before its first price the price of the snapshot of markets; and
    the newest complete snapshot of everything else."""

    may_hang = False
    # A stored snapshot may lack markets.
    has_markets = False
    spec = "the store"

    def __init__(self, store: Store, instants: Sequence[datetime]) -> None:
        self._store = store
        self._seconds = [unix_second(at) for at in instants]
        # By dataset: instant and version of its newest snapshot at each of the seconds.
        newest = newest_snapshots_at(store, ("markets", "ptoken", "positions"), self._seconds)
        self._newest = {dataset: dict(zip(self._seconds, listed, strict=True)) for dataset, listed in newest.items()}
        self.snapshots = Snapshots(store, {name: dict(filter(None, listed)) for name, listed in newest.items()})

    def can_value(self, at: datetime, dataset: str) -> bool:
        """Whether prices and markets are known at an instant, and for positions the protocol token."""
        states = ("markets", "ptoken") if dataset == "positions" else ("markets",)
        return bool(self.prices(at)) and all(self._reader(state, at) for state in states)

    def assets(self, at: datetime) -> Sequence[Asset]:
        return [asset for asset in self._assets if not asset.has_ended(at)]

    def prices(self, at: datetime) -> Sequence[Price]:
        second, read = unix_second(at), self._reader("markets", at)
        last = [prices[second] for prices in self._prices.values() if second in prices]
        of_markets = market_prices_of(read) if read else {}
        early = {asset_id: usd for asset_id, usd in of_markets.items() if asset_id in self._prices}
        known = {**early, **known_prices(last, at, self._store.price_max_age)}
        ended = {asset.id for asset in self._assets} - {asset.id for asset in self.assets(at)}
        return [
            Price(asset_id, at, usd) for asset_id, usd in known.items() if usd is not None and asset_id not in ended
        ]

    def markets(self, at: datetime) -> Sequence[Market]:
        read = self._reader("markets", at)
        return [*markets_of(read).values()] if read else ()

    def config(self, at: datetime) -> GlobalConfig:
        read = self._reader("markets", at)
        return config_of(read) if read else NO_CONFIG

    def ptoken(self, at: datetime) -> Ptoken:
        read = self._reader("ptoken", at)
        return ptoken_of(read) if read else no_ptoken(at)

    @locked_cached_property
    def _assets(self) -> Sequence[Asset]:
        return [*read_assets(self._store).values()]

    @locked_cached_property
    def _prices(self) -> Mapping[str, Mapping[int, Price]]:
        """The last price of each asset at each of the seconds."""
        head = read_head(self._store, "prices")
        series = read_series(self._store, PRICES, head.last_observed_at + 1) if head else ()
        return read_last_prices(self._store, series, self._seconds)

    def _reader(self, dataset: str, at: datetime) -> Read | None:
        """A reader of a dataset's newest snapshot at or before an instant, or None."""
        newest = self._newest[dataset][unix_second(at)]
        return partial(self.snapshots.read, at=newest[0]) if newest else None
