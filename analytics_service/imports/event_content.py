"""What events of files come to in the store: their values, the sums of loans and liquidations, the histories of
addresses.

Sums are those of all events, so they are made anew from the first event of the import on. They go on from imported
values, which stay as they are.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from analytics_service.clickhouse.columns import versioned
from analytics_service.clickhouse.connection import Store
from analytics_service.errors import ImportRefused
from analytics_service.imports.publishing import names_of, number_of, resumable, retries
from analytics_service.market.assets import Asset
from analytics_service.market.events import Event
from analytics_service.market.instants import unix_second
from analytics_service.market.values import quantized_below_limit, usd_value
from analytics_service.store import ledger, rewrite
from analytics_service.store.datasets.assets import ASSETS, changed_assets
from analytics_service.store.datasets.events import EVENTS
from analytics_service.store.datasets.known_events import EventChanges, compare_filed, read_of
from analytics_service.store.datasets.observations import OBSERVATIONS, read_prices_at
from analytics_service.store.datasets.sums import TOTALS, SumChanges, changed_sums, settled_before
from analytics_service.store.ledger import Run, new_version, read_state
from analytics_service.store.ownership import claim, read_claim
from analytics_service.store.rewrite import staging

FAMILY = "loans"


def valued(store: Store, events: Sequence[Event], assets: Mapping[str, Asset]) -> list[Event]:
    """The events with price and USD value: as the file says, or else by the price of their time, if there is one."""
    seconds: dict[str, set[int]] = defaultdict(set)
    for event in events:
        seconds[event.asset_id].add(unix_second(event.at))
    prices = {asset_id: read_prices_at(store, asset_id, list(at)) for asset_id, at in seconds.items()}
    return [
        _valued(event, prices[event.asset_id].get(unix_second(event.at)), assets[event.asset_id]) for event in events
    ]


def _valued(event: Event, price: Decimal | None, asset: Asset) -> Event:
    price = price if event.price is None else event.price
    if event.usd is not None or price is None or event.amount is None:
        return replace(event, price=price)
    usd = quantized_below_limit(usd_value(event.amount, asset.decimals_denom, price))
    return replace(event, price=price, usd=usd)


@resumable()
def publish_events(
    store: Store,
    events: Sequence[Event],
    assets: Sequence[Asset],
    files: Sequence[Path],
    wait: Callable[[float], bool | None] = time.sleep,
) -> None:
    """Write events, with everything that follows from them, and new assets: all at once, or nothing."""
    retry = retries(wait)
    version = retry(lambda: new_version(store))
    retry(lambda: claim(store, read_claim(store), ledger.IMPORTED))
    with staging(store, FAMILY, version, retry, what="import", expected=len(events)) as staged:
        seconds = [unix_second(event.at) for event in events]
        head = retry(lambda: read_state(store, FAMILY))
        first, last = min(seconds), max(*seconds, head.at if head else 0)
        changes = compare_filed(retry(lambda: read_of(store, events)), events)
        sums = retry(lambda: _sums(store, changes, first))
        definitions = retry(lambda: changed_assets(store, assets))
        run = Run(FAMILY, last, "import", first, last, len(events), names_of(files), version, files=number_of(files))
        for table, rows in {OBSERVATIONS: sums.added, EVENTS: changes.frame(), ASSETS: definitions}.items():
            retry(lambda table=table, rows=rows: staged.insert(table, versioned(rows, version)))  # type: ignore[misc]
        retry(lambda: staged.remove(sums.removed))
        rewrite.publish(store, staged, [run], retry)


def _sums(store: Store, changes: EventChanges, first: int) -> SumChanges:
    """What changes in sums from the first event of an import, or the first that it moves."""
    first = min([first, *changes.seconds])
    since = settled_before(store, first)
    return changed_sums(
        store, since, changes.summed, without=changes.unsummed, ticks={first: TOTALS}, refused=ImportRefused
    )
