"""The simulated protocol as a source of snapshots."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from analytics_service.market.assets import Asset
from analytics_service.market.events import Event
from analytics_service.market.instants import instant, unix_second
from analytics_service.market.markets import GlobalConfig, Market
from analytics_service.market.positions import Position, SwapContract
from analytics_service.market.prices import Price
from analytics_service.market.ptoken import Arrangement, Ptoken
from analytics_service.sources.base import Sample, Source
from analytics_service.sources.simulated import events, markets, prices, swaps, terms, token, universe
from analytics_service.sources.simulated.clock import LAUNCH
from analytics_service.sources.simulated.people import EMPTY_ADDRESS, RICH_ADDRESS

_DEFAULT_SEED = "1"


class SimulatedSource(Source):
    """A protocol made up from a seed. It has a state at every whole second, past or future.

    Before launch, 2025-01-01, there are assets, prices and empty markets, but neither positions nor events.
    """

    simulated = True
    may_hang = False

    def __init__(self, seed: str) -> None:
        self._seed = seed or _DEFAULT_SEED

    @property
    def spec(self) -> str:
        """`simulated:<seed>`, even if the operator gave no seed."""
        return f"simulated:{self._seed}"

    @property
    def history(self) -> timedelta:
        """Three months: prices, rates and loans of the past are cheap to compute."""
        return timedelta(days=90)

    @property
    def since(self) -> datetime:
        """The launch, at which the first event happens."""
        return instant(LAUNCH)

    @property
    def samples(self) -> Mapping[Sample, str]:
        """The sample addresses, which are the same for every seed."""
        return {
            Sample.RICH_ACCOUNT: RICH_ADDRESS,
            Sample.EMPTY_ACCOUNT: EMPTY_ADDRESS,
            Sample.SWAP_CONTRACT: swaps.SWAP_CONTRACT,
        }

    def assets(self, at: datetime) -> Sequence[Asset]:
        """The same assets at every instant."""
        return universe.ASSETS

    def prices(self, at: datetime) -> Sequence[Price]:
        """A price of every asset except receipt tokens, observed at the whole second."""
        observed_at = at.replace(microsecond=0)
        second = unix_second(at)
        return [
            Price(asset_id, observed_at, prices.usd(self._seed, listing, second))
            for asset_id, listing in universe.LISTINGS.items()
        ]

    def markets(self, at: datetime) -> Sequence[Market]:
        """Every market, in ascending order of asset id."""
        return markets.markets(self._seed, unix_second(at))

    def config(self, at: datetime) -> GlobalConfig:
        """The same rules at every instant."""
        return terms.CONFIG

    def events(self, after: datetime, until: datetime) -> Sequence[Event]:
        """The actions of users, at whole seconds; the first event is a loan at the second of the launch."""
        return events.events(self._seed, unix_second(after), unix_second(until))

    def ptoken(self, at: datetime) -> Ptoken:
        """The protocol token with its four staking pools."""
        return token.ptoken(self._seed, unix_second(at))

    def arrangements(self, at: datetime) -> Sequence[Arrangement]:
        """The same arrangements at every instant, with their state at that instant."""
        return token.arrangements(self._seed, unix_second(at))

    def positions(self, at: datetime) -> Iterable[Position]:
        """The positions of all users who have joined by then."""
        return markets.positions(self._seed, unix_second(at))

    def swaps(self, at: datetime) -> Sequence[SwapContract]:
        """The same two contracts at every instant."""
        return swaps.SWAPS
