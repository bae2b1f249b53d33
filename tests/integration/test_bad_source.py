"""A store fed by a source that is late, reorganizes, dies and errs shows what one shows that was fed the truth."""

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

import pytest

from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.errors import SourceError
from analytics_service.market.assets import Asset
from analytics_service.market.events import Event
from analytics_service.market.instants import HOUR, from_unix, unix_second
from analytics_service.market.markets import LendMarket, Market
from analytics_service.market.prices import Price
from analytics_service.market.rates import Rates
from jobs.registry import JOBS
from tests.integration.databases import database, make_views
from tests.integration.everything import Asked, differences, everything
from tests.integration.lending import ETH, OFTEN, ORB, Lending, wave
from tests.integration.steps import Tick

MINUTE = 60
EVERY = {"prices": 1, "rates": 1, "markets": 1, "loans": 1, "ptoken": 5, "positions": 5, "routes": 30}
MINUTES = range(31)
# Minutes in which the source errs: in each of these, in one way. It is dead when a quarter of an hour ends.
DEAD = range(12, 18)
UNQUOTED, DOUBLED, NEGATIVE = 4, 8, 26
# Seconds of the hour of an event that moves by a second, and of one that is dropped and comes back; and the minutes at
# which they do.
MOVED, DROPPED = 3 * MINUTE, 4 * MINUTE + OFTEN
MOVES, DROPS, RETURNS = 6, 6, 19


@dataclass(frozen=True)
class Truth(Lending):
    """What can be known of the protocol: where nobody says what is, that it is as it was."""

    def _minute(self, at: datetime) -> int:
        return (unix_second(at) - self.live) // MINUTE

    def prices(self, at: datetime) -> Sequence[Price]:
        known, before = super().prices(at), at - (from_unix(MINUTE) - from_unix(0))
        if self._minute(at) != UNQUOTED:
            return known
        return [*(price for price in known if price.asset_id != ETH), *self._quote(ETH, before)]

    def _quote(self, asset_id: str, at: datetime) -> Iterable[Price]:
        return (price for price in super().prices(at) if price.asset_id == asset_id)

    def markets(self, at: datetime) -> Sequence[Market]:
        markets = super().markets(at)
        if self._minute(at) == DOUBLED:
            before = super().markets(at - (from_unix(MINUTE) - from_unix(0)))
            return [old if new.asset_id == ORB else new for new, old in zip(markets, before, strict=True)]
        if self._minute(at) == NEGATIVE:
            return [_negative(market) if market.asset_id == ETH else market for market in markets]
        return markets

    def rates(self, at: datetime) -> Rates:
        """Decimals are nothing to rates."""
        return Rates.of(Lending.markets(self, at)) if self._minute(at) == DOUBLED else super().rates(at)

    def events(self, start: datetime, end: datetime) -> Sequence[Event]:
        """One event is a second later than it first seemed."""
        events = super().events(start - (from_unix(1) - from_unix(0)), end)
        events = [self._moved(event) if unix_second(event.at) == self.live + MOVED else event for event in events]
        return [event for event in events if start <= event.at < end]

    @staticmethod
    def _moved(event: Event) -> Event:
        return replace(event, at=event.at + (from_unix(1) - from_unix(0)))


def _negative(market: Market) -> Market:
    assert isinstance(market.lend, LendMarket)
    return replace(market, lend=replace(market.lend, apr=Decimal("-0.0125")))


@dataclass(frozen=True)
class Indexer(Truth):
    """The same, as an indexer tells it that lists an event 10 to 20 seconds late."""

    caught_up: bool = False

    def prices(self, at: datetime) -> Sequence[Price]:
        self._require_alive(at)
        unquoted = self._minute(at) == UNQUOTED
        return [price for price in super().prices(at) if not (unquoted and price.asset_id == ETH)]

    def assets(self, at: datetime) -> Sequence[Asset]:
        self._require_alive(at)
        doubled = ORB if self._minute(at) == DOUBLED else ""
        known = super().assets(at)
        return [replace(of, decimals_denom=2 * of.decimals_denom) if of.id == doubled else of for of in known]

    def markets(self, at: datetime) -> Sequence[Market]:
        self._require_alive(at)
        # What it says of an asset with other decimals is not read.
        return Lending.markets(self, at) if self._minute(at) == DOUBLED else super().markets(at)

    def events(self, start: datetime, end: datetime) -> Sequence[Event]:
        self._require_alive(end)
        minute = self._minute(end)
        listed = super().events(start, end) if minute >= MOVES else Lending.events(self, start, end)
        return [event for event in listed if self._lists(event, unix_second(end), minute)]

    def _lists(self, event: Event, now: int, minute: int) -> bool:
        second = unix_second(event.at)
        if second == self.live + DROPPED and DROPS <= minute < RETURNS:
            return False
        return self.caught_up or second + 10 + wave(second, 23, 11) <= now

    def _require_alive(self, at: datetime) -> None:
        if self._minute(at) in DEAD:
            raise SourceError("The indexer is away.")


def due(minute: int) -> Sequence[str]:
    """The jobs of a minute. Prices come first, so that markets find those of their instant."""
    return [name for name in JOBS if minute % EVERY[name] == 0]


def feed(store: Store, source: Lending, minute: int, schedulers: int = 1) -> None:
    """Take the snapshots of a minute, by one scheduler or several at the same time."""
    tick = Tick(source, source.live + minute * MINUTE, due(minute))
    with ThreadPoolExecutor(schedulers) as pool, suppress(SourceError):
        for taken in [pool.submit(tick, store) for _ in range(schedulers)]:
            taken.result()


@pytest.mark.slow
@pytest.mark.parametrize(("schedulers", "moments"), [(1, (UNQUOTED, 15)), (2, (DOUBLED, NEGATIVE))])
def test_what_a_bad_source_says_comes_to_the_truth(server: Settings, schedulers: int, moments: Sequence[int]) -> None:
    """At the end, and as of moments within some minutes: one when it is dead, and others right after it erred."""
    now = int(time.time())
    live = now // HOUR * HOUR - 2 * HOUR
    fed, true = (replace(server, clickhouse_database=f"test_{name}_{schedulers}") for name in ("fed", "truth"))
    indexer, truth = Indexer(live), Truth(live)
    seconds = [live + minute * MINUTE + 30 for minute in moments]
    asked = Asked(now, seconds, {"min": (live - HOUR, live + HOUR), "h": (live - 86_400, now)})
    with database(fed) as store, database(true) as other:
        for each in (store, other):
            make_views(each)
        for minute in MINUTES:
            feed(store, replace(indexer, caught_up=minute == MINUTES[-1]), minute, schedulers)
            if minute not in DEAD:
                feed(other, truth, minute)
        shown: Mapping[str, object] = everything(fed, asked)
        assert differences(dict(shown), everything(true, asked)) == []
