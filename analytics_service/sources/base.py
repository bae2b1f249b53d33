"""The small interface behind which snapshots come from."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Protocol

from analytics_service.market.assets import Asset
from analytics_service.market.loans import Event
from analytics_service.market.markets import GlobalConfig, Market
from analytics_service.market.positions import Position, SwapContract
from analytics_service.market.prices import Price
from analytics_service.market.ptoken import Arrangement, Ptoken


class Source(Protocol):
    """A protocol's state as of an instant. Every method takes `at`, aware; SourceError when it cannot tell."""

    @property
    def spec(self) -> str:
        """How the operator names this source."""

    def assets(self, at: datetime) -> Sequence[Asset]:
        """Every asset the protocol knows at the instant."""

    def prices(self, at: datetime) -> Sequence[Price]:
        """The oracle's price of each asset it quotes, as of the instant; 18 decimals."""

    def markets(self, at: datetime) -> Sequence[Market]:
        """The lend, collateral and debt market of each asset that has any."""

    def config(self, at: datetime) -> GlobalConfig:
        """The rules of all borrowing."""

    def events(self, after: datetime, until: datetime) -> Sequence[Event]:
        """Events of lending later than `after` and not later than `until`, oldest first."""

    def ptoken(self, at: datetime) -> Ptoken:
        """The protocol token with its staking pools."""

    def arrangements(self, at: datetime) -> Sequence[Arrangement]:
        """Every unlock arrangement ever made."""

    def positions(self, at: datetime) -> Iterable[Position]:
        """The position of every address that has one."""

    def swaps(self, at: datetime) -> Sequence[SwapContract]:
        """The swap contracts and their routes."""
