"""Another deployment of this interface as a source.

Of single users it knows those whose addresses are in a file. Swap contracts, of which the interface has no list, are
the addresses of that file for which upstream has routes.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TypeVar

import httpx

from analytics_service.config.settings import Settings
from analytics_service.errors import SourceError
from analytics_service.market.assets import Asset
from analytics_service.market.events import Event, Sum, Totals
from analytics_service.market.instants import instant, shown, unix_second
from analytics_service.market.kinds import Flag, Usd
from analytics_service.market.markets import GlobalConfig, Market
from analytics_service.market.positions import Activity, Position, RiskTotals, SwapContract
from analytics_service.market.prices import Price
from analytics_service.market.ptoken import Arrangement, Ptoken
from analytics_service.market.rates import Rates
from analytics_service.sources.base import Source
from analytics_service.sources.upstream import client, events, records, unlocks
from analytics_service.sources.upstream.client import BOUNDS, INTERVAL, Bounds, Client, Pace, Refused, none_if
from analytics_service.sources.upstream.fields import AnswerField
from analytics_service.sources.upstream.files import read_addresses, read_names
from analytics_service.sources.upstream.history import Histories, Values
from analytics_service.sources.upstream.records import STATE
from analytics_service.sources.upstream.state import CATCH_UP, Asker, NoPast, State
from analytics_service.store.datasets import histories

_T = TypeVar("_T")
# How long definitions of assets stand for those of past instants, which upstream need not tell.
_DEFINITIONS = timedelta(minutes=10)
# Addresses that are asked for together.
_ADDRESSES = 100
_RISK = (
    histories.DEBT_AT_RISK,
    histories.ACCOUNTS_AT_RISK,
    histories.LIQUIDATABLE_DEBT,
    histories.BAD_DEBT,
)
_USD = Usd()


def _now() -> datetime:
    return datetime.now(UTC)


class UpstreamSource(Source):
    """The deployment whose URL, up to /api/v1, is the spec.

    Values as of the past come from histories where the contract has them, and otherwise from current-state paths with
    `at`, an extension. `wait` pauses, and returns true once the process is about to end.
    """

    at_ends = True
    spec = ""

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
        self.spec = spec
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
    def simulated(self) -> bool:
        """Whether upstream says that its data is simulated. One that does not tell is taken to be real."""
        health = none_if(Refused.lacks_path, self._client.get, "/status/health")
        told = health.data.get("simulated") if health else None
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
        return [Price(asset_id, at, usd) for asset_id, usd in self._past(histories.PRICES, at).items()]

    def rates(self, at: datetime) -> Rates:
        if self._state.is_recent(at):
            return self._state.read("markets", at, records.read_rates)
        return Rates(self._past(histories.LEND_RATES, at), self._past(histories.BORROW_RATES, at))

    def markets(self, at: datetime) -> Sequence[Market]:
        return self._state.read("markets", at, records.read_markets)

    def config(self, at: datetime) -> GlobalConfig:
        return self._state.read(
            "markets", at, lambda asker: asker.get("/markets/config").record(GlobalConfig, strict=True)
        )

    def totals(self, at: datetime) -> Totals:
        """The sums over all users: from the newest state, and of the past from histories. Flash loans, which have no
        history, are unknown if upstream does not tell its past state."""

        def read(asker: Asker) -> Totals:
            is_recent = self._state.is_recent(at)
            try:
                state = asker.get(STATE)
            except NoPast:
                if is_recent:
                    raise
                state = None
            then = _newest(asker, at) if is_recent else at
            return Totals(
                _loans(state) if is_recent and state else self._histories.sum(histories.LOANS, at),
                # An extension.
                none_if(Refused.lacks_path, self._histories.sum, histories.LIQUIDATIONS, then),
                state["flash_loan_volume_total"].read(_USD) if state else None,
            )

        return self._state.read("loans", at, read)

    def activity(self, at: datetime) -> Activity:
        return self._state.read("positions", at, lambda asker: asker.get(STATE).record(Activity, strict=True))

    def risk(self, at: datetime) -> RiskTotals:
        """The risk of all borrow accounts, as far as upstream has histories of it, which are an extension."""

        def read(asker: Asker) -> RiskTotals:
            if self._state.is_recent(at):
                with suppress(NoPast):
                    asker.get(STATE)
            then = _newest(asker, at)
            totals = (none_if(Refused.lacks_path, self._histories.total, history, then) for history in _RISK)
            return RiskTotals(*totals)

        return self._state.read("positions", at, read)

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
        return self._state.read("ptoken", at, records.read_ptoken)

    def arrangements(self, at: datetime) -> Sequence[Arrangement]:
        """The arrangements of followed addresses, and stand-ins for all; see unlocks.py."""

        def read(asker: Asker) -> list[Arrangement]:
            def own(address: str) -> list[Arrangement]:
                answer = none_if(Refused.lacks_any, asker.get, f"/users/{address}/ptoken/unlocks")
                return [*unlocks.read_arrangements(address, answer, at)] if answer else []

            stand_ins = unlocks.read_groups(asker.get("/analytics/ptoken/unlocks-distribution"), at)
            return [*stand_ins, *(arrangement for listed in self._each(own) for arrangement in listed)]

        return self._state.read("ptoken", at, read)

    def positions(self, at: datetime) -> Iterator[Position]:
        """The positions of followed addresses. SourceError if upstream completes a snapshot meanwhile."""
        asker = Asker(self._state, "positions", at)

        def position(address: str) -> Position | None:
            user = none_if(Refused.lacks_entity, asker.get, f"/users/{address}/user")
            return records.read_position(address, user) if user else None

        for found in self._each(position, asker):
            if len(asker.snapshots) > 1 and asker.sends_at:
                raise SourceError(f"{self.spec} has completed positions while they were read, as of {shown(at)}.")
            if found is not None:
                yield found

    def swaps(self, at: datetime) -> Sequence[SwapContract]:
        """Those of the addresses that have routes."""
        asker = Asker(self._state, "routes", at)

        def contract(address: str) -> SwapContract | None:
            routes = none_if(Refused.lacks_entity, partial(asker.get, "/swap/routes/all", contract_address=address))
            return records.read_routes(address, routes) if routes else None

        return [found for found in self._each(contract, asker) if found is not None]

    def _past(self, history: histories.History, at: datetime) -> Values:
        assert history.by_asset
        return self._histories.values(history.by_asset.path, at)

    def _newest_loans(self) -> datetime | None:
        if not self._addresses:
            return None
        newest = self._client.get(f"/users/{self._addresses[0]}/tx-history", limit=1).as_of.get("loans")
        return None if newest is None else instant(newest)

    def _each(self, ask: Callable[[str], _T], asker: Asker | None = None) -> Iterator[_T]:
        """What is read for each followed address, in their order, for some of them at the same time."""
        addresses = self._addresses
        if asker and addresses:
            # The first call waits for upstream's snapshot; the others then find it.
            yield ask(addresses[0])
            addresses = addresses[1:]
        for first in range(0, len(addresses), _ADDRESSES):
            with ThreadPoolExecutor(client.CONNECTIONS, "upstream") as pool:
                yield from pool.map(ask, addresses[first : first + _ADDRESSES])


def _newest(asker: Asker, at: datetime) -> datetime:
    """The newest instant up to another for which histories have values: they have none after upstream's snapshot."""
    return instant(max(asker.snapshots, default=unix_second(at)))


def _loans(state: AnswerField) -> Sum:
    loans = state["loans_originated"]
    by_asset = loans["breakdown"].by_asset(lambda item: item["value"].read(_USD))
    return Sum(loans["total_value"].read(_USD), by_asset)
