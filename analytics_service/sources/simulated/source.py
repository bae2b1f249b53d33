"""The simulated protocol as a source of snapshots."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import ClassVar

from analytics_service.market.assets import Asset
from analytics_service.market.events import Event
from analytics_service.market.instants import instant, unix_second
from analytics_service.market.markets import GlobalConfig, Market
from analytics_service.market.positions import Position, SwapContract
from analytics_service.market.prices import Price
from analytics_service.market.ptoken import Arrangement, Ptoken
from analytics_service.sources.base import Sample, Source
from analytics_service.sources.simulated import people, prices, terms, universe, views
from analytics_service.sources.simulated.ledger import ledger
from analytics_service.sources.simulated.state import State


class SimulatedSource(Source):
    """A protocol made up from a seed. It has a state at every whole second, past or future.

    Before launch, 2025-01-01, there are assets, prices and empty markets, but neither positions nor events.
    """

    simulated = True
    may_hang = False
    # Prices, rates and loans of the past are cheap to compute.
    history: timedelta | None = timedelta(days=90)
    since: datetime | None = instant(terms.LAUNCH)
    samples: ClassVar[Mapping[Sample, str]] = {
        Sample.RICH_ACCOUNT: people.RICH_ADDRESS,
        Sample.EMPTY_ACCOUNT: people.EMPTY_ADDRESS,
        Sample.SWAP_CONTRACT: people.SWAP_CONTRACT,
    }

    def __init__(self, seed: str) -> None:
        self._seed = seed or "1"

    @property
    def spec(self) -> str:
        """`simulated:<seed>`, even if the operator gave no seed."""
        return f"simulated:{self._seed}"

    def assets(self, at: datetime) -> Sequence[Asset]:
        return universe.ASSETS

    def prices(self, at: datetime) -> Sequence[Price]:
        """A price of every asset except receipt tokens, observed at the whole second."""
        second = unix_second(at)
        usd = {one: Decimal(prices.price(self._seed, one, second)).scaleb(-18) for one in universe.LISTINGS}
        return [Price(asset_id, instant(second), price) for asset_id, price in usd.items()]

    def markets(self, at: datetime) -> Sequence[Market]:
        return list(views.markets(*self._state(at)))

    def config(self, at: datetime) -> GlobalConfig:
        return terms.CONFIG

    def events(self, after: datetime, until: datetime) -> Sequence[Event]:
        return ledger(self._seed).events(unix_second(after), unix_second(until))

    def ptoken(self, at: datetime) -> Ptoken:
        return views.ptoken(*self._state(at))

    def arrangements(self, at: datetime) -> Sequence[Arrangement]:
        return views.arrangements(self._state(at)[0])

    def positions(self, at: datetime) -> Iterable[Position]:
        return views.positions(*self._state(at))

    def swaps(self, at: datetime) -> Sequence[SwapContract]:
        return people.SWAPS

    def _state(self, at: datetime) -> tuple[State, int]:
        second = unix_second(at)
        return ledger(self._seed).at(second), second
