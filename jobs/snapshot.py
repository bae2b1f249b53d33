"""The input of a job: the instants of its snapshots, and the data of the source and the store at them."""

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

# How far the source's clock may be ahead.
_MAX_AHEAD = timedelta(days=1)


@dataclass(frozen=True)
class JobContext:
    """The instants (aware, whole seconds, oldest first) whose snapshots a job must take, with the source and the store.

    The job reads the store but does not write to it. `head` is the newest state of the job's dataset, without future
    snapshots; None without a snapshot. `rejections` takes values that cannot be stored or cannot be true: the rest of
    the snapshot is stored, and the stored value is kept (rule 8.17, rejected records). `left` is the unix second of the
    oldest observation that a dead commit has left, if any.
    """

    dataset: str
    source: Source
    store: Store
    instants: Sequence[datetime]
    head: Head | None = None
    rejections: Rejections = field(default_factory=Rejections)
    left: int | None = None

    def with_canonical_ids(self) -> "JobContext":
        """This context with a source that uses the store's asset ids (rule 3.4, canonical ids)."""
        at = self.instants[-1]
        context = replace(self, source=with_canonical_ids(self.source, lambda: context.stored_assets, at))
        return context

    def assets(self, at: datetime) -> tuple[Mapping[str, Asset], Set[str]]:
        """The source's assets at an instant, by id, and the ids of assets whose decimals have changed. Such assets, and
        assets with an invalid definition, stay listed and keep their stored definition."""
        assets: dict[str, Asset] = {}
        changed: set[str] = set()
        for asset in self.source.assets(at):
            if self._known.get(getattr(asset, "id", "")) == asset:
                # Stored, so it is valid. Validating ten thousand assets takes half the time of a price snapshot.
                assets[asset.id] = self._known[asset.id] = asset
                continue
            is_valid = not self.rejections.validate("assets", asset, Asset)
            known = self._known.get(getattr(asset, "id", ""), asset if is_valid else None)
            if is_valid and known and known.is_described and known.decimals_denom != asset.decimals_denom:
                changed.add(asset.id)
                self.rejections.add("assets", asset, _changed_decimals(known, asset))
            elif is_valid:
                known = self._known[asset.id] = asset
            if known:
                assets[known.id] = replace(known, listed_until=None, ended_at=None)
        return assets, changed

    def valued_assets(self, at: datetime) -> tuple[Mapping[str, Asset], Set[str]]:
        """Like `assets`, with assets that the source no longer lists but that have not ended: accounts may still hold
        them."""
        if at not in self._valued:
            listed, changed = self.assets(at)
            unended = {asset.id: asset for asset in self._known.values() if not asset.has_ended(at)}
            self._valued.clear()
            self._valued[at] = {**unended, **listed}, changed
        return self._valued[at]

    @cached_property
    def _valued(self) -> dict[datetime, tuple[Mapping[str, Asset], Set[str]]]:
        """The assets of the last requested instant."""
        return {}

    @cached_property
    def _known(self) -> dict[str, Asset]:
        """The definitions of stored assets, and of new assets in this batch."""
        return {**self.stored_assets}

    @cached_property
    def stored_assets(self) -> Mapping[str, Asset]:
        return read_assets(self.store)

    def markets(self, at: datetime, redefined: Set[str]) -> Sequence[Market]:
        """The source's markets at an instant. SourceError if it should have markets and has none.

        Stored values replace an invalid side, and all sides of a redefined asset: without its collateral, an account
        would look liquidatable.
        """
        invalid = [(market, self._invalid_sides(market, redefined)) for market in self.source.markets(at)]
        stored = self._markets_before(at) if any(sides for _, sides in invalid) else {}
        kept = (_with_stored(market, sides, stored) if sides else market for market, sides in invalid if sides <= SIDES)
        markets = [market for market in kept if market]
        if not markets and self.source.has_markets:
            raise SourceError(f"{self.source.spec} has no markets as of {format_instant(at)}.")
        self._newest_markets.clear()
        self._newest_markets[unix_second(at)] = {market.asset_id: market for market in markets}
        return markets

    def _invalid_sides(self, market: Market, redefined: Set[str]) -> Set[str]:
        """The invalid fields of a market: its SIDES, or its id, without which nothing can be stored."""
        faults = self.rejections.validate("markets", market, Market)
        return {fault.path.partition(".")[0] for fault in faults} or (SIDES if market.asset_id in redefined else set())

    def markets_by_id(self, at: datetime, redefined: Set[str]) -> Mapping[str, Market]:
        """The markets by asset id. The source is asked once for each instant."""
        if unix_second(at) not in self._newest_markets:
            self.markets(at, redefined)
        return self._newest_markets[unix_second(at)]

    @cached_property
    def _newest_markets(self) -> dict[int, Mapping[str, Market]]:
        """The markets by asset id, for the last requested instant (unix second)."""
        return {}

    def _markets_before(self, at: datetime) -> Mapping[str, Market]:
        """The stored markets of the instant, or else the markets of the last snapshot before it, stored or in this
        batch."""
        before = last_snapshot_before(self.store, "markets", unix_second(at) + 1)
        for second, markets in self._newest_markets.items():
            if (-1 if before is None else before) < second < unix_second(at):
                return markets
        return {} if before is None else read_markets(self.store, before)

    def rates(self, at: datetime) -> Rates:
        """The rates of the source's markets at an instant. SourceError if it should have rates and has none."""
        answer = self.source.rates(at)
        rates = Rates(self._aprs("lend rates", answer.lend), self._aprs("borrow rates", answer.borrow))
        if not (rates.lend or rates.borrow) and self.source.has_markets:
            raise SourceError(f"{self.source.spec} has no rates as of {format_instant(at)}.")
        return rates

    def _aprs(self, part: str, aprs: Mapping[str, Decimal]) -> Mapping[str, Decimal]:
        valid = self.rejections.valid_records(part, [Apr(*item) for item in aprs.items()], Apr)
        return {rate.asset_id: rate.apr for rate in valid}

    def prices(self, at: datetime) -> Sequence[Price]:
        """The source's prices at an instant. SourceError if it quotes none.

        Prices more than a day later are rejected: with them, later observations would count as corrections of the past.
        Prices from before the first possible price are rejected, too.
        """
        quotes = self.source.prices(at)
        valid = self.rejections.valid_records("prices", quotes, Price)
        prices = [price for price in valid if self._is_credible(price, at)]
        if not prices:
            none = "no valid prices" if quotes else "no prices"
            raise SourceError(f"{self.source.spec} quotes {none} as of {format_instant(at)}.")
        return prices

    def known_prices(self, at: datetime, ids: Iterable[str]) -> Prices:
        """The prices known at an instant (rule 4.8, known prices) of the assets that the source quotes and of `ids`."""
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
        """The last stored prices at the instants, by asset id and second; read when needed."""
        return {}

    def _is_credible(self, price: Price, at: datetime) -> bool:
        """Whether a price's time is possible. Rejects it otherwise."""
        if min(OLDEST, at) <= price.observed_at <= at + _MAX_AHEAD:
            return True
        time = format_instant(price.observed_at)
        self.rejections.add("prices", price, ValidationError("observed_at", time, f" is {time}, which cannot be true."))
        return False


def _with_stored(market: Market, sides: Set[str], stored: Mapping[str, Market]) -> Market | None:
    """A market with the stored values of some sides; None if it then has no side."""
    known = stored.get(market.asset_id)
    kept: dict[str, Any] = {side: getattr(known, side, None) for side in sides}
    market = replace(market, **kept)
    return market if market.lend or market.collateral or market.debt else None


def _changed_decimals(known: Asset, asset: Asset) -> ValidationError:
    """The error for a definition whose decimals differ from the stored decimals."""
    now, was = asset.decimals_denom, known.decimals_denom
    remedy = (
        f"If {now} is right, correct the asset with `analytics-service import assets FILE`, then run `jobs recompute` "
        "and `jobs backfill all --again`."
    )
    problem = f" is {now}, and was {was}; decimals never change. {remedy} Its stored markets are kept, too."
    return ValidationError("decimals_denom", now, problem)


# Takes all or some snapshots of a batch, in the order of its instants. It reads no clock.
Collect = Callable[[JobContext], Commit]
