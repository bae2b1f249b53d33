"""Another deployment of this interface as a source.

It follows the users whose addresses are in a file. The interface does not list swap contracts, so these are the
addresses of the file for which upstream has routes.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

import httpx
from cachetools import TTLCache, cached

from analytics_service.config.settings import Settings
from analytics_service.market.assets import Asset
from analytics_service.market.events import Event, Sum, Totals
from analytics_service.market.instants import from_unix, unix_second
from analytics_service.market.kinds import Flag
from analytics_service.market.markets import GlobalConfig, Market
from analytics_service.market.positions import Activity, Position, RiskTotals, SwapContract
from analytics_service.market.prices import Price
from analytics_service.market.ptoken import Arrangement, Ptoken
from analytics_service.market.rates import Rates
from analytics_service.sources.base import Source
from analytics_service.sources.upstream import events, records, unlocks
from analytics_service.sources.upstream.client import CONNECTIONS, INTERVAL, TIMEOUT, Client, none_if_lacking
from analytics_service.sources.upstream.fields import AnswerField
from analytics_service.sources.upstream.files import read_addresses, read_names
from analytics_service.sources.upstream.history import Histories, Values
from analytics_service.sources.upstream.records import STATE
from analytics_service.sources.upstream.state import CATCH_UP, UpstreamState
from analytics_service.store.datasets import histories

_T = TypeVar("_T")
# Seconds for which definitions of assets are kept for past instants, whose definitions upstream may not have.
_DEFINITIONS = 600
_RISK = (histories.DEBT_AT_RISK, histories.ACCOUNTS_AT_RISK, histories.LIQUIDATABLE_DEBT, histories.BAD_DEBT)


def _now() -> datetime:
    return datetime.now(UTC)


class UpstreamSource(Source):
    """The deployment whose URL, up to /api/v1, is the spec.

    Past values come from histories if the contract has them, otherwise from current-state paths with `at`, an
    extension. `wait` pauses, and returns true once the process is about to end.
    """

    at_ends = True
    spec = ""

    def __init__(
        self,
        spec: str,
        settings: Settings,
        *,
        transport: httpx.BaseTransport | None = None,
        timeout: float = TIMEOUT,
        interval: float = INTERVAL,
        wait: Callable[[float], bool | None] | None = None,
        now: Callable[[], datetime] = _now,
    ) -> None:
        self.spec = spec
        self._addresses = read_addresses(settings.addresses_file)
        self._stop = threading.Event()
        self._now = now
        self._client = Client(
            spec,
            read_names(settings.upstream_names),
            wait or self._stop.wait,
            key=settings.upstream_key,
            interval=interval,
            transport=transport,
            timeout=timeout,
        )
        self._histories = Histories(self._client, now)
        self._definitions = cached(TTLCache(1, _DEFINITIONS), lock=threading.Lock())(
            lambda: records.read_assets(self._state("prices", now()))
        )

    @property
    def simulated(self) -> bool:
        """Whether upstream says that its data is simulated; if it does not say, it is real."""
        health = none_if_lacking(self._client.get, "/status/health")
        simulated = health.data.get("simulated") if health else None
        return simulated is not None and bool(simulated.read(Flag()))

    def hurry(self) -> None:
        """End all pauses, and with them the calls that retry."""
        self._stop.set()

    def close(self) -> None:
        """End all pauses and close all connections."""
        self.hurry()
        self._client.close()

    def assets(self, at: datetime) -> Sequence[Asset]:
        """Every asset; for the past, the present assets."""
        state = self._state("prices", at)
        return records.read_assets(state) if state.is_recent else self._definitions()

    def prices(self, at: datetime) -> Sequence[Price]:
        """The oracle's prices; for the past, prices as of the instant, which becomes the instant of observation."""
        state = self._state("prices", at)
        if state.is_recent:
            return records.read_prices(state)
        return [Price(asset_id, at, usd) for asset_id, usd in self._past(histories.PRICES, at).items()]

    def rates(self, at: datetime) -> Rates:
        state = self._state("markets", at)
        if state.is_recent:
            return records.read_rates(state)
        return Rates(self._past(histories.LEND_RATES, at), self._past(histories.BORROW_RATES, at))

    def markets(self, at: datetime) -> Sequence[Market]:
        return records.read_markets(self._state("markets", at))

    def config(self, at: datetime) -> GlobalConfig:
        return self._state("markets", at).get("/markets/config").record(GlobalConfig)

    def totals(self, at: datetime) -> Totals:
        """The sums over all users: from the newest state, for the past from histories. Flash loans, which have no
        history, are unknown if upstream does not have its past state."""
        state = self._state("loans", at)
        sums = state.get(STATE) if state.is_recent else none_if_lacking(state.get, STATE)
        then = state.snapshot if state.is_recent else at
        return Totals(
            _loans(sums) if sums and state.is_recent else self._histories.sum(histories.LOANS, at),
            # An extension.
            none_if_lacking(self._histories.sum, histories.LIQUIDATIONS, then),
            sums["flash_loan_volume_total"].decimal() if sums else None,
        )

    def activity(self, at: datetime) -> Activity:
        return self._state("positions", at).get(STATE).record(Activity)

    def risk(self, at: datetime) -> RiskTotals:
        """The risk of all borrow accounts, from those histories of risk, an extension, that upstream has, as of its
        snapshot."""
        state = self._state("positions", at)
        if state.is_recent:
            none_if_lacking(state.get, STATE)
        totals = (none_if_lacking(self._histories.total, history, state.snapshot) for history in _RISK)
        return RiskTotals(*totals)

    def events(self, start: datetime, end: datetime) -> Sequence[Event]:
        """The events of followed addresses."""
        lists = self._each(lambda address: events.read_events(self._client, address, start, end))
        return sorted((event for listed in lists for event in listed), key=lambda event: (event.at, event.id))

    def complete_until(self, at: datetime) -> datetime | None:
        """The instant of upstream's newest snapshot of loans, up to which its events are complete; None without
        followed addresses, or without As-Of. Waits some seconds for a snapshot of `at`."""
        if not self._addresses:
            return None
        for pause in (0.0, *CATCH_UP):
            self._client.pause(pause)
            answer = self._client.get(f"/users/{self._addresses[0]}/tx-history", limit=1)
            newest = answer.as_of.get("loans")
            if newest is None or newest >= unix_second(at):
                break
        return None if newest is None else from_unix(newest)

    def ptoken(self, at: datetime) -> Ptoken:
        return records.read_ptoken(self._state("ptoken", at))

    def arrangements(self, at: datetime) -> Sequence[Arrangement]:
        """The arrangements of followed addresses, and stand-ins for all others; see unlocks.py."""
        state = self._state("ptoken", at)
        stand_ins = unlocks.read_groups(state.get("/analytics/ptoken/unlocks-distribution"), at)

        def own(address: str) -> list[Arrangement]:
            answer = none_if_lacking(state.get, f"/users/{address}/ptoken/unlocks")
            return [*unlocks.read_arrangements(address, answer, at)] if answer else []

        return [*stand_ins, *(arrangement for listed in self._each(own) for arrangement in listed)]

    def positions(self, at: datetime) -> Iterator[Position]:
        """The positions of followed addresses."""
        state = self._state("positions", at)

        def position(address: str) -> Position | None:
            user = none_if_lacking(state.get, f"/users/{address}/user", known_path=True)
            return records.read_position(address, user) if user else None

        return filter(None, self._each(position))

    def swaps(self, at: datetime) -> Sequence[SwapContract]:
        """The followed addresses that have routes."""
        state = self._state("routes", at)

        def contract(address: str) -> SwapContract | None:
            routes_of = partial(state.get, "/swap/routes/all", contract_address=address)
            routes = none_if_lacking(routes_of, known_path=True)
            return records.read_routes(address, routes) if routes else None

        return [*filter(None, self._each(contract))]

    def _state(self, dataset: str, at: datetime) -> UpstreamState:
        return UpstreamState(self._client, dataset, at, self._now())

    def _past(self, history: histories.History, at: datetime) -> Values:
        assert history.by_asset
        return self._histories.values(history.by_asset.path, at)

    def _each(self, ask: Callable[[str], _T]) -> Iterator[_T]:
        """The answer for each followed address, in order, several at the same time. The first call is alone: it may
        wait for upstream's snapshot, which the others then find."""
        yield from map(ask, self._addresses[:1])
        with ThreadPoolExecutor(CONNECTIONS, "upstream") as pool:
            yield from pool.map(ask, self._addresses[1:])


def _loans(state: AnswerField) -> Sum:
    loans = state["loans_originated"]
    return Sum(loans["total_value"].decimal(), loans["breakdown"].by_asset(lambda item: item["value"].decimal()))
