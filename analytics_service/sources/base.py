"""The small interface behind which snapshots come from."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from analytics_service.market.assets import Asset
from analytics_service.market.prices import Price


class Source(Protocol):
    """A protocol's state as of an instant. Every method takes `at`, aware; SourceError when it cannot tell."""

    @property
    def spec(self) -> str:
        """How the operator names this source."""

    def assets(self, at: datetime) -> Sequence[Asset]:
        """Every asset the protocol knows at the instant."""

    def prices(self, at: datetime) -> Sequence[Price]:
        """The oracle's price of each asset it quotes, as of the instant; 18 decimals."""
