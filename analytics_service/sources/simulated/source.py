"""The simulated protocol as a source of snapshots."""

from collections.abc import Sequence
from datetime import datetime

from analytics_service.market.assets import Asset
from analytics_service.market.prices import Price
from analytics_service.sources.simulated import prices, universe


class SimulatedSource:
    """A protocol made up from a seed. Answers for any instant, past or to come, at the same cost."""

    def __init__(self, seed: str) -> None:
        self._seed = seed

    @property
    def spec(self) -> str:
        """`simulated:<seed>`, also where the operator left the seed out."""
        return f"simulated:{self._seed}"

    def assets(self, at: datetime) -> Sequence[Asset]:
        """The same assets at every instant."""
        return universe.ASSETS

    def prices(self, at: datetime) -> Sequence[Price]:
        """A price of every asset but receipt tokens, observed at the whole second."""
        observed_at = at.replace(microsecond=0)
        second = int(observed_at.timestamp())
        return [
            Price(listing.asset.id, observed_at, prices.usd(self._seed, listing, second))
            for listing in universe.LISTINGS
        ]
