"""What events of files come to in the store: their values, the sums of loans and liquidations, the histories of
addresses.

Sums are those of all events, so they are made anew from the first event of the import on. They go on from imported
values, which stay as they are.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import polars as pl

from analytics_service.errors import ImportRefused, SourceRefused
from analytics_service.imports.publishing import names_of, number_of, resumable, retries
from analytics_service.market.assets import Asset
from analytics_service.market.events import Action, Event, Leg
from analytics_service.market.instants import unix_second
from analytics_service.market.kinds import TIME_LIMIT
from analytics_service.market.values import EXACT, ZERO, quantized_below_limit, usd_value
from analytics_service.store import ledger, rewrite
from analytics_service.store.admission import claim, read_claim
from analytics_service.store.assets import ASSETS, changed_assets
from analytics_service.store.columns import versioned
from analytics_service.store.connection import Store
from analytics_service.store.events import ACCOUNT_EVENTS, account_event_frame, numbered, read_events_since
from analytics_service.store.histories import History
from analytics_service.store.ledger import Run, completed_before, new_version, read_state
from analytics_service.store.loans import (
    SUMMED,
    SUMMED_BY_ASSET,
    SummedEvent,
    above_imported,
    flash_frame,
    is_lending,
    lending_frame,
    plus,
    read_event_sums,
    read_imported_sums,
    read_lending_since,
    total_of,
)
from analytics_service.store.observations import (
    OBSERVATIONS,
    TOTAL,
    observation_frame,
    read_observed_since,
    read_prices_at,
)
from analytics_service.store.rewrite import staging

FAMILY = "loans"
_Series = tuple[Action, str]
# The sums over all assets, each of which is 0 before its first event.
_TOTALS = [(action, TOTAL) for action in SUMMED]


def require_no_jobs(store: Store) -> None:
    """SourceRefused if jobs have written events: their sums are those of a source, which knows all of its events."""
    if completed_before(store, FAMILY, TIME_LIMIT - 1) is not None:
        raise SourceRefused(
            "The events of this store come from a source, and those of files cannot be told from them. Import them "
            "into another store: --data-dir names its folder, ANALYTICS_CLICKHOUSE_DATABASE its database on a server."
        )


def valued(store: Store, events: Sequence[Event], assets: Mapping[str, Asset]) -> list[Event]:
    """The events with price and USD value: as the file says, or else at the price of their time, if there is one."""
    seconds: dict[str, set[int]] = defaultdict(set)
    for event in events:
        seconds[event.asset_id].add(unix_second(event.at))
    prices = {asset_id: read_prices_at(store, asset_id, list(at)) for asset_id, at in seconds.items()}
    return [
        _valued(event, prices[event.asset_id].get(unix_second(event.at)), assets[event.asset_id]) for event in events
    ]


def _valued(event: Event, price: Decimal | None, asset: Asset) -> Event:
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
        first = min(unix_second(event.at) for event in events)
        head = retry(lambda: read_state(store, FAMILY))
        last = max(*(unix_second(event.at) for event in events), head.at if head else 0)
        sums, observations = retry(lambda: _summed(store, events, first, last))
        histories = retry(lambda: _histories(store, events, first))
        definitions = versioned(retry(lambda: changed_assets(store, assets)), version)
        lending = versioned(lending_frame(event for event in events if is_lending(event)), version)
        run = Run(FAMILY, last, "import", first, last, len(events), names_of(files), version, files=number_of(files))
        for table, rows in (
            (OBSERVATIONS, versioned(observations, version)),
            ("event", lending),
            (ACCOUNT_EVENTS, versioned(histories, version)),
            (ASSETS, definitions),
        ):
            retry(lambda table=table, rows=rows: staged.insert(table, rows))  # type: ignore[misc]
        flash = flash_frame(sums[Action.BORROW_FLASH_LOAN, TOTAL], last)
        retry(lambda: store.insert("flash_loan_volume", versioned(flash, version)))
        rewrite.publish(store, staged, [run], retry)


def _summed(
    store: Store, events: Sequence[Event], first: int, last: int
) -> tuple[Mapping[_Series, Decimal], pl.DataFrame]:
    """The sums after the last event, and the observations of the histories of sums from the first event on: wherever
    an event changes them, wherever there was an observation, and of all series at the last second."""
    names = {history: action for action, history in SUMMED_BY_ASSET.items()}
    sums = _sums_before(store, first)
    changes: dict[int, list[SummedEvent]] = defaultdict(list)
    due: dict[int, set[_Series]] = defaultdict(set)
    imported: dict[int, dict[_Series, Decimal]] = defaultdict(dict)
    for event in _all_summed(store, events, first):
        changes[event.second].append(event)
        due[event.second] |= {*_TOTALS, (event.action, event.asset_id)}
    for history, asset_id, second, usd in read_observed_since(store, list(names), first):
        due[second].add((names[history], asset_id))
        if usd is not None:
            imported[second][names[history], asset_id] = usd
    rows: list[tuple[History, str, int, Decimal]] = []
    for second in sorted({*due, last}):
        given = imported[second]
        for (action, asset_id), usd in given.items():
            if sums[action, asset_id] > usd:
                raise ImportRefused(above_imported(action, asset_id, sums[action, asset_id], usd, second))
        for event in changes[second]:
            _add(sums, event.action, event.asset_id, event.usd)
        sums.update(given)
        for action in {action for action, _ in given}:
            sums[action, TOTAL] = total_of({asset_id: usd for (of, asset_id), usd in sums.items() if of == action})
        series = ({*sums, *_TOTALS} if second == last else due[second]) - given.keys()
        rows += [
            (SUMMED_BY_ASSET[action], asset_id, second, sums[action, asset_id])
            for action, asset_id in sorted(series)
            if action in SUMMED_BY_ASSET
        ]
    return sums, observation_frame(rows)


def _sums_before(store: Store, first: int) -> dict[_Series, Decimal]:
    """The sums before a second: of stored events, after the last imported value where there is one."""
    imported = read_imported_sums(store, [0], first - 1) if first else []
    bounds = sorted({0, *(value.second for value in imported)})
    sums = plus({}, read_event_sums(store, bounds, first - 1) if first else (), imported)
    series = {(action, asset_id): usd for action, by_asset in sums.items() for asset_id, usd in by_asset.items()}
    return defaultdict(lambda: ZERO, series)


def _add(sums: dict[_Series, Decimal], action: Action, asset_id: str, usd: Decimal) -> None:
    for key in (TOTAL, asset_id) if action in SUMMED_BY_ASSET else (TOTAL,):
        sums[action, key] = EXACT.add(sums[action, key], usd)


def _all_summed(store: Store, events: Sequence[Event], first: int) -> Iterator[SummedEvent]:
    """The summed events from the first of the import on: those that are stored, and those of the import."""
    new = {event.id for event in events}
    yield from (event for event in read_lending_since(store, first) if event.id not in new)
    for event in events:
        if event.action in SUMMED and event.leg is not Leg.COLLATERAL:
            yield SummedEvent(event.id, event.action, event.asset_id, unix_second(event.at), event.usd or ZERO)


def _histories(store: Store, events: Sequence[Event], first: int) -> pl.DataFrame:
    """The events of the addresses of an import from its first event on, numbered, without `version`."""
    addresses = sorted({event.address for event in events})
    new = {event.uuid: event for event in events}
    stored = [event for event in read_events_since(store, addresses, first) if event.uuid not in new]
    return numbered(store, account_event_frame([*stored, *new.values()]), max(first - 1, 0))
