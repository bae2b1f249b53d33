"""Another deployment of this interface as a source.

Of single users it knows those whose addresses are in a file. Swap contracts, of which the interface has no list, are
the addresses of that file for which upstream has routes.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import TypeVar

import httpx

from analytics_service.config.settings import Settings
from analytics_service.errors import SourceError
from analytics_service.market.assets import Asset
from analytics_service.market.events import Event, Totals
from analytics_service.market.instants import instant, shown
from analytics_service.market.kinds import Flag
from analytics_service.market.markets import GlobalConfig, Market
from analytics_service.market.positions import Activity, Position, RiskTotals, SwapContract
from analytics_service.market.prices import Price
from analytics_service.market.ptoken import Arrangement, Ptoken
from analytics_service.market.rates import Rates
from analytics_service.sources.base import Source
from analytics_service.sources.upstream import events, records, unlocks
from analytics_service.sources.upstream.client import BOUNDS, CONNECTIONS, INTERVAL, Bounds, Client, Pace, Refused
from analytics_service.sources.upstream.fields import AnswerField
from analytics_service.sources.upstream.files import read_addresses, read_names
from analytics_service.sources.upstream.history import (
    Histories,
    read_past_risk,
    read_past_totals,
    read_risk,
    read_totals,
)
from analytics_service.sources.upstream.state import CATCH_UP, Asker, State
from analytics_service.store.datasets.histories import BORROW_RATES, LEND_RATES, PRICES, History

_T = TypeVar("_T")
# How long definitions of assets stand for those of past instants, which upstream need not tell.
_DEFINITIONS = timedelta(minutes=10)
_PATH_UNKNOWN = "path_unknown"
# Addresses that are asked for together.
_ADDRESSES = 100


def _now() -> datetime:
    return datetime.now(UTC)


class UpstreamSource(Source):
    """The deployment whose URL, up to /api/v1, is the spec.

    Values as of the past come from histories where the contract has them, and otherwise from current-state paths with
    `at`, an extension. `wait` pauses, and returns true once the process is about to end.
    """

    at_ends = True

    def __init__(
        self,
        spec: str,
        settings: Settings,
        *,
        transport: httpx.BaseTransport | None = None,
        bounds: Bounds = BOUNDS,
        interval: float = INTERVAL,
        wait: Callable[[float], bool | None] | None = None,
        now: Callable[[], datetime] = _now,
    ) -> None:
        self._spec = spec
        self._addresses = read_addresses(settings.addresses_file)
        self._stop = threading.Event()
        pace = Pace(interval, wait or self._stop.wait)
        names, key = read_names(settings.upstream_names), settings.upstream_key
        self._client = Client(spec, pace, names, key=key, transport=transport, bounds=bounds)
        self._state = State(self._client, now)
        self._histories = Histories(self._client, now)
        self._now = now
        self._definitions: tuple[datetime, list[Asset]] | None = None

    @property
    def spec(self) -> str:
        """The URL."""
        return self._spec

    @property
    def simulated(self) -> bool:
        """Whether upstream says that its data is simulated. One that does not tell is taken to be real."""
        try:
            told = self._client.get("/status/health").data.get("simulated")
        except Refused as error:
            if error.lacks_path:
                return False
            raise
        return told is not None and bool(told.read(Flag()))

    def hurry(self) -> None:
        """End all pauses but short ones, and with them the calls that wait."""
        self._stop.set()

    def close(self) -> None:
        """End all pauses and close all connections."""
        self._stop.set()
        self._client.close()

    def assets(self, at: datetime) -> Sequence[Asset]:
        """Every asset; for an instant of the past, every asset of the present."""
        if self._state.is_recent(at):
            return self._state.read("prices", at, records.read_assets)
        now = self._now()
        if self._definitions is None or not now - _DEFINITIONS < self._definitions[0] <= now:
            self._definitions = now, self._state.read("prices", now, records.read_assets)
        return self._definitions[1]

    def prices(self, at: datetime) -> Sequence[Price]:
        """The oracle's prices; of the past, those as of the instant, which then counts as that of the observation."""
        if self._state.is_recent(at):
            return self._state.read("prices", at, records.read_prices)
        return [Price(asset_id, at, usd) for asset_id, usd in self._past(PRICES, at).items()]

    def rates(self, at: datetime) -> Rates:
        """The APRs of all markets."""
        if self._state.is_recent(at):
            return self._state.read("markets", at, records.read_rates)
        return Rates(self._past(LEND_RATES, at), self._past(BORROW_RATES, at))

    def markets(self, at: datetime) -> Sequence[Market]:
        """The markets of the overview."""
        return self._state.read("markets", at, records.read_markets)

    def config(self, at: datetime) -> GlobalConfig:
        """The rules for all borrowing."""
        return self._state.read("markets", at, records.read_config)

    def totals(self, at: datetime) -> Totals:
        """The sums over all users."""
        if self._state.is_recent(at):
            return self._state.read("loans", at, lambda asker: read_totals(asker, self._histories, at))
        return read_past_totals(self._state.asker("loans", at), self._histories, at)

    def activity(self, at: datetime) -> Activity:
        """The number of all users."""
        return self._state.read("positions", at, records.read_activity)

    def risk(self, at: datetime) -> RiskTotals:
        """The risk of all borrow accounts, from the histories of it."""
        if self._state.is_recent(at):
            return self._state.read("positions", at, lambda asker: read_risk(asker, self._histories, at))
        return read_past_risk(self._histories, at)

    def events(self, start: datetime, end: datetime) -> Sequence[Event]:
        """The events of followed addresses."""
        lists = self._each(lambda address: events.read_events(self._client, address, start, end))
        return sorted((event for listed in lists for event in listed), key=lambda event: (event.at, event.id))

    def complete_until(self, at: datetime) -> datetime | None:
        """The instant of upstream's newest snapshot of loans, up to which it tells all events; None if nobody is
        followed, or if it does not tell with As-Of. One of `at` is waited for some seconds."""
        newest = self._newest_loans()
        for pause in CATCH_UP:
            if newest is None or newest >= at:
                break
            self._client.pace.pause(pause)
            newest = self._newest_loans()
        return newest

    def ptoken(self, at: datetime) -> Ptoken:
        """The protocol token."""
        return self._state.read("ptoken", at, records.read_ptoken)

    def arrangements(self, at: datetime) -> Sequence[Arrangement]:
        """The arrangements of followed addresses, and stand-ins for all; see unlocks.py."""
        return self._state.read("ptoken", at, lambda asker: list(self._arrangements(asker, at)))

    def positions(self, at: datetime) -> Iterator[Position]:
        """The positions of followed addresses. SourceError if upstream completes a snapshot meanwhile."""
        asker = self._state.asker("positions", at)
        for position in self._each(partial(_position, asker), asker):
            if len(asker.snapshots) > 1 and asker.sends_at:
                raise SourceError(f"{self._spec} has completed positions while they were read, as of {shown(at)}.")
            if position is not None:
                yield position

    def swaps(self, at: datetime) -> Sequence[SwapContract]:
        """Those of the addresses that have routes."""
        asker = self._state.asker("routes", at)
        return [contract for contract in self._each(partial(_contract, asker), asker) if contract is not None]

    def _past(self, history: History, at: datetime) -> dict[str, Decimal]:
        assert history.by_asset
        return dict(self._histories.values(history.by_asset.path, at))

    def _newest_loans(self) -> datetime | None:
        if not self._addresses:
            return None
        newest = self._client.get(f"/users/{self._addresses[0]}/tx-history", limit=1).as_of.get("loans")
        return None if newest is None else instant(newest)

    def _arrangements(self, asker: Asker, at: datetime) -> Iterator[Arrangement]:
        yield from unlocks.read_groups(asker.get("/analytics/ptoken/unlocks-distribution").data, at)
        for listed in self._each(partial(_own_arrangements, asker, at=at)):
            yield from listed

    def _each(self, ask: Callable[[str], _T], asker: Asker | None = None) -> Iterator[_T]:
        """What is read for each followed address, in their order, for some of them at the same time."""
        addresses = self._addresses
        if asker and addresses:
            # The first call waits for upstream's snapshot; the others then find it.
            yield ask(addresses[0])
            addresses = addresses[1:]
        for first in range(0, len(addresses), _ADDRESSES):
            with ThreadPoolExecutor(CONNECTIONS, "upstream") as pool:
                yield from pool.map(ask, addresses[first : first + _ADDRESSES])


def _position(asker: Asker, address: str) -> Position | None:
    """The position of an address; None if upstream does not know the address."""
    user = _unless_unknown(lambda: asker.get(f"/users/{address}/user").data)
    return None if user is None else records.read_position(address, user)


def _contract(asker: Asker, address: str) -> SwapContract | None:
    """The swap contract of an address; None if there is none."""
    routes = _unless_unknown(lambda: asker.get_list("/swap/routes/all", contract_address=address).data)
    return None if routes is None else records.read_routes(address, routes)


def _own_arrangements(asker: Asker, address: str, at: datetime) -> list[Arrangement]:
    # The path is an extension.
    own = _unless_unknown(lambda: asker.get(f"/users/{address}/ptoken/unlocks").data, _PATH_UNKNOWN)
    return [] if own is None else list(unlocks.read_arrangements(address, own, at))


def _unless_unknown(ask: Callable[[], AnswerField], *kinds: str) -> AnswerField | None:
    """The answer; None if upstream says that there is nothing, or that there cannot be, or has an error of other kinds.

    A 404 of its proxy, or for a path that is not there, does not say that.
    """
    try:
        return ask()
    except Refused as error:
        if error.status in (400, 404) and (error.kind not in ("", _PATH_UNKNOWN) or error.kind in kinds):
            return None
        raise
