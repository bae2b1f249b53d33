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
    """A protocol's state at an instant. Methods take aware instants, also of the past, and raise SourceError when they
    cannot answer: `jobs backfill` then leaves that snapshot, and tells of it.

    A source class derives from this class, and is registered as an entry point; see registry.py.
    """

    may_hang: bool = True
    """Whether it calls other services, and so may never answer. If not, it is called directly, without a thread."""
    has_markets: bool = True
    """Whether the protocol has markets. If not, it needs neither `markets` nor `config`, and snapshots of markets and
    rates are empty. If so, an answer without markets is a fault of the source."""
    at_ends: bool = False
    """Whether a backfill takes the last second of each interval, not its first: for a source whose past is buckets."""

    @property
    def spec(self) -> str:
        """The spec by which operators name this source."""
        raise SourceError(f"{type(self).__name__} has no spec, by which operators name it.")

    @property
    def simulated(self) -> bool:
        """Whether the protocol is made up. Its data is never mixed with other data."""
        return False

    @property
    def history(self) -> timedelta | None:
        """The length of the past that `up` fills in when it starts, which must be cheap; None means none."""
        return None

    @property
    def since(self) -> datetime | None:
        """The instant from which `up` fills in the price of each UTC midnight when it starts; None means that of
        `history`.

        With it, the events of a protocol do not begin before its prices.
        """
        return None

    @property
    def sample_account(self) -> str:
        """The address of an account of a made-up protocol, which `up` prints."""
        return ""

    def hurry(self) -> None:
        """From now on, wait for anything at most some seconds, because the process is about to end."""
        return

    def close(self) -> None:
        """Release connections and the like."""
        return

    def assets(self, at: datetime) -> Sequence[Asset]:
        """Every asset that the protocol knows."""
        raise self._without("assets")

    def prices(self, at: datetime) -> Sequence[Price]:
        """The oracle's price of each asset that it quotes, with 18 decimals, and the instant of each observation.

        An oracle without a newer price repeats the last price with its instant; only new prices are written. Where
        no instant is known, it is `at`. Observations of before 2009, or of more than a day after `at`, are left out.
        The last price of an asset, repeated or not, counts for a day from its instant (ANALYTICS_PRICE_MAX_AGE); then
        sums that include it are unknown.
        """
        raise self._without("prices")

    def markets(self, at: datetime) -> Sequence[Market]:
        """The lend, collateral and debt market of each asset that has any."""
        if self.has_markets:
            raise self._without("markets")
        return ()

    def rates(self, at: datetime) -> Rates:
        """The APRs of all lend and debt markets. The default has those of `markets`."""
        return Rates.of(self.markets(at))

    def config(self, at: datetime) -> GlobalConfig:
        """The rules for all borrowing."""
        if self.has_markets:
            raise self._without("config")
        return NO_CONFIG

    def events(self, start: datetime, end: datetime) -> Sequence[Event]:
        """All events from `start` on and before `end`, whole seconds, oldest first, as the source has them now. The
        default has no events.

        Each range of an hour (ANALYTICS_EVENTS_LATENESS) is asked for again: events may come late, have another instant
        than before, or be gone. A source that may lag by more says so in `complete_until`, or raises SourceError.
        """
        return ()

    def complete_until(self, at: datetime) -> datetime | None:
        """The instant up to which `events` are complete as of `at`; later ones are asked for again at the next
        snapshot. The default does not say."""
        return None

    def totals(self, at: datetime) -> Totals:
        """Sums over the events of all users, from a source whose `events` are not all. The default states none."""
        return Totals()

    def ptoken(self, at: datetime) -> Ptoken:
        """The protocol token with its staking pools. The default has neither supply nor pools."""
        return no_ptoken(at)

    def arrangements(self, at: datetime) -> Sequence[Arrangement]:
        """Every unlock arrangement ever made."""
        return ()

    def positions(self, at: datetime) -> Iterable[Position]:
        """The position of every address with a position: an address, in any case, comes once (rule 8.17).

        Receipt tokens in its wallet or among its collateral are lent, whether `lends` has them or not (rule 6.9).
        """
        return ()

    def activity(self, at: datetime) -> Activity | None:
        """The number of all users, from a source whose `positions` are not all; None if they are."""
        return None

    def risk(self, at: datetime) -> RiskTotals:
        """The risk of all borrow accounts, from a source whose `positions` are not all. The default states none."""
        return RiskTotals()

    def swaps(self, at: datetime) -> Sequence[SwapContract]:
        """The swap contracts and their routes."""
        return ()

    def _without(self, method: str) -> SourceError:
        return SourceError(f"{self.spec} has no {method}: its class has no method of that name.")
