"""Views: the newest state, or the state of a moment, for responders. Each part is read on first use."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import TypeVar

from cachetools import LRUCache

from analytics_service.clickhouse.connection import Store
from analytics_service.concurrency import DetachedSingleFlight, SingleFlight, locked_cached_property, remaining
from analytics_service.errors import BeingCorrected, EntityNotFound, NoSnapshot
from analytics_service.history.reader import HistoryReader
from analytics_service.market.assets import Asset, link_receipts
from analytics_service.market.book import Book, Terms, Valuation, book_of
from analytics_service.market.events import EventFilter, EventList, EventQuery
from analytics_service.market.instants import format_instant, from_unix, unix_second
from analytics_service.market.kinds import FOREVER
from analytics_service.market.markets import NO_CONFIG, GlobalConfig, Market
from analytics_service.market.positions import Activity, Position, SwapContract
from analytics_service.market.prices import Price, Prices, known_prices
from analytics_service.market.ptoken import Arrangement, Ptoken, no_ptoken
from analytics_service.market.receipts import with_receipt_prices
from analytics_service.market.supply import Supply, market_supply
from analytics_service.state.moments import Moment, Moments
from analytics_service.state.portfolio_history import PortfolioAt, PortfolioReader
from analytics_service.state.watcher import Heads, HeadWatcher
from analytics_service.store.datasets.assets import ASSETS_DATASET, read_assets
from analytics_service.store.datasets.events import count_events, read_events
from analytics_service.store.datasets.histories import PRICES
from analytics_service.store.datasets.interest import InterestPaid
from analytics_service.store.datasets.markets import (
    LENDS,
    read_arrangements,
    read_config,
    read_contract,
    read_market_prices,
    read_markets,
    read_ptoken,
)
from analytics_service.store.datasets.observations import read_last_prices, read_latest
from analytics_service.store.datasets.positions import (
    knows_all_addresses,
    read_activity,
    read_borrowing,
    read_position,
)
from analytics_service.store.datasets.sums import Loans, read_loans
from analytics_service.store.ledger import (
    NONE,
    VALUES_ONLY,
    Head,
    PastHead,
    first_moment,
    last_snapshot_before,
    read_head,
    require_unchanged,
)
from analytics_service.store.losses import Loss, require_kept
from analytics_service.store.schema import TABLES

_T = TypeVar("_T")
# Limit of cached views of the past. Requests for the same snapshots share a view.
_MAX_VIEWS = 16
# Limit of cached numbers of events. All pages of a list share a number.
_MAX_COUNTS = 1_000
_OF_SOME = "This service knows the positions of some addresses only,"
_ASK = "Ask the deployment that it follows."
_NOT_KNOWN = f"{_OF_SOME} and this address is not among them, or has nothing. {_ASK}"


def _is_empty(head: Head) -> bool:
    """Whether a head has neither a snapshot, nor imported values of a dataset without snapshot tables."""
    return head.at == NONE or (head.at == VALUES_ONLY and bool(TABLES[head.dataset]))


class SharedParts:
    """Large values that views share: there may be many views of the past."""

    def __init__(self, store: Store) -> None:
        self.interest = InterestPaid(store)
        # A book serves all prices. A large one takes some 200 MB, so only the last is cached, and its last valuation.
        self.books: SingleFlight[Book] = DetachedSingleFlight(LRUCache(1))
        self.valuations: SingleFlight[Valuation] = SingleFlight(LRUCache(1))
        self.counts: SingleFlight[int] = SingleFlight(LRUCache(_MAX_COUNTS))


class View:
    """The state of all datasets at their heads.

    Reading a part raises NoSnapshot if its dataset has no snapshot yet, and Superseded if the dataset was rewritten
    since the head. Each part is read only once.
    """

    def __init__(self, store: Store, heads: Heads, shared: SharedParts) -> None:
        self.heads = heads
        self._shared = shared
        self._store = store

    def head(self, dataset: str) -> Head:
        return self.heads.head(dataset)

    def heads_of(self, datasets: Iterable[str]) -> tuple[Head, ...]:
        """A cache key that changes with any data of the datasets."""
        return tuple(self.head(dataset) for dataset in datasets)

    def losses(self, dataset: str) -> Sequence[Loss]:
        """The store's losses of a dataset (rule 8.19, losses)."""
        return self.heads.losses.get(dataset, ())

    @property
    def sums_valued_by(self) -> tuple[str, ...]:
        """The datasets, besides markets, whose prices value the sums over markets."""
        return ("prices",)

    def _read(self, dataset: str, read: Callable[[Head], _T]) -> _T:
        head = self.head(dataset)
        if _is_empty(head):
            raise NoSnapshot(dataset)
        answer = read(head)
        require_unchanged(self._store, head)
        return answer

    @locked_cached_property
    def assets(self) -> dict[str, Asset]:
        """Every asset by id, in the order of ids."""
        return link_receipts(self._read("prices", lambda head: read_assets(self._store, head.version)))

    @property
    def shows_assets(self) -> bool:
        """Whether the dataset with the definitions of assets has a snapshot, even if it cannot be read now."""
        return self.heads.has(ASSETS_DATASET)

    @locked_cached_property
    def described(self) -> dict[str, Asset]:
        """Every asset by id, as presently defined if no snapshot has definitions."""
        return self.assets if self.shows_assets else read_assets(self._store)

    @locked_cached_property
    def symbols(self) -> dict[str, str]:
        return {asset_id: asset.symbol for asset_id, asset in self.described.items()}

    @locked_cached_property
    def ends(self) -> dict[str, int]:
        """Unix seconds of the ends of assets that have ended, by id."""
        return {asset_id: unix_second(asset.ended_at) for asset_id, asset in self.described.items() if asset.ended_at}

    @locked_cached_property
    def quotes(self) -> dict[str, tuple[Decimal, datetime]]:
        """The oracle's last price, and the time of its observation, by asset id; without assets that have ended."""
        ids = [asset_id for asset_id, asset in self.assets.items() if not asset.ended_at]
        return self._read("prices", lambda head: read_latest(self._store, PRICES, ids, head.last_observed_at))

    @locked_cached_property
    def quoted(self) -> Prices:
        """The oracle's prices at the snapshot of prices; None if the last price is too old (rule 4.8, known prices)."""
        last = [Price(asset_id, observed_at, usd) for asset_id, (usd, observed_at) in self.quotes.items()]
        head, max_age = self.head("prices"), self._store.price_max_age
        known = known_prices(last, head.instant, max_age)
        if None in known.values():
            # The head may be an imported price. Only a snapshot shows that a price is missing.
            taken = last_snapshot_before(self._store, "prices", head.at + 1)
            known = known_prices(last, from_unix(taken or 0), max_age)
        return known

    @locked_cached_property
    def prices(self) -> Prices:
        """The oracle's prices, and derived prices of receipt tokens that it does not quote."""
        return with_receipt_prices(self.quoted, self.assets, self.markets.values())

    @locked_cached_property
    def markets(self) -> dict[str, Market]:
        """Every asset's markets by asset id, in the order of ids."""
        return self._read("markets", lambda head: read_markets(self._store, head.at))

    @locked_cached_property
    def config(self) -> GlobalConfig:
        return self._read("markets", lambda head: read_config(self._store, head.at))

    @locked_cached_property
    def interest_paid(self) -> dict[str, int]:
        """Interest paid to lenders so far, in denom units, by asset id, in the order of ids: the source's total, else
        the sum over snapshots."""
        lends = {asset_id: market.lend for asset_id, market in self.markets.items() if market.lend}
        stated = {asset_id: lend.interest_paid for asset_id, lend in lends.items() if lend.interest_paid is not None}
        shown = {} if stated.keys() == lends.keys() else self._read("markets", self._interest)
        return {asset_id: stated.get(asset_id, shown.get(asset_id, 0)) for asset_id in lends}

    def _interest(self, head: Head) -> dict[str, int]:
        lost = (loss for loss in self.losses("markets") if loss.what == LENDS)
        require_kept(lost, 0, head.at + 1)
        return self._shared.interest.read(head)

    @locked_cached_property
    def supply(self) -> Supply:
        """USD sums over all markets."""
        return market_supply(self.markets.values(), self.assets, self.prices)

    @property
    def valuation(self) -> Valuation:
        """All borrow accounts, valued at the prices. Raises EntityNotFound if only some addresses are known."""
        if not self._knows_all:
            raise EntityNotFound(f"{_OF_SOME} so it cannot show all borrow accounts. {_ASK}")
        return self._shared.valuations.get(self, self._read_valuation)

    def _read_valuation(self) -> Valuation:
        book = self._shared.books.get(self.heads_of(("positions", "markets")), self._read_book)
        return Valuation(book, self._terms, self.quoted)

    @property
    def _terms(self) -> Terms:
        return Terms(self.assets, self.markets, self.config, self.ptoken)

    @locked_cached_property
    def _knows_all(self) -> bool:
        """Whether the positions of all addresses are known."""
        return self._read("positions", lambda head: knows_all_addresses(self._store, head.at))

    def _require_known(self, is_empty: bool) -> None:
        """Raises EntityNotFound for an empty part whose address may be unknown."""
        if is_empty and not self._knows_all:
            raise EntityNotFound(_NOT_KNOWN)

    def valuation_at(self, assumed: Mapping[str, Decimal]) -> Valuation:
        """All borrow accounts, valued with assumed prices by asset id in place of the oracle's."""
        valuation = self.valuation
        return replace(valuation, quoted={**self.quoted, **assumed}) if assumed else valuation

    def _read_book(self) -> Book:
        markets = self.markets
        return self._read("positions", lambda head: book_of(read_borrowing(self._store, head.at), markets))

    def has(self, dataset: str) -> bool:
        """Whether a dataset has a snapshot to read."""
        return self.heads.has(dataset) and not _is_empty(self.heads.head(dataset))

    @locked_cached_property
    def has_token(self) -> bool:
        """Whether the protocol has a token. Without a snapshot of it, the rules of markets decide."""
        if self.has("ptoken") or not self.has("markets"):
            return True
        return self.config.ptoken != NO_CONFIG.ptoken

    @locked_cached_property
    def ptoken(self) -> Ptoken:
        if not self.has_token:
            return no_ptoken(self.unlocks_as_of)
        return self._read("ptoken", lambda head: read_ptoken(self._store, head.at))

    @locked_cached_property
    def arrangements(self) -> list[Arrangement]:
        if not self.has_token:
            return []
        return self._read("ptoken", lambda head: read_arrangements(self._store, head.at))

    @property
    def unlocks_as_of(self) -> datetime:
        """The instant as of which unlock arrangements are shown."""
        return self.head("ptoken" if self.has_token else "markets").instant

    @locked_cached_property
    def loans(self) -> Loans:
        return self._read("loans", lambda head: read_loans(self._store, head.at))

    @locked_cached_property
    def activity(self) -> Activity:
        return self._read("positions", lambda head: read_activity(self._store, head.at))

    def position(self, address: str) -> Position:
        """The position of a (lower-case) address. Raises EntityNotFound if it is empty and others are unknown."""
        position = self._read("positions", lambda head: read_position(self._store, address, head.at))
        self._require_known(position == Position(address))
        return position

    def portfolio_history(self, address: str, seconds: Sequence[int], prices: HistoryReader) -> list[PortfolioAt]:
        """The portfolios of a (lower-case) address at unix seconds. Raises EntityNotFound if it never had anything, and
        only some positions are known. Markets and prices are read on first use."""
        portfolio_history = PortfolioReader(self._store, self.heads, self.assets, prices).read(address, seconds)
        self._require_known(all(then.is_empty for then in portfolio_history))
        return portfolio_history

    def require_unchanged(self, datasets: Iterable[str]) -> None:
        """Raises Superseded if datasets were rewritten while they were read (rule 8.3, atomic rewrites)."""
        require_unchanged(self._store, *self.heads_of(datasets))

    def arrangements_of(self, address: str) -> list[Arrangement]:
        """The unlock arrangements of a (lower-case) address."""
        return [arrangement for arrangement in self.arrangements if arrangement.address == address]

    def events(self, query: EventQuery) -> EventList:
        """A page of events. Raises EntityNotFound if the list lacks the previous event. If only some addresses are
        known, also for the list of all events, and for an address without events."""
        of = query.filter
        if of.address is None and self._knows_some:
            raise EntityNotFound(f"{_OF_SOME} so it cannot show all events. {_ASK}")
        events = self._read("loans", lambda head: self._events(head, query))
        if not events.count and self._knows_some and not self._count(self.head("loans"), EventFilter(of.address)):
            raise EntityNotFound(_NOT_KNOWN)
        return events

    def _events(self, head: Head, query: EventQuery) -> EventList:
        events = read_events(self._store, head.at + 1, replace(query, limit=query.limit + 1))
        return EventList(events[: query.limit], len(events) > query.limit, self._count(head, query.filter))

    def _count(self, head: Head, of: EventFilter) -> int:
        """The number of events that a filter selects, on all pages."""
        return self._shared.counts.get((head, of), lambda: count_events(self._store, head.at + 1, of))

    @locked_cached_property
    def _knows_some(self) -> bool:
        """Whether only the positions, and so the events, of some addresses are known."""
        newest = read_head(self._store, "positions")
        return newest is not None and not _is_empty(newest) and not knows_all_addresses(self._store, newest.at)

    def contract(self, address: str) -> SwapContract | None:
        """A swap contract by its (lower-case) address."""
        return self._read("routes", lambda head: read_contract(self._store, address, head.at))


class PastView(View):
    """The state of some datasets as of a moment (rule 8.12, as-of state). Reading a part raises EntityNotFound if its
    dataset had neither a snapshot nor an observation by then."""

    def head(self, dataset: str) -> Head:
        self.require((dataset,))
        return self.heads.head(dataset)

    def require(self, datasets: Iterable[str]) -> None:
        """Raises EntityNotFound if a dataset had nothing by the moment. The error names the first with data."""
        missing = [dataset for dataset in datasets if _is_empty(self.heads.head(dataset))]
        if missing:
            firsts = [first for dataset in missing if (first := first_moment(self._store, dataset)) is not None]
            hint = f" Ask for {format_instant(from_unix(max(firsts)))} or later." if firsts else ""
            raise EntityNotFound(f"at: there is no snapshot of {missing[0]} at or before that moment.{hint}")

    def heads_of(self, datasets: Iterable[str]) -> tuple[Head, ...]:
        """A cache key that changes with any data of the datasets, including datasets without a snapshot."""
        return tuple(self.heads.head(dataset) for dataset in datasets)

    @locked_cached_property
    def assets(self) -> dict[str, Asset]:
        """Every asset by id, in the order of ids, even if there were no prices yet.

        An end is often found later, so present ends apply, if they are earlier than the snapshot. Present decimals
        apply, too: decimals never change, so a difference is a mistake.
        """
        head = self.heads.head(ASSETS_DATASET)
        if not head.version:
            return {}
        if not isinstance(head, PastHead):
            assets = read_assets(self._store, head.version)
        else:
            at = FOREVER if head.at == NONE else head.at
            assets = read_assets(self._store, head.version, head.max_version, at)
            present = read_assets(self._store)
            for asset_id, asset in assets.items():
                ended_at, decimals = present[asset_id].ended_at, present[asset_id].decimals_denom
                is_over = ended_at is not None and unix_second(ended_at) < head.at
                assets[asset_id] = replace(asset, ended_at=ended_at if is_over else None, decimals_denom=decimals)
        require_unchanged(self._store, head)
        return link_receipts(assets)

    @locked_cached_property
    def market_prices(self) -> Prices:
        """The prices in the snapshot of markets; None for a missing price that an earlier snapshot had."""
        prices = self._read("markets", lambda head: read_market_prices(self._store, head.at))
        lacking = [
            asset_id
            for asset_id in self.markets
            if asset_id not in prices and asset_id in self.assets and not self.assets[asset_id].ended_at
        ]
        before = read_last_prices(self._store, lacking, [self.head("markets").at])
        return {**dict.fromkeys(asset_id for asset_id, prices in before.items() if prices), **prices}

    @property
    def sums_valued_by(self) -> tuple[str, ...]:
        """Empty: the snapshot of markets has its own prices."""
        return ()

    @locked_cached_property
    def supply(self) -> Supply:
        """USD sums over all markets, at the prices in their snapshot (rule 8.13, as-of prices)."""
        markets = self.markets.values()
        return market_supply(markets, self.assets, with_receipt_prices(self.market_prices, self.assets, markets))


class Views:
    """The newest view, which stays the same object until a head changes, and views of the past."""

    def __init__(self, store: Store, heads: HeadWatcher) -> None:
        self._store = store
        self._heads = heads
        self._moments = Moments(store)
        self._past: LRUCache[tuple[Head, ...], PastView] = LRUCache(_MAX_VIEWS)
        self._lock = threading.Lock()
        self._shared = SharedParts(store)
        self._view = View(store, Heads(), self._shared)

    def newest(self) -> View:
        heads, view = self._heads.shown(), self._view
        if view.heads is not heads:
            view = self._view = View(self._store, heads, self._shared)
        return view

    def past(self, moment: Moment, datasets: Iterable[str]) -> PastView:
        """The view of these datasets as of a moment. Moments with the same snapshots share a view."""
        shown = self._heads.shown()
        heads = self._moments.heads(shown, datasets, moment)
        key = tuple(heads.values())
        with self._lock:
            view = self._past.get(key)
            if view is None:
                view = self._past[key] = PastView(self._store, Heads(heads, losses=shown.losses), self._shared)
        return view

    def shows(self, heads: tuple[Head, ...]) -> bool:
        """Whether an answer made from these heads may still be shown."""
        newest = self._heads.shown().heads
        return all(head.is_current(newest.get(head.dataset)) for head in heads)

    def wait_for_rewrite(self) -> None:
        """Wait for another look at the ledger, after a rewrite during a read.

        Raises BeingCorrected when the deadline has passed.
        """
        if remaining() == 0:
            raise BeingCorrected
        self._heads.wait()
