"""Markets: lend, collateral and debt markets, and the rules of all borrowing."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from analytics_service.errors import SourceError
from analytics_service.market.interest import interest_held, interest_since
from analytics_service.market.markets import LendMarket, Market
from analytics_service.sources.base import Source
from analytics_service.store.connection import Store
from analytics_service.store.ledger import completed_before
from analytics_service.store.markets import market_frames, read_lends
from jobs.snapshot import Snapshot

FAMILY = "markets"
# Lend markets with the interest they paid so far, by asset id.
_Lends = Mapping[str, tuple[LendMarket, int]]


def collect(source: Source, store: Store, instants: Sequence[datetime], version: int) -> list[Snapshot]:
    """The source's markets as of the instants. SourceError when it has none."""
    previous = completed_before(store, FAMILY, int(instants[0].timestamp()))
    lends: _Lends = {} if previous is None else read_lends(store, previous)
    snapshots = []
    for at in instants:
        markets = source.markets(at)
        if not markets:
            raise SourceError(f"{source.spec} has no markets as of {at:%Y-%m-%dT%H:%M:%SZ}.")
        lends = _paid(lends, markets)
        interest = {asset_id: paid for asset_id, (_, paid) in lends.items()}
        snapshots.append(Snapshot(at, market_frames(markets, interest, source.config(at), at, version)))
    return snapshots


def _paid(before: _Lends, markets: Sequence[Market]) -> _Lends:
    """The lend markets as they are now, with the interest paid so far."""
    now: dict[str, tuple[LendMarket, int]] = {}
    for market in markets:
        if market.lend:
            lend, paid = before.get(market.asset_id, (None, 0))
            added = interest_since(lend, market.lend) if lend else interest_held(market.lend)
            now[market.asset_id] = (market.lend, paid + added)
    return now
