"""The interface of a source of snapshots."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from analytics_service.errors import SourceError
from analytics_service.market.assets import Asset
from analytics_service.market.events import Event, Totals
from analytics_service.market.markets import NO_CONFIG, GlobalConfig, Market
from analytics_service.market.positions import Activity, Position, RiskTotals, SwapContract
from analytics_service.market.prices import Price
from analytics_service.market.ptoken import Arrangement, Ptoken, no_ptoken
from analytics_service.market.rates import Rates


class Source(Protocol):
    """A protocol's state at an instant. Methods take aware instants, also of the past, and raise SourceError if they
    cannot answer: `jobs backfill` then skips the snapshot and reports it.

    A source class derives from this class, and is registered as an entry point; see registry.py.
    """

    may_hang: bool = True
    """Whether it calls other services, and so may never answer. If not, it is called directly, without a thread."""
    has_markets: bool = True
    """Whether the protocol has markets. If not, `markets` and `config` are not needed, and snapshots of markets and
    rates are empty. If so, an answer without markets is an error of the source."""
    at_ends: bool = False
    """Whether a backfill takes the last second of each interval, not the first: for a source whose past is buckets."""

    @property
    def spec(self) -> str:
        """The spec by which operators name this source."""
        raise SourceError(f"{type(self).__name__} has no `spec`, the name that operators use for it.")

    @property
    def simulated(self) -> bool:
        """Whether the protocol is simulated. Its data is never mixed with other data."""
        return False

    @property
    def history(self) -> timedelta | None:
        """The length of the past that `up` backfills at its start, which must be cheap; None means none."""
        return None

    @property
    def since(self) -> datetime | None:
        """The instant from which `up` backfills the price of each UTC midnight at its start, so that prices begin no
        later than events; None means the start of `history`."""
        return None

    @property
    def sample_account(self) -> str:
        """The address of an account of a simulated protocol, which `up` prints."""
        return ""

    def hurry(self) -> None:
        """From now on, wait for seconds at most, because the process is about to end."""
        return

    def close(self) -> None:
        """Release connections and other resources."""
        return

    def assets(self, at: datetime) -> Sequence[Asset]:
        """Every asset of the protocol."""
        raise self._without("assets")

    def prices(self, at: datetime) -> Sequence[Price]:
        """The oracle's price of each asset that it quotes, with 18 decimals, and the instant of each observation.

        An oracle without a newer price repeats the last price with its instant; only new prices are written. If the
        instant is unknown, it is `at`. Observations before 2009, or more than a day after `at`, are rejected. The last
        price of an asset is valid for a day from its instant (ANALYTICS_PRICE_MAX_AGE), repeated or not; then sums that
        include it are unknown.
        """
        raise self._without("prices")

    def markets(self, at: datetime) -> Sequence[Market]:
        """The lend, collateral and debt market of each asset that has any."""
        if self.has_markets:
            raise self._without("markets")
        return ()

    def rates(self, at: datetime) -> Rates:
        """The APRs of all lend and debt markets. The default takes them from `markets`."""
        return Rates.of(self.markets(at))

    def config(self, at: datetime) -> GlobalConfig:
        """The protocol's configuration."""
        if self.has_markets:
            raise self._without("config")
        return NO_CONFIG

    def events(self, start: datetime, end: datetime) -> Sequence[Event]:
        """All events in [start, end), whole seconds, oldest first, as the source has them now. The default has none.

        The last hour (ANALYTICS_EVENTS_LATENESS) is requested again with each snapshot: events may come late, move or
        disappear. A source that may lag by more says so in `complete_until`, or raises SourceError.
        """
        return ()

    def complete_until(self, at: datetime) -> datetime | None:
        """The instant up to which `events` are complete as of `at`; the next snapshot requests later events again. The
        default does not say."""
        return None

    def totals(self, at: datetime) -> Totals:
        """Sums over the events of all users, from a source whose `events` are incomplete. The default reports none."""
        return Totals()

    def ptoken(self, at: datetime) -> Ptoken:
        """The protocol token with its staking pools. The default has neither supply nor pools."""
        return no_ptoken(at)

    def arrangements(self, at: datetime) -> Sequence[Arrangement]:
        """Every unlock arrangement ever made."""
        return ()

    def positions(self, at: datetime) -> Iterable[Position]:
        """The position of every address that has one; an address, in any case, comes once (rule 8.17, rejected
        records). Receipt tokens in a wallet or among collateral are lent, even if `lends` lacks them (rule 6.9,
        portfolio history)."""
        return ()

    def activity(self, at: datetime) -> Activity | None:
        """The numbers of all users, from a source whose `positions` are incomplete; None if they are complete."""
        return None

    def risk(self, at: datetime) -> RiskTotals:
        """The risk of all borrow accounts, from a source whose `positions` are incomplete. The default reports none."""
        return RiskTotals()

    def swaps(self, at: datetime) -> Sequence[SwapContract]:
        """The swap contracts and their routes."""
        return ()

    def _without(self, method: str) -> SourceError:
        return SourceError(f"{self.spec} has no {method}: its class lacks this method.")
