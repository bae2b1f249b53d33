"""Lend, collateral and debt markets and the rules of all borrowing."""

from collections.abc import Mapping, Sequence

from analytics_service.market.interest import interest_held, interest_since
from analytics_service.market.markets import LendMarket, Market
from analytics_service.store.markets import market_frames, read_lends
from jobs.snapshot import Batch, Snapshot

HISTORY = False
# Lend markets, each with the interest paid so far in denom units, by asset id.
_Lends = Mapping[str, tuple[LendMarket, int]]


def collect(batch: Batch) -> list[Snapshot]:
    """The source's markets at the instants. SourceError when it has none."""
    previous = batch.completed_before()
    lends: _Lends = {} if previous is None else read_lends(batch.store, previous)
    snapshots = []
    for at in batch.instants:
        markets = batch.markets(at)
        lends = _with_interest(lends, markets)
        interest = {asset_id: paid for asset_id, (_, paid) in lends.items()}
        snapshots.append(Snapshot(at, market_frames(markets, interest, batch.source.config(at))))
    return snapshots


def _with_interest(before: _Lends, markets: Sequence[Market]) -> _Lends:
    """The lend markets as they are now, with the interest paid so far."""
    now: dict[str, tuple[LendMarket, int]] = {}
    for market in markets:
        if market.lend:
            lend, paid = before.get(market.asset_id, (None, 0))
            added = interest_since(lend, market.lend) if lend else interest_held(market.lend)
            now[market.asset_id] = (market.lend, paid + added)
    return now
