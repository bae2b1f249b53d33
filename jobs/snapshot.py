"""The input of a job: instants to take, and what its source and the store say of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any

from analytics_service.clickhouse.connection import Store
from analytics_service.errors import SourceError
from analytics_service.market.assets import Asset
from analytics_service.market.instants import OLDEST, format_instant, unix_second
from analytics_service.market.markets import SIDES, Market
from analytics_service.market.prices import Price, Prices, known_prices, newest_prices, usd_by_asset
from analytics_service.market.rates import Apr, Rates
from analytics_service.market.validation import ValidationError
from analytics_service.sources.base import Source
from analytics_service.sources.calls import with_canonical_ids
from analytics_service.store.commits import Commit
from analytics_service.store.datasets.assets import read_assets
from analytics_service.store.datasets.markets import read_markets
from analytics_service.store.datasets.observations import read_last_prices
from analytics_service.store.ledger import Head, last_snapshot_before
from jobs.rejections import Rejections

# How far a clock of the source may be ahead.
_MAX_AHEAD = timedelta(days=1)


@dataclass(frozen=True)
class JobContext:
    """The instants (aware, whole seconds, oldest first) whose snapshots a job must take, with the source and the store.

    The job reads stored data from the store, and writes nothing. `head` is the newest state of the job's dataset,
    without snapshots from the future; None without a snapshot. Values of an asset or address that cannot be stored, or
    cannot be true, are `rejections`: the rest of the snapshot counts, and what the store has of that asset or address
    stays (rule 8.17). `left` is the oldest observation (unix second) that a run which died has left, if one has.
    """

    dataset: str
    source: Source
    store: Store
    instants: Sequence[datetime]
    head: Head | None = None
    rejections: Rejections = field(default_factory=Rejections)
    left: int | None = None

    def with_canonical_ids(self) -> "JobContext":
        """The same batch; its source names each asset as the store does (rule 3.4)."""
        at = self.instants[-1]
        context = replace(self, source=with_canonical_ids(self.source, lambda: context.stored_assets, at))
        return context

    def assets(self, at: datetime) -> tuple[Mapping[str, Asset], Set[str]]:
        """The source's assets at an instant, by id, and those whose decimals have changed. These, and assets whose
        definition cannot be stored, keep the definition that they had, and stay listed."""
        assets: dict[str, Asset] = {}
        changed: set[str] = set()
        for asset in self.source.assets(at):
            if self._known.get(getattr(asset, "id", "")) == asset:
                # Stored as it is, so it fits. To validate ten thousand assets would take half of a tick of prices.
                assets[asset.id] = self._known[asset.id] = asset
                continue
            is_fit = not self.rejections.validate("assets", asset, Asset)
            known = self._known.get(getattr(asset, "id", ""), asset if is_fit else None)
            if is_fit and known and known.is_described and known.decimals_denom != asset.decimals_denom:
                changed.add(asset.id)
                self.rejections.add("assets", asset, _changed_decimals(known, asset))
            elif is_fit:
                known = self._known[asset.id] = asset
            if known:
                assets[known.id] = replace(known, listed_until=None, ended_at=None)
        return assets, changed

    def valued_assets(self, at: datetime) -> tuple[Mapping[str, Asset], Set[str]]:
        """The same with those that the source leaves out, until they end: of these, too, there may be amounts."""
        if at not in self._valued:
            listed, changed = self.assets(at)
            going = {asset.id: asset for asset in self._known.values() if not asset.has_ended(at)}
            self._valued.clear()
            self._valued[at] = {**going, **listed}, changed
        return self._valued[at]

    @cached_property
    def _valued(self) -> dict[datetime, tuple[Mapping[str, Asset], Set[str]]]:
        """The assets of the instant for which the batch was asked last."""
        return {}

    @cached_property
    def _known(self) -> dict[str, Asset]:
        """The definitions of assets that are stored, and those first met in this batch."""
        return {**self.stored_assets}

    @cached_property
    def stored_assets(self) -> Mapping[str, Asset]:
        """The assets as they are stored, by id."""
        return read_assets(self.store)

    def markets(self, at: datetime, redefined: Set[str]) -> Sequence[Market]:
        """The source's markets at an instant. SourceError when it has none, but should.

        In place of a side that cannot be stored, and of all sides of a redefined asset, it has what the store has:
        without its collateral, an account would seem to be liquidatable.
        """
        unfit = [(market, self._unfit_sides(market, redefined)) for market in self.source.markets(at)]
        stored = self._markets_before(at) if any(sides for _, sides in unfit) else {}
        kept = (_with_stored(market, sides, stored) if sides else market for market, sides in unfit if sides <= SIDES)
        markets = [market for market in kept if market]
        if not markets and self.source.has_markets:
            raise SourceError(f"{self.source.spec} has no markets as of {format_instant(at)}.")
        self._newest_markets.clear()
        self._newest_markets[unix_second(at)] = {market.asset_id: market for market in markets}
        return markets

    def _unfit_sides(self, market: Market, redefined: Set[str]) -> Set[str]:
        """The fields of a market that cannot be stored, beside SIDES its id, without which nothing of it can be."""
        faults = self.rejections.validate("markets", market, Market)
        return {fault.path.partition(".")[0] for fault in faults} or (SIDES if market.asset_id in redefined else set())

    def markets_by_id(self, at: datetime, redefined: Set[str]) -> Mapping[str, Market]:
        """The same by asset id. The source is asked once for each instant."""
        if unix_second(at) not in self._newest_markets:
            self.markets(at, redefined)
        return self._newest_markets[unix_second(at)]

    @cached_property
    def _newest_markets(self) -> dict[int, Mapping[str, Market]]:
        """The markets by asset id of the instant (unix second) for which the batch was asked last."""
        return {}

    def _markets_before(self, at: datetime) -> Mapping[str, Market]:
        """The stored markets of an instant that is taken again; else those of the last snapshot before it, a complete
        one or one of the batch."""
        before = last_snapshot_before(self.store, "markets", unix_second(at) + 1)
        for second, markets in self._newest_markets.items():
            if (-1 if before is None else before) < second < unix_second(at):
                return markets
        return {} if before is None else read_markets(self.store, before)

    def rates(self, at: datetime) -> Rates:
        """The rates of the source's markets at an instant. SourceError when it has none."""
        stated = self.source.rates(at)
        rates = Rates(self._aprs("lend rates", stated.lend), self._aprs("borrow rates", stated.borrow))
        if not (rates.lend or rates.borrow) and self.source.has_markets:
            raise SourceError(f"{self.source.spec} has no rates as of {format_instant(at)}.")
        return rates

    def _aprs(self, part: str, aprs: Mapping[str, Decimal]) -> Mapping[str, Decimal]:
        fit = self.rejections.valid_records(part, [Apr(*item) for item in aprs.items()], Apr)
        return {rate.asset_id: rate.apr for rate in fit}

    def prices(self, at: datetime) -> Sequence[Price]:
        """The source's prices at an instant. SourceError when it quotes none.

        Those that claim to be from more than a day later are left out: with them, later observations would count as
        corrections of the past. So are those that claim to be older than all prices.
        """
        stated = self.source.prices(at)
        fit = self.rejections.valid_records("prices", stated, Price)
        prices = [price for price in fit if self._is_credible(price, at)]
        if not prices:
            none = "no prices that can be used" if stated else "no prices"
            raise SourceError(f"{self.source.spec} quotes {none} as of {format_instant(at)}.")
        return prices

    def known_prices(self, at: datetime, ids: Iterable[str]) -> Prices:
        """What is known at an instant (rule 4.8) of the prices that the source quotes, and of those of other assets."""
        quotes, second, max_age = newest_prices(self.prices(at)), unix_second(at), self.store.price_max_age
        current = {asset_id for asset_id, price in quotes.items() if at - price.observed_at <= max_age}
        missing = sorted({*ids, *quotes} - current)
        if unread := [asset_id for asset_id in missing if asset_id not in self._last_prices]:
            self._last_prices.update(read_last_prices(self.store, unread, [*map(unix_second, self.instants)]))
        stored = filter(None, (self._last_prices[asset_id].get(second) for asset_id in missing))
        last = newest_prices([*stored, *quotes.values()])
        known = known_prices(last.values(), at, max_age)
        return {**known, **usd_by_asset(last[asset_id] for asset_id, usd in known.items() if usd is not None)}

    @cached_property
    def _last_prices(self) -> dict[str, dict[int, Price]]:
        """The last stored prices of assets at the instants, by id and second: of those that have been needed so far."""
        return {}

    def _is_credible(self, price: Price, at: datetime) -> bool:
        """Whether a price may have been observed when it claims to."""
        if min(OLDEST, at) <= price.observed_at <= at + _MAX_AHEAD:
            return True
        time = format_instant(price.observed_at)
        self.rejections.add("prices", price, ValidationError("observed_at", time, f" is {time}, which cannot be true."))
        return False


def _with_stored(market: Market, sides: Set[str], stored: Mapping[str, Market]) -> Market | None:
    """A market with what the store has of some of its sides; None if it then has no side at all."""
    known = stored.get(market.asset_id)
    kept: dict[str, Any] = {side: getattr(known, side, None) for side in sides}
    market = replace(market, **kept)
    return market if market.lend or market.collateral or market.debt else None


def _changed_decimals(known: Asset, asset: Asset) -> ValidationError:
    """What is wrong with the definition of an asset that is known with other decimals."""
    now, was = asset.decimals_denom, known.decimals_denom
    remedy = (
        f"If {now} is right, `analytics-service import assets FILE` corrects that, then `jobs recompute` and `jobs "
        "backfill all --again` what was stored with it."
    )
    problem = f" is {now}, and was {was}; decimals never change. {remedy} Its markets stay, too."
    return ValidationError("decimals_denom", now, problem)


# Takes the snapshots of a batch, in the order of its instants, or only some of them. It reads no clock: the batch
# has the time.
Collect = Callable[[JobContext], Commit]
